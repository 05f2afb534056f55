"""`python -m hack.bench.placement.child JOB`: measure one engine on one instance; the outcome is printed.

A process of its own knows what it alone takes of memory, and nothing is left over from who ran before.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.planning.problem import PlacementProblem, Scope, Solution
from hack.bench.placement import score
from hack.bench.placement.engines import Engine, engine, pending_accelerators
from hack.bench.placement.outcome import Bound, Job, Outcome
from hack.bench.placement.permuted import permuted
from hack.bench.placement.scenario import Scenario, after
from hack.bench.placement.score import Unmet
from hack.bench.placement.verify import wrong

_KIB_PER_MIB = 1024
_SHUFFLE_SEED = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """One answer to one problem."""

    problem: PlacementProblem
    solution: Solution
    cpu_seconds: float
    wall_seconds: float


def measured(job: Job) -> Outcome:
    """Run the engine and judge its answers."""
    place = engine(job.engine, seconds=job.seconds)
    before_mb = _memory_mb("VmRSS")
    scenario = job.instance.scenario()
    solved = _sequence(place, scenario) if scenario.demands else _repeats(place, scenario, job.rounds)
    peak_mb = _memory_mb("VmHWM") - before_mb
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
        shuffled=_shuffled(place, first) if job.is_shuffled and not scenario.demands else "",
        levels=_levels(steps),
        bounds={} if scenario.demands else _bounds(first.solution),
        unmet=_mean([score.unmet(step.problem, step.solution.replicas) for step in steps]),
        used_accelerators=_sum(score.used_accelerators, moves),
        started_accelerators=_sum(score.started_accelerators, moves),
        stopped_accelerators=_sum(score.stopped_accelerators, moves),
        pending_accelerators=None if None in pending else sum(count or 0 for count in pending),
        wrong=tuple(text for step in steps for text in _wrong(step)),
    )


def digest(solution: Solution) -> str:
    """Return what two answers share only if they place everything alike."""
    return hashlib.sha256(repr((solution.replicas, solution.placements)).encode()).hexdigest()[:16]


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
    wall, cpu = time.perf_counter(), time.process_time()
    solution = place(problem)
    cpu_seconds, wall_seconds = time.process_time() - cpu, time.perf_counter() - wall
    return Solved(problem=problem, solution=solution, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


def _shuffled(place: Engine, first: Solved) -> str:
    """Place the same models in another order; return how the answer differs."""
    other = permuted(first.problem, seed=_SHUFFLE_SEED)
    told = other.told(place(other.problem))
    if digest(told) == digest(first.solution):
        return "same"
    values = [score.levels(first.problem, answer.replicas) for answer in (told, first.solution)]
    return "alike" if values[0] == values[1] else "another"


def _levels(steps: Sequence[Solved]) -> dict[str, int]:
    """Return the sum of each level over the steps, in order."""
    total = Counter[str]()
    for step in steps:
        total.update(score.levels(step.problem, step.solution.replicas))
    names = [name for name in total if name != score.COST]
    return {name: total[name] for name in [*sorted(names, key=_order), score.COST]}


def _order(name: str) -> tuple[int, str]:
    stages = ("minimum", "demand", "continuity")
    return stages.index(name.partition(" ")[0]), name


def _wrong(step: Solved) -> list[str]:
    """Return what is impossible about an answer, and what it says of itself that is not so."""
    values = score.levels(step.problem, step.solution.replicas)
    said = [proof for proof in step.solution.proofs if values.get(proof.level, proof.value) != proof.value]
    untrue = [f"{proof.level}: said to be {proof.value}, is {values[proof.level]}" for proof in said]
    return [*wrong(step.problem, step.solution), *untrue]


def _bounds(solution: Solution) -> dict[str, Bound]:
    """Return what was proven of each level; that nothing is less than 0 holds whatever was looked at."""
    return {
        proof.level: Bound(
            value=proof.value,
            bound=proof.bound,
            is_global=proof.scope is Scope.EVERYTHING or proof.value == 0,
        )
        for proof in solution.proofs
    }


def _mean(steps: Sequence[Sequence[Unmet]]) -> tuple[Unmet, ...]:
    """Return the mean over steps, priority by priority."""
    found: dict[int, list[Unmet]] = {}
    for unmet in (unmet for step in steps for unmet in step):
        found.setdefault(unmet.priority, []).append(unmet)
    return tuple(
        Unmet(
            priority=priority,
            by_value_percent=sum(unmet.by_value_percent for unmet in group) / len(group),
            by_model_percent=sum(unmet.by_model_percent for unmet in group) / len(group),
            models=round(sum(unmet.models for unmet in group) / len(group)),
        )
        for priority, group in sorted(found.items())
    )


def _sum(count: score.Count, steps: Sequence[Solved]) -> int:
    return sum(count(step.problem, step.solution.replicas) for step in steps)


def _memory_mb(name: str) -> float:
    """Return a line of this process's memory account; the kernel's peak of this program, not its parent's."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / _KIB_PER_MIB
    raise OSError(f"the kernel does not tell {name}")


def main(text: str) -> int:
    """Measure what a job says and print the outcome, or why there is none."""
    job = Job.from_json(json.loads(text))
    try:
        outcome = measured(job)
    except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
        outcome = Outcome(
            instance=job.instance, engine=job.engine, failure=f"{type(error).__name__}: {error}"
        )
    print(json.dumps(outcome.as_json()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
