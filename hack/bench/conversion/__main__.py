"""`python -m hack.bench.conversion`: CPU time of conversion, compared with a straightforward server."""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hack.bench.conversion.cases import ANSWERERS, Case, cases
from hack.bench.conversion.restarts import OF_RESTARTS, TRIVIAL, Restart, measure_restarts
from hack.bench.goals import Goal, at_both_paces, short_number
from hack.bench.run import OURS, STRAIGHTFORWARD, BenchmarkRun, ResultPart, add_count, main, part_of
from hack.bench.servers import Key, by_turns, cpu_per_call_seconds, frozen_heap, pairs, running_servers
from hack.bench.table import Columns, table_lines
from hack.calling.conversion_reviews import SERVER_NAME, converted_objects, http_request
from hack.calling.cores import Cores, cpu_seconds
from hack.controlplane import ControlPlaneError
from hack.controlplane.client import RefusedError

_STARTS: Final = 10
_BEGAN: Final = 19
"""Index of `starttime` among the fields of `/proc/PID/stat` after the name: ticks since boot."""

_LONG: Final = 5000
_MOST_CPU_US: Final = 25.0
_MOST_SHARE_PERCENT: Final = 50.0
_MOST_RESTART: Final = 1.2
_MOST_START_SECONDS: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """CPU time of both handlers for one review, in µs."""

    case: str
    objects: int
    direction: str
    ours_us: float
    plain_us: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """One start of the process, until the first object is converted; its port is polled every 20 ms."""

    seconds: float
    cpu_seconds: float
    """CPU time of all its threads until then."""


_COLUMNS: Final[Columns[Cost]] = (
    ("in process, CPU µs", lambda one: one.case),
    ("objects", lambda one: str(one.objects)),
    ("", lambda one: one.direction),
    (OURS, lambda one: short_number(one.ours_us)),
    ("per object", lambda one: short_number(one.ours_us / one.objects)),
    (STRAIGHTFORWARD, lambda one: short_number(one.plain_us)),
    ("per object", lambda one: short_number(one.plain_us / one.objects)),
    ("ratio", lambda one: f"1/{one.plain_us / one.ours_us:.1f}"),
)
_OF_STARTS: Final[Columns[Sequence[Start]]] = (
    ("start to first conversion", lambda _: OURS),
    ("starts", lambda starts: str(len(starts))),
    ("median s", lambda starts: f"{_median_start(starts):.2f}"),
    ("longest s", lambda starts: f"{max(start.seconds for start in starts):.2f}"),
    ("CPU s", lambda starts: f"{statistics.median(start.cpu_seconds for start in starts):.2f}"),
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.conversion", description=__doc__)
    add_count(parser, "--rounds", default=5, text="number of rounds; medians of all are reported")
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.1,
        metavar="S",
        help="seconds of CPU per case, handler and round [0.1]",
    )
    add_count(parser, "--stored", default=5000, text="objects stored in the old version")
    parser.add_argument(
        "--restarts", type=int, default=2, metavar="N", help="restarts of the API server per converter [2]"
    )
    return parser


def _measure(options: argparse.Namespace, run: BenchmarkRun) -> Iterator[Sequence[ResultPart]]:
    """Measure everything. Raises WrongAnswerError."""
    every_case = cases()
    run.step("starts")
    starts = _measure_starts(every_case[0])
    run.step("in process")
    with run.pin():
        costs = _measure_handlers(every_case, options)
    median = _median_start(starts)
    goal = Goal(name="start_to_first_conversion", value=median, unit="s", most=_MOST_START_SECONDS)
    parts = [
        part_of("in_process", costs, columns=_COLUMNS, goals=_goals(costs, run.slowness)),
        part_of("starts", starts, table_lines(_OF_STARTS, [starts]), goals=[goal]),
    ]
    yield parts
    if options.restarts:
        try:
            restarts = measure_restarts(stored=options.stored, rounds=options.restarts, say=run.say)
        except (ControlPlaneError, RefusedError, OSError) as error:
            run.failures.append(f"the restarts of the API server are missing: {error}")
        else:
            goals = [_restart_goal(restarts)]
            yield [*parts, part_of("restarts", restarts, columns=OF_RESTARTS, goals=goals)]


def _measure_handlers(every_case: Sequence[Case], options: argparse.Namespace) -> list[Cost]:
    """Measure the handlers alone, from bytes to bytes, in interleaved rounds."""
    plan = {
        (case.name, case.count, case.direction, server): partial(
            cpu_per_call_seconds, handle, itertools.repeat(case.bodies[server]), seconds=options.seconds
        )
        for case in every_case
        for server, handle in ANSWERERS.items()
    }
    with frozen_heap():
        samples = by_turns(plan, options.rounds)
    spent: Mapping[Key, float] = {key: statistics.median(times) * 1e6 for key, times in samples.items()}
    return [
        Cost(case=name, objects=count, direction=direction, ours_us=ours, plain_us=plain)
        for (name, count, direction), ours, plain in pairs(spent)
    ]


def _measure_starts(case: Case) -> list[Start]:
    """Start our process on all cores, after one warm-up start, and convert a case in each."""
    everywhere = frozenset(os.sched_getaffinity(0))
    cores = Cores(server=everywhere, load=everywhere)
    return [_start(http_request(case.bodies[OURS]), cores) for _ in range(_STARTS + 1)][1:]


def _start(request: bytes, cores: Cores) -> Start:
    with running_servers(cores, {}, server_name=SERVER_NAME, sections={}) as targets:
        answer = targets[OURS].first(request)
        pid = targets[OURS].process.pid
        started = Start(seconds=_age_seconds(pid), cpu_seconds=cpu_seconds(pid))
    converted_objects(answer.body)
    return started


def _age_seconds(pid: int) -> float:
    """Return the time since the start of a process, with a resolution of one tick, usually 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_BEGAN]) / os.sysconf("SC_CLK_TCK")


def _median_start(starts: Sequence[Start]) -> float:
    return statistics.median(start.seconds for start in starts)


def _goals(costs: Sequence[Cost], slowness: float) -> Iterator[Goal]:
    """Yield the goals of handlers, with the worst value over shapes and directions."""
    alone = max(one.ours_us for one in costs if one.objects == 1)
    goal = Goal(name="conversion_of_one_object", value=alone, unit="µs", most=_MOST_CPU_US)
    yield from at_both_paces(goal, slowness)
    share = max(one.ours_us / one.plain_us * 100 for one in costs if one.objects == _LONG)
    name = f"conversion_of_{_LONG}_share_of_straightforward"
    yield Goal(name=name, value=share, unit="%", most=_MOST_SHARE_PERCENT)


def _restart_goal(restarts: Sequence[Restart]) -> Goal:
    """Return the goal of the median time until reads are served, relative to the trivial converter."""
    ours, trivial = (
        statistics.median(one.served_seconds for one in restarts if one.converter == converter)
        for converter in (OURS, TRIVIAL)
    )
    name = "restart_of_trivial_converter"
    return Goal(name=name, value=ours / trivial, unit="times", most=_MOST_RESTART)


if __name__ == "__main__":
    sys.exit(main("conversion", _parser(), _measure))
