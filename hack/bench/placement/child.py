"""One engine on one instance, in a separate process on the servers' core, and the scores of its answers."""

from __future__ import annotations

import gc
import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from controller.planning.problem import PlacementProblem, Solution
from controller.simulation.outcome import reversals
from controller.variants.solver_worker import without_collection
from hack.bench.child import ChildError, in_child
from hack.bench.placement.engines import Engine, engine, pending_accelerators
from hack.bench.placement.result import Bound, EngineResult, Job
from hack.bench.table import group_by
from hack.calling.cores import Cores, memory_mebibytes
from hack.fleets import score
from hack.fleets.scenario import Scenario, after
from hack.fleets.score import Unmet
from hack.fleets.verify import wrong

_PATIENCE_SECONDS = 300.0
"""Time for generation, imports and scoring, in addition to the limits of the solves."""

_MOST_STEPS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """One answer to one problem, with its CPU and wall-clock time."""

    problem: PlacementProblem
    solution: Solution
    cpu_seconds: float
    wall_seconds: float


def run(job: Job, cores: Cores) -> EngineResult:
    """Measure in a separate process; if it fails, return a result with the failure."""
    patience_seconds = _PATIENCE_SECONDS + job.seconds * min(_MOST_STEPS, job.rounds + 1)
    try:
        return in_child(cores, patience_seconds, measured, job)
    except ChildError as error:
        return EngineResult(instance=job.instance, engine=job.engine, failure=str(error))


def measured(job: Job) -> EngineResult:
    """Run the engine in this process, and score its answers."""
    place = engine(job.engine, seconds=job.seconds, is_race=job.is_race)
    before_mb = memory_mebibytes("VmRSS")
    scenario = job.instance.scenario()
    solved = _sequence(place, scenario) if scenario.demands else _repeats(place, scenario, job.rounds)
    peak_mb = memory_mebibytes("VmHWM") - before_mb
    steps = solved if scenario.demands else solved[:1]
    first, moves = solved[0], steps[1:] or steps
    pending = [pending_accelerators(job.engine, step.problem) for step in steps]
    return EngineResult(
        instance=job.instance,
        engine=job.engine,
        variants=len(first.problem.variants),
        nodes=len(first.problem.free),
        steps=len(steps),
        cpu_seconds=tuple(one.cpu_seconds for one in solved),
        wall_seconds=tuple(one.wall_seconds for one in solved),
        peak_mb=peak_mb,
        plans=() if scenario.demands else tuple(_digest(one.solution) for one in solved),
        levels=_levels(steps),
        bounds={} if scenario.demands else _bounds(first),
        unmet=_mean_unmet(steps),
        used_accelerators=_total(score.used_accelerators, moves),
        started_accelerators=_total(score.started_accelerators, moves),
        stopped_accelerators=_total(score.stopped_accelerators, moves),
        reversals=sum(map(reversals, zip(*(step.solution.replicas for step in steps), strict=True))),
        pending_accelerators=None if None in pending else sum(count or 0 for count in pending),
        wrong=tuple(text for step in steps for text in _faults(step)),
    )


def _repeats(place: Engine, scenario: Scenario, rounds: int) -> list[Solved]:
    return [_solve(place, scenario.problem) for _ in range(rounds)]


def _sequence(place: Engine, scenario: Scenario) -> list[Solved]:
    """Solve the problems of a sequence; each starts from the replicas of the previous answer."""
    solved = [_solve(place, scenario.problem)]
    for demands in scenario.demands:
        last = solved[-1]
        solved.append(_solve(place, after(last.problem, last.solution, demands)))
    return solved


def _solve(place: Engine, problem: PlacementProblem) -> Solved:
    gc.collect()
    with without_collection():  # as in the planning worker
        wall, cpu = time.perf_counter(), time.process_time()
        solution = place(problem)
        cpu_seconds, wall_seconds = time.process_time() - cpu, time.perf_counter() - wall
    return Solved(problem=problem, solution=solution, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


def _digest(solution: Solution) -> str:
    """Return a digest that two answers share only if their replicas and placements are equal."""
    return hashlib.sha256(repr((solution.replicas, solution.placements)).encode()).hexdigest()[:16]


def _levels(steps: Sequence[Solved]) -> dict[str, int]:
    """Return the sum of each level over the steps, in order of importance."""
    sums = Counter[str]()
    for step in steps:
        sums.update(score.levels(step.problem, step.solution.replicas))
    names = [name for name in sums if name != score.COST]
    return {name: sums[name] for name in [*sorted(names, key=_order), score.COST]}


def _faults(step: Solved) -> list[str]:
    """Return the constraints that an answer violates, and the values that it claims too low."""
    values = score.levels(step.problem, step.solution.replicas)
    understated = [proof for proof in step.solution.proofs if values.get(proof.level, 0) > proof.value]
    untrue = [f"{proof.level}: reported as {proof.value}, is {values[proof.level]}" for proof in understated]
    return [*wrong(step.problem, step.solution), *untrue]


def _bounds(solved: Solved) -> dict[str, Bound]:
    """Return the proven bound of each level."""
    values = score.levels(solved.problem, solved.solution.replicas)
    return {
        proof.level: Bound(
            value=values[proof.level],
            bound=proof.bound,
            total=max(1, proof.total),
        )
        for proof in solved.solution.proofs
        if proof.level in values
    }


def _mean_unmet(steps: Sequence[Solved]) -> tuple[Unmet, ...]:
    """Return the mean unmet demand over the steps, by priority."""
    match = [one for step in steps for one in score.unmet(step.problem, step.solution.replicas)]
    groups = group_by(sorted(match, key=lambda one: one.priority), lambda one: one.priority)
    return tuple(
        Unmet(
            priority=group[0].priority,
            by_value_percent=sum(unmet.by_value_percent for unmet in group) / len(group),
            by_model_percent=sum(unmet.by_model_percent for unmet in group) / len(group),
            models=round(sum(unmet.models for unmet in group) / len(group)),
        )
        for group in groups
    )


def _total(count: score.Count, steps: Sequence[Solved]) -> int:
    """Return the sum of a count over all answers."""
    return sum(count(step.problem, step.solution.replicas) for step in steps)


def _order(name: str) -> tuple[int, str]:
    stages = ("minimum", "demand", "continuity")
    return stages.index(name.partition(" ")[0]), name
