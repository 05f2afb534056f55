"""One run of the admission benchmark: in process, over TLS, and on a control plane."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from hack.bench.admission import ours, straightforward
from hack.bench.admission.api_server import measure_api_server
from hack.bench.admission.cases import MODEL_CREATE, SERVER_NAME, VARIANT_CREATE, Case, cases, check_agreement
from hack.bench.admission.goals import goals
from hack.bench.admission.report import OF_CALLS, OverTls, in_process_table, tls_table
from hack.bench.command import NothingChosenError
from hack.bench.compared import EMPTY, OURS, STRAIGHTFORWARD
from hack.bench.costs import Key, by_turns, in_process, rows, summarize
from hack.bench.frame import Frame
from hack.bench.measurement import Part, part_of
from hack.bench.webhooks_process import Target, running_servers
from hack.calling.load import Served, drive
from hack.controlplane import ControlPlaneError
from hack.controlplane.client import RefusedError

_IN_PROCESS_SHARE: Final = 0.2
"""CPU time of a round in process, as a fraction of a round over TLS: there is less noise to average out."""

_OTHERS: Final = {
    STRAIGHTFORWARD: ("hack.bench.admission.straightforward", "asyncio"),
    EMPTY: ("hack.bench.admission.empty", "uvloop"),
}
_SECTIONS: Final = {"scaling": {"authorize": False}}  # there is no cluster for access reviews
_EMPTY_CASES: Final = ((MODEL_CREATE, "mutate"), (VARIANT_CREATE, "mutate"))
"""The cases of the empty handler: one large and one small request suffice."""

_WARM_UP: Final = 0.25
_ALONE: Final = 0.5
"""Additional time for the warm-up and for one connection alone, as fractions of a round."""


def measure(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
    """Measure the cases. Raises NothingChosenError without cases, and WrongAnswerError."""
    chosen = _choose_cases(options.only)
    with frame.pinned():
        frame.step("in process")
        parts = [_in_process(chosen, options)]
        with running_servers(
            frame.cores, _OTHERS, server_name=SERVER_NAME, sections=_SECTIONS, connections=options.connections
        ) as targets:
            parts.append(_over_tls(chosen, targets, options, frame))
    yield [*parts, Part(name="api_server")]
    if options.calls:
        frame.progress("on a control plane")
        try:
            calls = measure_api_server({case.kind for case in chosen}, calls=options.calls)
        except (ControlPlaneError, RefusedError, OSError) as error:
            frame.failures.append(f"the API server's own metrics are missing: {error}")
        else:
            yield [*parts, part_of("api_server", calls, columns=OF_CALLS)]


def _choose_cases(text: str) -> Sequence[Case]:
    chosen = [case for case in cases() if text.lower() in f"{case.name} {case.path}".lower()]
    if not chosen:
        raise NothingChosenError(f"no case has {text!r} in its name")
    return chosen


def _in_process(chosen: Sequence[Case], options: argparse.Namespace) -> Part:
    """Measure the handlers alone. Raises WrongAnswerError if a response is wrong or responses differ."""
    handlers = {OURS: ours.answers(), STRAIGHTFORWARD: straightforward.answers()}
    for case in chosen:
        answers = [handle[case.path](case.body) for handle in handlers.values()]
        for answer in answers:
            case.check(answer)
        check_agreement(case, answers)
    asked = {
        (case.name, case.verb, server): (handle[case.path], case.bodies)
        for case in chosen
        for server, handle in handlers.items()
    }
    costs = in_process(asked, rounds=options.rounds, seconds=options.seconds * _IN_PROCESS_SHARE)
    return Part(
        name="in_process",
        rows=rows(("case", "verb"), {key: {"cpu_us": spent} for key, spent in costs.items()}),
        tables=[in_process_table(costs)],
    )


def _over_tls(
    chosen: Sequence[Case], targets: Mapping[str, Target], options: argparse.Namespace, frame: Frame
) -> Part:
    plan = {
        (case.name, case.verb, server): partial(_turn, case, target, server, options.seconds)
        for case in chosen
        for server, target in targets.items()
        if server != EMPTY or (case.name, case.verb) in _EMPTY_CASES
    }
    taken = by_turns(plan, options.rounds, step=frame.step)
    costs: dict[Key, OverTls] = {}
    for key, turns in taken.items():
        busy, lone = zip(*turns, strict=True)
        costs[key] = OverTls(busy=summarize(busy), lone=summarize(lone))
    return Part(
        name="over_tls",
        rows=rows(("case", "verb"), {key: cost.as_json() for key, cost in costs.items()}),
        tables=[tls_table(costs, connections=options.connections)],
        goals=goals(costs, frame.pace()),
    )


def _turn(case: Case, target: Target, server: str, seconds: float) -> tuple[Served, Served]:
    """Return the figures with all connections at once, and with one connection alone."""
    requests = case.requests()
    want = target.first(requests[0], None if server == EMPTY else case.check)
    load = partial(drive, requests=itertools.cycle(requests), want=want, pid=target.process.pid)
    load(target.connections, seconds=seconds * _WARM_UP)
    return load(target.connections, seconds=seconds), load(target.connections[:1], seconds=seconds * _ALONE)
