"""`python -m hack.bench.policies`: CPU time of a cycle of 1,000 AutoscalingPolicyBindings; trajectories."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from controller.simulation.run import silent
from controller.variants.solver_worker import without_collection
from hack.bench.goals import Goal
from hack.bench.policies.kthena import check_reference
from hack.bench.policies.trajectories import Trajectory, trajectories
from hack.bench.policies.world import BindingFleet
from hack.bench.run import BenchmarkRun, ResultPart, add_count, main, part_of
from hack.bench.table import Columns, Row, align, ratio_of

_MOST_SECONDS: Final = 5.0
"""CPU time of one cycle of 1,000 bindings."""

_GOAL_BINDINGS: Final = 1000
_STEEP: Final = ("spike", "ramp")
_MOST_SHARE: Final = 0.8
"""Overload relative to the mended reference's, averaged over steep loads: a fifth less."""

_WARM_CYCLES: Final = 8


_CYCLE_COLUMNS: Final[Columns[CycleCost]] = (
    ("bindings", lambda cost: f"{cost.bindings}"),
    ("planned", lambda cost: "jointly" if cost.is_joint else "alone"),
    ("pods", lambda cost: f"{cost.pods}"),
    ("first cycle CPU s", lambda cost: f"{cost.first_seconds:.2f}"),
    ("statuses written", lambda cost: f"{cost.first_writes}"),
    ("events", lambda cost: f"{cost.first_events}"),
    ("later cycle CPU s", lambda cost: f"{cost.cycle_seconds:.2f}"),
    ("statuses written", lambda cost: f"{cost.writes:.0f}"),
    ("plain parsing CPU s", lambda cost: f"{cost.plain_seconds:.2f}"),
    ("ratio", lambda cost: ratio_of(cost.cycle_seconds, cost.plain_seconds)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleCost:
    """CPU seconds of the first cycle, which reads every object, of a later one, and of plain parsing.

    Each status and each event is a request to the API server; CPU includes the serialization of statuses, but
    not sending them. Later cycles are medians, and so is the number of statuses that each writes.
    """

    bindings: int
    is_joint: bool
    """Whether the bindings wait for a plan. CPU does not include that of the plan."""

    pods: int
    first_seconds: float
    first_writes: int
    first_events: int
    cycle_seconds: float
    plain_seconds: float
    writes: float


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.policies", description=__doc__)
    add_count(parser, "--bindings", default=1000, text="bindings in one cycle")
    add_count(parser, "--cycles", default=5, text="number of cycles whose median is reported")
    return parser


def _measure(options: argparse.Namespace, run: BenchmarkRun) -> Iterator[Sequence[ResultPart]]:
    """Measure in this process, with the garbage collector disabled as in the controller's cycles.

    Raises WrongAnswerError if the reference algorithm is not what was observed.
    """
    check_reference()
    costs = []
    for is_joint in (False, True):
        fleet = BindingFleet(bindings=options.bindings, is_joint=is_joint)
        way = "jointly" if is_joint else "alone"
        run.step(f"{options.bindings} bindings with {len(fleet.pods)} pods, planned {way}")
        with without_collection(), silent():
            costs.append(asyncio.run(_cost(fleet, options.cycles)))
    goals = [goal for cost in costs for goal in _cycle_goals(cost)]
    cycles = part_of("policies", costs, columns=_CYCLE_COLUMNS, goals=goals)
    yield [cycles]
    run.step("trajectories")
    simulated = trajectories()
    table = _trajectory_table(simulated)
    yield [cycles, part_of("trajectories", simulated, table, goals=_overload_goals(simulated))]


def _cycle_goals(cost: CycleCost) -> Iterator[Goal]:
    if cost.bindings >= _GOAL_BINDINGS:
        slowest = max(cost.first_seconds, cost.cycle_seconds)
        name = "cycle of 1,000 bindings" + (", planned jointly" if cost.is_joint else "")
        yield Goal(name=name, value=slowest, unit="s of CPU", most=_MOST_SECONDS)


def _overload_goals(results: Sequence[Trajectory]) -> Iterator[Goal]:
    name, unit = "overload relative to the mended reference", "times"
    yield Goal(name=f"{name}, maximum", value=max(map(_share, results)), unit=unit, most=1.0)
    steep = [_share(item) for item in results if item.shape in _STEEP and item.mended.overload_seconds]
    average = statistics.mean(steep)
    yield Goal(name=f"{name}, mean of spikes and ramps", value=average, unit=unit, most=_MOST_SHARE)


def _trajectory_table(results: Sequence[Trajectory]) -> list[str]:
    names = ("released", "mended", "ours", "exact")
    heads = ("load", "start", *(head for name in names for head in (f"{name}: h", "overload")))
    return [
        "replica-hours and seconds of overload in one hour: the reference as released and as mended, ours",
        "with the same policy, and ours without its tolerance (exact), which has no effect in the reference",
        *align([heads, *map(_row, results)]),
    ]


def _share(item: Trajectory) -> float:
    """Return our overload without tolerance relative to the mended reference's; 1 if neither has any."""
    if not item.mended.overload_seconds:
        return 1.0 + item.exact.overload_seconds
    return item.exact.overload_seconds / item.mended.overload_seconds


def _row(of: Trajectory) -> Row:
    courses = (of.released, of.mended, of.ours, of.exact)
    figures = ((f"{one.replica_hours:.2f}", f"{one.overload_seconds:.0f} s") for one in courses)
    return (of.shape, f"{of.start_seconds:.0f} s", *itertools.chain.from_iterable(figures))


async def _cost(fleet: BindingFleet, count: int) -> CycleCost:
    first_seconds, first_writes = await _cycle(fleet)
    first_events = fleet.recorded
    later = [await _cycle(fleet) for _ in range(_WARM_CYCLES + count)][_WARM_CYCLES:]
    return CycleCost(
        bindings=fleet.bindings,
        is_joint=fleet.is_joint,
        pods=len(fleet.pods),
        first_seconds=first_seconds,
        first_writes=first_writes,
        first_events=first_events,
        cycle_seconds=statistics.median(seconds for seconds, _ in later),
        plain_seconds=_plain(fleet),
        writes=statistics.median(writes for _, writes in later),
    )


async def _cycle(fleet: BindingFleet) -> tuple[float, int]:
    """Return the CPU seconds of a cycle, and the number of statuses that it writes."""
    began, before = time.process_time(), fleet.written
    await fleet.cycle()
    return time.process_time() - began, fleet.written - before


def _plain(fleet: BindingFleet) -> float:
    """Return the CPU seconds to parse the complete metrics of every pod, without using them."""
    began = time.process_time()
    for _ in fleet.pods:
        list(text_string_to_metric_families(fleet.text))
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main("policies", _parser(), _measure))
