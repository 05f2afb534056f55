"""What a whole plan takes, from a snapshot to sentences: by steps, ours beside a rule of thumb's."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

from controller.planning.assembling import assembled
from controller.planning.case import Answer
from controller.planning.checker import check
from controller.planning.columns import ColumnModel
from controller.planning.decision import Plan, SolverReport, SolverStatus
from controller.planning.plan import plan
from controller.planning.preparing import Prepared, prepared
from controller.planning.problem import Solution
from controller.planning.settings import Settings, Strategy
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from controller.planning.strategies import STRATEGIES
from hack.bench.compared import OURS
from hack.bench.goals import Goal, shown
from hack.bench.placement.engines import limits
from hack.bench.placement.worlds import FACTORS, carried_out, changed, world
from hack.bench.table import Row, aligned

T = TypeVar("T")

FAMILIES: Final = tuple(FACTORS)
SIZES: Final = (500, 2000, 10_000)
FIRST: Final = "first"
CHANGE: Final = "1 % changed"

_SHARE: Final = 0.01
_STRATEGIES: Final = {OURS: Strategy.OPTIMAL, "wva-greedy": Strategy.WVA_GREEDY}
_CHANGE_MS: Final = {500: 30.0, 2000: 100.0, 10_000: 500.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """The CPU seconds of one plan, and of its steps when each is taken alone."""

    family: str
    size: int
    seed: int
    engine: str
    cycle: str
    variants: int
    replicas: int
    """That run before it."""
    plan_seconds: float
    """Of all, with what would help those who go short and what could move."""
    formulate_seconds: float
    place_seconds: float
    explain_seconds: float
    check_seconds: float
    short: int
    """Variants of models that do not get all they need."""
    cost: float
    faults: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as a member of a document."""
        return asdict(self)


def planned(family: str, size: int, *, seed: int, seconds: float) -> Iterator[Planned]:
    """Measure two plans by each: of a fleet as it is found, and once that runs and a few reports changed."""
    for engine, strategy in _STRATEGIES.items():
        settings = Settings(strategy=strategy, wall_seconds=seconds)
        found = world(family, size, seed=seed)
        state = PlanningState()
        for cycle in (FIRST, CHANGE):
            spent, made, next_state = _plan(found, state, settings)
            steps = _steps(found, state, settings)
            yield Planned(
                family=family,
                size=size,
                seed=seed,
                engine=engine,
                cycle=cycle,
                variants=len(found.variants),
                replicas=sum(len(variant.replicas) for variant in found.variants),
                plan_seconds=spent,
                formulate_seconds=steps[0],
                place_seconds=steps[1],
                explain_seconds=steps[2],
                check_seconds=steps[3],
                short=sum(decision.unmet_per_mille > 0 for decision in made.decisions),
                cost=float(made.cost),
                faults=check(found, made),
            )
            found, state = changed(carried_out(found, made), share=_SHARE, seed=seed), next_state


def _plan(found: Snapshot, state: PlanningState, settings: Settings) -> tuple[float, Plan, PlanningState]:
    spent, (made, next_state) = _timed(lambda: plan(found, state, settings))
    return spent, made, next_state


def _steps(found: Snapshot, state: PlanningState, settings: Settings) -> list[float]:
    """Return the seconds of formulating, placing, explaining and checking."""
    formulated, given = _timed(lambda: prepared(found, state, settings))
    placed, answer = _timed(lambda: _answer(given, settings))
    explained, made = _timed(lambda: _explained(answer, settings))
    checked, _ = _timed(lambda: check(found, made))
    return [formulated, placed, explained, checked]


def _answer(given: Prepared, settings: Settings) -> Answer:
    """Return the answer as the planner asks for it."""
    if settings.strategy is not Strategy.OPTIMAL:
        return given.granted(STRATEGIES[settings.strategy], settings.strategy)
    model = ColumnModel(given.problem, certifies=settings.certificate)
    effort = limits(OURS, seconds=settings.wall_seconds)
    answer = given.answered(model.place(effort), Strategy.OPTIMAL)
    return replace(answer, wanted=Solution(replicas=model.alone(), placements=()))


def _explained(answer: Answer, settings: Settings) -> Plan:
    report = SolverReport(
        status=SolverStatus.FEASIBLE, unproven="", gap=None, message="", strategy=settings.strategy
    )
    return assembled(answer, report)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    gc.collect()
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


def planning_table(found: Sequence[Planned]) -> list[str]:
    """Return the lines of the table: medians over the seeds, in milliseconds of CPU."""
    head = (
        "whole plans", "models", "cycle", "engine", "replicas", "plan ms", "formulate ms", "place ms",
        "explain ms", "check ms", "variants short", "cost an hour", "possible",
    )  # fmt: skip
    groups: dict[tuple[str, int, str, str], list[Planned]] = {}
    for one in found:
        groups.setdefault((one.family, one.size, one.cycle, one.engine), []).append(one)
    rows: list[Row] = [head]
    for (family, size, cycle, engine), group in groups.items():
        steps = zip(*(_milliseconds(one) for one in group), strict=True)
        rows.append(
            (
                family,
                str(size),
                cycle,
                engine,
                str(group[0].replicas),
                *(shown(statistics.median(step)) for step in steps),
                shown(statistics.mean(one.short for one in group)),
                shown(statistics.mean(one.cost for one in group)),
                "no" if any(one.faults for one in group) else "yes",
            )
        )
    return aligned(rows)


def planning_goals(found: Sequence[Planned], *, slowness: float) -> Iterator[Goal]:
    """Yield what placing takes in a plan after few reports changed, at the pace of the goals' machine."""
    for size, most in _CHANGE_MS.items():
        spent = [
            one.place_seconds * 1000 / slowness
            for one in found
            if (one.size, one.engine, one.cycle) == (size, OURS, CHANGE)
        ]
        if spent:
            yield Goal(name=f"T5_placing_in_a_plan_of_{size}", value=max(spent), unit="ms", most=most)


def _milliseconds(one: Planned) -> tuple[float, ...]:
    steps = (one.formulate_seconds, one.place_seconds, one.explain_seconds, one.check_seconds)
    return tuple(1000 * seconds for seconds in (one.plan_seconds, *steps))
