"""One engine on one instance, in a process of its own on a core of its own."""

from __future__ import annotations

import gc
import time

from controller.planning.problem import PlacementProblem
from controller.uncollected import uncollected
from hack.bench.child import ChildError, in_child, memory_mb
from hack.bench.cores import Cores
from hack.bench.placement import judging
from hack.bench.placement.engines import Engine, engine, pending_accelerators
from hack.bench.placement.judging import Solved, digest
from hack.bench.placement.outcome import Job, Outcome
from hack.fleets import score
from hack.fleets.scenario import Scenario, after

_PATIENCE_SECONDS = 300.0
"""For generating, importing and judging, beside the time that solving may take."""

_MOST_STEPS = 100


def run(job: Job, cores: Cores) -> Outcome:
    """Measure in a process of its own; what goes wrong there is the outcome."""
    patience_seconds = _PATIENCE_SECONDS + job.seconds * min(_MOST_STEPS, job.rounds + 1)
    try:
        return in_child(cores, patience_seconds, measured, job)
    except ChildError as error:
        return Outcome(instance=job.instance, engine=job.engine, failure=str(error))


def measured(job: Job) -> Outcome:
    """Run the engine and judge its answers."""
    place = engine(job.engine, seconds=job.seconds, is_race=job.is_race)
    before_mb = memory_mb("VmRSS")
    scenario = job.instance.scenario()
    solved = _sequence(place, scenario) if scenario.demands else _repeats(place, scenario, job.rounds)
    peak_mb = memory_mb("VmHWM") - before_mb
    steps = solved if scenario.demands else solved[:1]
    first, moves = solved[0], steps[1:] or steps
    pending = [pending_accelerators(job.engine, step.problem) for step in steps]
    return Outcome(
        instance=job.instance,
        engine=job.engine,
        variants=len(first.problem.variants),
        nodes=len(first.problem.free),
        steps=len(steps),
        cpu_seconds=tuple(one.cpu_seconds for one in solved),
        wall_seconds=tuple(one.wall_seconds for one in solved),
        peak_mb=peak_mb,
        plans=() if scenario.demands else tuple(digest(one.solution) for one in solved),
        levels=judging.levels(steps),
        bounds={} if scenario.demands else judging.bounds(first),
        unmet=judging.mean_unmet(steps),
        used_accelerators=judging.total(score.used_accelerators, moves),
        started_accelerators=judging.total(score.started_accelerators, moves),
        stopped_accelerators=judging.total(score.stopped_accelerators, moves),
        reversals=judging.reversals(steps),
        pending_accelerators=None if None in pending else sum(count or 0 for count in pending),
        wrong=tuple(text for step in steps for text in judging.faults(step)),
    )


def _repeats(place: Engine, scenario: Scenario, rounds: int) -> list[Solved]:
    return [_solve(place, scenario.problem) for _ in range(rounds)]


def _sequence(place: Engine, scenario: Scenario) -> list[Solved]:
    """Solve one problem after the other; each begins where the last answer left off."""
    solved = [_solve(place, scenario.problem)]
    for demands in scenario.demands:
        last = solved[-1]
        solved.append(_solve(place, after(last.problem, last.solution, demands)))
    return solved


def _solve(place: Engine, problem: PlacementProblem) -> Solved:
    gc.collect()
    with uncollected():  # as in the worker that plans
        wall, cpu = time.perf_counter(), time.process_time()
        solution = place(problem)
        cpu_seconds, wall_seconds = time.process_time() - cpu, time.perf_counter() - wall
    return Solved(problem=problem, solution=solution, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)
