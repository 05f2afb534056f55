"""A fleet is placed among movable pods, which are then evicted to make room.

These are separate decisions: the fleet is placed on free accelerators, then the fewest evictions are found
that make room for the models with unmet demand, bin by bin. Each step has its own proof; how much better a
joint decision could be is unknown.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from controller.planning.engine import Engine, alone
from controller.planning.moves import fewest_evictions
from controller.planning.problem import PlacementProblem, Solution, Stage, free_after_removals
from controller.variants.solver_worker import without_collection
from hack.bench.child import in_child
from hack.bench.goals import Goal, short_number
from hack.bench.placement.engines import effort_within
from hack.bench.placement.fragments import Fragments, ScoringStrategy, fragments
from hack.bench.table import Columns
from hack.calling.cores import Cores, memory_mebibytes
from hack.fleets import score
from hack.fleets.families_loads import TIGHT
from hack.fleets.fleet import Mix, fleet
from hack.fleets.statement import shared_out, stated

SIZE: Final = 10_000
NODES: Final = 20_000

_USED_PERCENT: Final = 30
_UNLIMITED: Final = 10**6
_PATIENCE_SECONDS: Final = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Joint:
    """The result of placing and then moving."""

    models: int
    nodes: int
    place_seconds: float
    move_seconds: float
    peak_mb: float
    """Peak memory above that before the fleet was generated, in MiB."""
    gap_percent: float
    """Largest gap of placing at any level, relative to all that is wanted there."""
    wanted: int
    """Accelerators of the replicas that models with unmet demand would have alone, but do not get."""
    placed: int
    """The part of these that finds room after the evictions."""
    evictions: int
    is_proven: bool
    """Whether it is proven that no other evictions make more room, or as much at a lower price."""


@without_collection()
def measured(size: int, nodes: int, *, seconds: float) -> Joint:
    """Place and move in this process, with the garbage collector disabled as in the planning worker."""
    before_mb = memory_mebibytes("VmRSS")
    problem, movable = _world(size, nodes)
    gc.collect()
    effort = effort_within(seconds=seconds)
    began = time.process_time()
    engine = Engine(problem)
    wanted, solution = alone(problem), engine.place(effort)
    placed = time.process_time()
    asked = _unmet_replicas(problem, wanted, solution)
    free = _free_accelerators(problem, solution)
    evictions = [
        fewest_evictions(
            free[[*bin_.nodes]],
            movable.movable[[*bin_.nodes]],
            movable.kinds,
            _sizes(problem, asked, bin_.variants),
            most=_UNLIMITED,
            effort=effort,
        )
        for bin_ in problem.bins
    ]
    moved = time.process_time()
    return Joint(
        models=size,
        nodes=len(problem.free),
        place_seconds=placed - began,
        move_seconds=moved - placed,
        peak_mb=memory_mebibytes("VmHWM") - before_mb,
        gap_percent=max((100 * proof.improvable for proof in solution.proofs), default=0.0),
        wanted=sum(count * problem.variants[v].accelerators for v, count in asked.items()),
        placed=sum(size * count for one in evictions for size, count in one.placed.items()),
        evictions=sum(count for one in evictions for *_, count in one.evicted),
        is_proven=all(one.is_proven for one in evictions),
    )


def _world(size: int, nodes: int) -> tuple[PlacementProblem, Fragments]:
    """Return a fleet on about `nodes` nodes, and the movable pods of others that use a part of them."""
    rng = np.random.default_rng([size, nodes])
    asks = fleet(rng, size, Mix())
    liked = sum(map(len, shared_out(asks, TIGHT).values()))
    rooms = shared_out(asks, [factor * nodes / liked for factor in TIGHT])
    problem = stated(asks, rooms)
    used = fragments(
        nodes=len(problem.free),
        used_percent=_USED_PERCENT,
        strategy=ScoringStrategy.LEAST,
        has_classes=False,
        seed=0,
    )
    # Fragments are made for nodes of eight accelerators; smaller ones have at most their own free.
    free = np.minimum(used.free, np.array(problem.free))
    return replace(problem, free=tuple(free.tolist())), replace(used, free=free)


def _unmet_replicas(problem: PlacementProblem, alone: Sequence[int], solution: Solution) -> Mapping[int, int]:
    """Return the replicas by variant that models with unmet demand would have alone, but do not get."""
    short = {
        row.model
        for row in problem.rows
        if row.stage is Stage.DEMAND and score.shortfall(problem, row, solution.replicas)
    }
    mine = {v for row in problem.rows if row.model in short for v, _ in row.terms}
    more = {v: alone[v] - solution.replicas[v] for v in sorted(mine)}
    return {v: count for v, count in more.items() if count > 0}


def _free_accelerators(problem: PlacementProblem, solution: Solution) -> np.typing.NDArray[np.int64]:
    """Return the free accelerators of each node after the answer."""
    free = free_after_removals(problem, solution.replicas)
    for v, node, count in solution.placements:
        free[node] -= count * problem.variants[v].accelerators
    return np.array(free, dtype=np.int64)


def _sizes(problem: PlacementProblem, asked: Mapping[int, int], variants: Sequence[int]) -> Mapping[int, int]:
    wanted = Counter[int]()
    for v in variants:
        wanted[problem.variants[v].accelerators] += asked.get(v, 0)
    return wanted


def run(cores: Cores, *, size: int = SIZE, nodes: int = NODES, seconds: float) -> Joint:
    """Measure in a separate process, whose memory is not affected by other work. Raises ChildError."""
    return in_child(cores, _PATIENCE_SECONDS, measured, size, nodes, seconds=seconds)


COLUMNS: Final[Columns[Joint]] = (
    ("place, then move", lambda _: "F4-fragmented"),
    ("models", lambda one: str(one.models)),
    ("nodes", lambda one: str(one.nodes)),
    ("place CPU s", lambda one: short_number(one.place_seconds)),
    ("move CPU s", lambda one: short_number(one.move_seconds)),
    ("MB", lambda one: short_number(one.peak_mb)),
    ("gap of placing %", lambda one: f"{one.gap_percent:.4f}"),
    ("accelerators wanted", lambda one: str(one.wanted)),
    ("placed by moving", lambda one: str(one.placed)),
    ("evictions", lambda one: str(one.evictions)),
    ("evictions proven", lambda one: "yes" if one.is_proven else "no"),
)

"""Columns of the table, with one line per run."""


def joint_goals(results: Sequence[Joint], *, slowness: float) -> Iterator[Goal]:
    """Yield the goals of a joint decision, applied to the two separate steps."""
    for one in results:
        spent = (one.place_seconds + one.move_seconds) / slowness
        yield Goal(name=f"T3_cpu_of_placing_then_moving_in_{NODES}_nodes", value=spent, unit="s", most=3.0)
        yield Goal(name="T3_gap_of_placing_alone", value=one.gap_percent, unit="%", most=0.01)
        yield Goal(name="T3_memory", value=one.peak_mb, unit="MB", most=800.0)
        yield Goal(name="T3_evictions_not_proven", value=float(not one.is_proven), unit="of 1", most=0.0)
