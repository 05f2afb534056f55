"""`python -m hack.bench.admission`: CPU time of admission, compared with a straightforward server."""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from hack.bench.admission.cases import (
    MODEL_CREATE,
    MODEL_REFUSED,
    MODEL_UNCHANGED,
    SERVER_NAME,
    VERBS,
    Case,
    cases,
    check_agreement,
)
from hack.bench.goals import Goal, at_both_paces, short_number
from hack.bench.run import OURS, STRAIGHTFORWARD, BenchmarkRun, ResultPart, add_count, main, part_of
from hack.bench.servers import Key, LoadTarget, by_turns, pairs, running_servers
from hack.bench.table import Row, align, ratio_of
from hack.calling.load import LoadFigures, drive

_OTHERS: Final = {STRAIGHTFORWARD: "hack.bench.admission.straightforward"}
_SECTIONS: Final = {"scaling": {"authorize": False}}  # there is no cluster for access reviews
_WARM_UP: Final = 0.25
"""Additional time for the warm-up, as a fraction of a round."""

_MOST_CPU_US: Final = {MODEL_CREATE: 235.0, MODEL_UNCHANGED: 140.0}
_MOST_SHARE_PERCENT: Final = 100 / 15
_MOST_REFUSED: Final = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Figures of one case on one server: medians of the rounds, and percentiles over all rounds together."""

    case: str
    verb: str
    server: str
    cpu_us: float
    """CPU time of the server process per request."""
    requests_per_second: float
    p50_us: float
    """Latency, which is mostly waiting for the other connections."""
    p99_us: float


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.admission", description=__doc__)
    add_count(parser, "--rounds", default=5, text="number of rounds; medians of all are reported")
    parser.add_argument(
        "--seconds", type=float, default=0.5, metavar="S", help="seconds per case, server and round [0.5]"
    )
    add_count(parser, "--connections", default=16, text="concurrent connections")
    return parser


def _measure(options: argparse.Namespace, run: BenchmarkRun) -> Iterator[Sequence[ResultPart]]:
    """Measure the cases. Raises WrongAnswerError."""
    run.step("over TLS")
    with (
        run.pin(),
        running_servers(
            run.cores,
            _OTHERS,
            server_name=SERVER_NAME,
            sections=_SECTIONS,
            connections=options.connections,
        ) as targets,
    ):
        every_case = cases()
        for case in every_case:
            check_agreement(case, [_first(case, target) for target in targets.values()])
        plan = {
            (case.name, case.verb, server): partial(_turn, case, target, options.seconds)
            for case in every_case
            for server, target in targets.items()
        }
        costs = {key: _summary(key, rounds) for key, rounds in by_turns(plan, options.rounds).items()}
    run.step("measured")
    title = f"over TLS 1.3, {options.connections} connections"
    goals = [goal for verb in VERBS for goal in _goals(costs, verb, run.slowness)]
    yield [part_of("over_tls", [*costs.values()], _table(costs, title), goals=goals)]


def _first(case: Case, target: LoadTarget) -> bytes:
    """Return the response to the first review of a case. Raises WrongAnswerError."""
    body = target.first(case.request(case.bodies[0])).body
    case.check(body)
    return body


def _turn(case: Case, target: LoadTarget, seconds: float) -> LoadFigures:
    requests = [case.request(body) for body in case.bodies]
    load = partial(drive, target.connections, pid=target.process.pid, want=target.first(requests[0]))
    load(itertools.cycle(requests), seconds=seconds * _WARM_UP)
    return load(itertools.cycle(requests), seconds=seconds)


def _summary(key: Key, rounds: Sequence[LoadFigures]) -> Cost:
    waits = [wait * 1e6 for served in rounds for wait in served.latencies_seconds]
    p50, p99 = (float(value) for value in np.percentile(waits, (50, 99), method="inverted_cdf"))
    return Cost(
        case=key[0],
        verb=key[1],
        server=key[2],
        cpu_us=statistics.median(served.cpu_per_request_seconds * 1e6 for served in rounds),
        requests_per_second=statistics.median(served.requests_per_second for served in rounds),
        p50_us=p50,
        p99_us=p99,
    )


def _table(costs: Mapping[Key, Cost], title: str) -> list[str]:
    rows: list[Row] = [(title, "path", "server", "CPU µs/request", "ratio", "requests/s", "p50 µs", "p99 µs")]
    for _, ours, plain in pairs(costs):
        for one in (ours, plain):
            ratio = "1" if one is plain else ratio_of(one.cpu_us, plain.cpu_us)
            figures = (one.requests_per_second, one.p50_us, one.p99_us)
            cells = (short_number(one.cpu_us), ratio, *(f"{figure:.0f}" for figure in figures))
            rows.append((one.case, f"/{one.verb}", one.server, *cells))
    return align(rows)


def _goals(costs: Mapping[Key, Cost], verb: str, slowness: float) -> Iterator[Goal]:
    """Yield the goals of one path; those in µs at both paces."""
    for case, most in _MOST_CPU_US.items():
        name = f"{verb}_{case.lower().replace(', ', '_').replace(' ', '_')}_cpu_per_request"
        goal = Goal(name=name, value=costs[case, verb, OURS].cpu_us, unit="µs", most=most)
        yield from at_both_paces(goal, slowness)
    ours = costs[MODEL_CREATE, verb, OURS].cpu_us
    share = ours / costs[MODEL_CREATE, verb, STRAIGHTFORWARD].cpu_us * 100
    name = f"{verb}_model_create_share_of_straightforward"
    yield Goal(name=name, value=share, unit="%", most=_MOST_SHARE_PERCENT)
    ratio = costs[MODEL_REFUSED, verb, OURS].cpu_us / ours
    yield Goal(name=f"{verb}_model_refused_of_accepted", value=ratio, unit="times", most=_MOST_REFUSED)


if __name__ == "__main__":
    sys.exit(main("admission", _parser(), _measure))
