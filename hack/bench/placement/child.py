"""One engine on one instance, in a separate process on the servers' core, and the scores of its answers."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass

from controller.planning.problem import PlacementProblem, Solution
from controller.variants.solver_worker import without_collection
from hack.bench.placement.engines import Engine, engine, pending_accelerators
from hack.bench.placement.result import Bound, EngineResult, Job
from hack.bench.processes import ChildError, in_child
from hack.calling.cores import Cores, memory_mebibytes
from hack.fleets import score
from hack.fleets.verify import wrong

_PATIENCE_SECONDS = 300.0
"""Time for generation, imports and scoring, in addition to the limits of the solves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """One answer, with its CPU and wall-clock time."""

    solution: Solution
    cpu_seconds: float
    wall_seconds: float


def measured_apart(job: Job, cores: Cores) -> EngineResult:
    """Measure in a separate process; if it fails, return a result with the failure."""
    patience_seconds = _PATIENCE_SECONDS + job.seconds * (job.rounds + 1)
    try:
        return in_child(cores, patience_seconds, _measure, job)
    except ChildError as error:
        return EngineResult(instance=job.instance, engine=job.engine, failure=str(error))


def _measure(job: Job) -> EngineResult:
    """Run the engine in this process, and score its answers."""
    place = engine(job.engine, seconds=job.seconds)
    before_mb = memory_mebibytes("VmRSS")
    problem = job.instance.problem()
    solved = [_solve(place, problem) for _ in range(job.rounds)]
    peak_mb = memory_mebibytes("VmHWM") - before_mb
    solution = solved[0].solution
    levels = score.levels(problem, solution.replicas)
    return EngineResult(
        instance=job.instance,
        engine=job.engine,
        variants=len(problem.variants),
        nodes=len(problem.free),
        cpu_seconds=tuple(one.cpu_seconds for one in solved),
        wall_seconds=tuple(one.wall_seconds for one in solved),
        peak_mb=peak_mb,
        plans=tuple(_digest(one.solution) for one in solved),
        levels=levels,
        bounds={
            proof.level: Bound(value=levels[proof.level], bound=proof.bound, total=max(1, proof.total))
            for proof in solution.proofs
            if proof.level in levels
        },
        unmet=tuple(score.unmet(problem, solution.replicas)),
        pending_accelerators=pending_accelerators(job.engine, problem),
        wrong=(*wrong(problem, solution), *_understatements(solution, levels)),
    )


def _solve(place: Engine, problem: PlacementProblem) -> Solved:
    gc.collect()
    with without_collection():  # as in the planning worker
        wall, cpu = time.perf_counter(), time.process_time()
        solution = place(problem)
        cpu_seconds, wall_seconds = time.process_time() - cpu, time.perf_counter() - wall
    return Solved(solution=solution, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


def _digest(solution: Solution) -> str:
    """Return a digest that two answers share only if their replicas and placements are equal."""
    return hashlib.sha256(repr((solution.replicas, solution.placements)).encode()).hexdigest()[:16]


def _understatements(solution: Solution, levels: Mapping[str, int]) -> list[str]:
    """Return the values that an answer claims too low."""
    return [
        f"{proof.level}: reported as {proof.value}, is {levels[proof.level]}"
        for proof in solution.proofs
        if levels.get(proof.level, 0) > proof.value
    ]
