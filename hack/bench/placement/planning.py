"""The CPU time of whole plans, as the controller makes them, one after the other.

The first plan is for a running fleet. Then it is applied, a few loads change, and the next plan is made, and
so on. The steps are timed within `plan()`.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from controller.planning.checker import check
from controller.planning.decision import Plan
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from controller.variants.solver_worker import without_collection
from hack.bench.goals import Goal, short_number
from hack.bench.placement.watching import Step, watch_plans
from hack.bench.table import Columns, group_by, mean_of, table_lines
from hack.fleets.worlds import FACTORS, carried_out, change_loads, world

FAMILIES: Final = tuple(FACTORS)
FIRST: Final = "first"
CHANGE: Final = "1 % changed"

SHARE: Final = 0.01
"""Share of the running models whose loads change from one plan to the next."""

CHANGES: Final = {200: 5, 2000: 5}
"""The number of plans after the first, by number of models."""

_INTERVAL_SECONDS: Final = 15.0
"""Time between plans: the default interval of the controller."""

_BEGAN_SECONDS: Final = 1.8e9
"""Time of the first plan, an arbitrary Unix time."""

_PLAN_SECONDS: Final = {200: 1.0, 2000: 3.0}
"""Most CPU time of a plan by number of models, at the pace of the goals' machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cycle:
    """One plan, with its inputs and results."""

    snapshot: Snapshot
    made: Plan
    cpu_seconds: float
    steps: dict[Step, float]
    """CPU seconds of each step that was executed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFigures:
    """The figures of one plan."""

    family: str
    size: int
    cycle: str
    variants: int
    replicas: int
    """Running replicas before the plan."""
    plan_seconds: float
    """CPU seconds of the whole plan."""
    steps: dict[str, float]
    """CPU seconds of each step."""
    short: int
    """Number of variants with unmet demand of their models."""
    cost: float
    status: str
    faults: tuple[str, ...]


def measure_plans(family: str, size: int, *, seconds: float) -> Iterator[PlanFigures]:
    """Measure a first plan, and one after each of some changes; `seconds` is the wall-clock limit."""
    snapshot = world(family, size, seed=0)
    settings = Settings(wall_seconds=seconds)
    for number, cycle in enumerate(_cycles(snapshot, settings, changes=CHANGES[size])):
        yield PlanFigures(
            family=family,
            size=size,
            cycle=CHANGE if number else FIRST,
            variants=len(cycle.snapshot.variants),
            replicas=sum(len(variant.replicas) for variant in cycle.snapshot.variants),
            plan_seconds=cycle.cpu_seconds,
            steps={step.value: cycle.steps.get(step, 0.0) for step in Step},
            short=sum(decision.unmet_per_mille > 0 for decision in cycle.made.decisions),
            cost=float(cycle.made.cost),
            status=cycle.made.solver.status,
            faults=check(cycle.snapshot, cycle.made),
        )


def _cycles(snapshot: Snapshot, settings: Settings, *, changes: int) -> Iterator[Cycle]:
    """Plan repeatedly: apply each plan, change some loads, and plan again."""
    for number in range(changes + 1):
        taken_seconds = _BEGAN_SECONDS + number * _INTERVAL_SECONDS
        cycle = _cycle(replace(snapshot, taken_seconds=taken_seconds), settings)
        yield cycle
        after = carried_out(snapshot, cycle.made)
        snapshot = change_loads(after, share=SHARE, seed=number)


def _cycle(snapshot: Snapshot, settings: Settings) -> Cycle:
    gc.collect()
    with watch_plans() as watch, without_collection():
        began = time.process_time()
        made = plan(snapshot, settings)
        spent = time.process_time() - began
    return Cycle(
        snapshot=snapshot,
        made=made,
        cpu_seconds=spent,
        steps=dict(watch.seconds),
    )


def _median_ms(seconds: Callable[[PlanFigures], float]) -> Callable[[Sequence[PlanFigures]], str]:
    return lambda group: short_number(1000 * statistics.median(map(seconds, group)))


def _of_step(step: Step) -> Callable[[Sequence[PlanFigures]], str]:
    return _median_ms(lambda one: one.steps[step])


_COLUMNS: Final[Columns[Sequence[PlanFigures]]] = (
    ("whole plans", lambda group: group[0].family),
    ("models", lambda group: str(group[0].size)),
    ("cycle", lambda group: group[0].cycle),
    ("plans", lambda group: str(len(group))),
    ("replicas", lambda group: str(group[0].replicas)),
    ("plan ms", _median_ms(lambda one: one.plan_seconds)),
    *((f"{step} ms", _of_step(step)) for step in Step),
    ("variants short", mean_of(lambda one: one.short)),
    ("cost an hour", mean_of(lambda one: one.cost)),
    ("possible", lambda group: "no" if any(one.faults for one in group) else "yes"),
)


def planning_table(results: Sequence[PlanFigures]) -> list[str]:
    """Return the lines of the table, with medians over equal cycles, in milliseconds of CPU."""
    return table_lines(_COLUMNS, group_by(results, lambda one: (one.family, one.size, one.cycle)))


def planning_goals(results: Sequence[PlanFigures], *, slowness: float) -> Iterator[Goal]:
    """Yield the CPU time of a plan after a few loads changed, at the pace of the goals' machine."""
    for family, size in product(FAMILIES, CHANGES):
        spent = [
            one.plan_seconds / slowness
            for one in results
            if (one.family, one.size, one.cycle) == (family, size, CHANGE)
        ]
        if spent:
            name = f"T5_plan_after_a_change_in_{family}_of_{size}"
            yield Goal(name=name, value=statistics.median(spent), unit="s", most=_PLAN_SECONDS[size])
    if results:
        wrong = sum(bool(one.faults) for one in results)
        yield Goal(name="impossible_plans", value=wrong, unit="plans", most=0)
