"""One run of the conversion benchmark: starts, in process, over TLS, and on a control plane."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

from hack.bench.compared import STRAIGHTFORWARD
from hack.bench.conversion.calls import measure_calls
from hack.bench.conversion.cases import ANSWERERS, Case, cases, key
from hack.bench.conversion.goals import one_object_and_many, restart_goal
from hack.bench.conversion.report import OF_RESTARTS, calls_table, in_process_table, tls_table
from hack.bench.conversion.restarts import measure_restarts
from hack.bench.conversion.start import measure_starts, start_goal, starts_table
from hack.bench.conversion.upgraded import client_of, upgraded_control_plane
from hack.bench.costs import by_turns, in_process, rows, summarize
from hack.bench.frame import Frame
from hack.bench.measurement import Part, part_of
from hack.bench.webhooks_process import Target, running_servers
from hack.calling.conversion_reviews import SERVER_NAME, converted_objects, http_request
from hack.calling.load import Served, WrongAnswerError, drive
from hack.controlplane import ControlPlaneError
from hack.controlplane.client import RefusedError

_IN_PROCESS_SHARE: Final = 0.25
"""CPU time of a round in process, as a fraction of a round over TLS: there is less noise to average out."""

_STARTS: Final = 10
_LEAST_REQUESTS: Final = 3
_NAMES: Final = ("case", "objects", "direction")
_OTHERS: Final = {STRAIGHTFORWARD: ("hack.bench.conversion.straightforward", "asyncio")}
_ASKED: Final = ("legacy", "nothing kept", "written in v1alpha1", "written in v1alpha1, back")
"""Cases that are also measured over TLS; the others differ from these only in the handler."""


def measure(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
    """Measure everything. Raises WrongAnswerError."""
    asked = cases()
    frame.progress("starts")
    server_starts = measure_starts(asked[0], count=_STARTS)
    starts = part_of("starts", server_starts, starts_table(server_starts))
    last = Part(goals=[start_goal(server_starts)])
    with frame.pinned():
        frame.step("in process")
        local = _in_process(asked, options, frame)
        frame.step("over TLS")
        with running_servers(frame.cores, _OTHERS, server_name=SERVER_NAME, sections={}) as targets:
            tls = _over_tls(asked, targets, options, frame)
    parts = [local, tls, starts]
    yield [*parts, Part(name="calls"), Part(name="restarts"), last]
    if options.calls:
        frame.progress(f"on a control plane with {options.stored} objects stored in the old version")
        try:
            yield [*parts, *_on_control_plane(options, frame), last]
        except (ControlPlaneError, RefusedError, OSError) as error:
            frame.failures.append(f"the measurements on a control plane are missing: {error}")


def _in_process(asked: Sequence[Case], options: argparse.Namespace, frame: Frame) -> Part:
    """Measure the handlers alone, from bytes to bytes, in interleaved rounds."""
    plan = {
        key(case, server): (handle, [case.bodies[server]])
        for case in asked
        for server, handle in ANSWERERS.items()
    }
    costs = in_process(plan, rounds=options.rounds, seconds=options.seconds * _IN_PROCESS_SHARE)
    return Part(
        name="in_process",
        rows=rows(_NAMES, {of: {"cpu_us": spent} for of, spent in costs.items()}),
        tables=[in_process_table(costs)],
        goals=[*one_object_and_many(costs, frame.pace())],
    )


def _over_tls(
    asked: Sequence[Case], targets: Mapping[str, Target], options: argparse.Namespace, frame: Frame
) -> Part:
    plan = {
        key(case, server): partial(_turn, case, server, target, options.seconds)
        for case in asked
        if case.name in _ASKED
        for server, target in targets.items()
    }
    taken = by_turns(plan, options.rounds, step=frame.step)
    costs = {of: summarize(served) for of, served in taken.items()}
    kept = ("cpu_us", "cpu_us_by_round", "requests", "p50_us", "p99_us")
    by_name = {of: {name: getattr(cost, name) for name in kept} for of, cost in costs.items()}
    return Part(name="over_tls", rows=rows(_NAMES, by_name), tables=[tls_table(costs)])


def _turn(case: Case, server: str, target: Target, seconds: float) -> Served:
    """Send a case to a server on one connection.

    Raises WrongAnswerError unless the response equals that of the handler in this process.
    """

    def check(body: bytes) -> None:
        if converted_objects(body) != converted_objects(ANSWERERS[server](case.bodies[server])):
            raise WrongAnswerError(f"{case.name} {case.direction}: {server} responds differently over TLS")

    request = http_request(case.bodies[server])
    return drive(
        target.connections,
        itertools.repeat(request),
        target.first(request, check),
        pid=target.process.pid,
        seconds=seconds,
        least=_LEAST_REQUESTS,
    )


def _on_control_plane(options: argparse.Namespace, frame: Frame) -> list[Part]:
    """Return the latency of calls through an API server, and the duration of its restarts."""
    with upgraded_control_plane(options.stored) as (control_plane, _):
        client = client_of(control_plane)
        calls = measure_calls(client, calls=options.calls)
        client.close()
        restarts = measure_restarts(
            control_plane, stored=options.stored, rounds=options.restarts, progress=frame.progress
        )
    return [
        Part(
            name="calls",
            rows=[{"call": name} | asdict(taken) for name, taken in calls.items()],
            tables=[calls_table(calls)],
        ),
        part_of("restarts", restarts, columns=OF_RESTARTS, goals=[restart_goal(restarts)]),
    ]
