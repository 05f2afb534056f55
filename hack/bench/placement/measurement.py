"""Everything that one run of the placement benchmark measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hack.bench.compared import OURS
from hack.bench.frame import Frame, framed
from hack.bench.goals import Goal
from hack.bench.measurement import Measurement, Settings
from hack.bench.placement.catalogue import RULED, VERSION, Instance
from hack.bench.placement.chart import cost_chart, time_chart
from hack.bench.placement.children import run
from hack.bench.placement.engines import HIGHS, HIGHS_ROUGH, TEXTBOOK
from hack.bench.placement.goals import goals
from hack.bench.placement.joint import Joint, joint_goals, joint_table
from hack.bench.placement.joint import run as run_joint
from hack.bench.placement.moving import USED_PERCENT, Moving, moved, moving_goals, moving_table
from hack.bench.placement.outcome import Job, Outcome
from hack.bench.placement.planning import SIZES as PLANNED_SIZES
from hack.bench.placement.planning import Planned, planned, planning_goals, planning_table
from hack.bench.placement.report import answers_table, duels_table, failures, goals_table, sequences_table

_SLOW = (HIGHS, HIGHS_ROUGH, TEXTBOOK)
_SEQUENCES = "F13"
_REPEATED = {("F4-tight", 20): 100}
"""How often a small fleet is placed, to see whether the answer is always the same."""
JOINT = "joint"
"""Stands among the families for placing and then moving."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementSettings(Settings):
    """What to measure of placement."""

    families: tuple[str, ...]
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    engines: tuple[str, ...]
    most_highs: int
    """Models that HiGHS is tried with."""
    most_textbook: int
    """Models that our textbook model is tried with."""
    fragmented: tuple[str, ...] = ()
    """Families of clusters in which replicas are moved to make room."""
    nodes: tuple[int, ...] = ()
    """Of each of them."""
    plans: tuple[str, ...] = ()
    """Families of whole plans."""
    is_joint: bool = False
    """Whether a fleet is placed among pods that may move, which then do."""
    generator: int = VERSION

    def jobs(self) -> Iterator[Job]:
        """Yield what is measured: all engines on an instance, one after the other, small instances first."""
        for size in self.sizes:
            for family in self.families:
                for seed in self.seeds:
                    instance = Instance(family=family, size=size, seed=seed)
                    for engine in self.engines:
                        if self._is_tried(engine, instance):
                            yield self._job(engine, instance)

    def _is_tried(self, engine: str, instance: Instance) -> bool:
        """Tell whether an engine is asked: slow ones where they have a chance, and for one answer only."""
        if engine in _SLOW and instance.family.startswith(_SEQUENCES):
            return False
        if engine in (HIGHS, HIGHS_ROUGH) and instance.family in RULED:
            return False
        most = {HIGHS: self.most_highs, HIGHS_ROUGH: self.most_highs, TEXTBOOK: self.most_textbook}
        return instance.size <= most.get(engine, instance.size)

    def _job(self, engine: str, instance: Instance) -> Job:
        slow = engine in _SLOW
        return Job(
            instance=instance,
            engine=engine,
            seconds=self.seconds,
            rounds=1 if slow else self._rounds(engine, instance),
            is_shuffled=engine == OURS,
        )

    def _rounds(self, engine: str, instance: Instance) -> int:
        asked = _REPEATED.get((instance.family, instance.size), 0) if engine == OURS else 0
        return max(self.rounds, asked)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementMeasurement(Measurement):
    """What came of measuring placement."""

    settings: PlacementSettings
    outcomes: tuple[Outcome, ...]
    moves: tuple[Moving, ...] = ()
    plans: tuple[Planned, ...] = ()
    joint: Joint | None = None

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured, in the order of their numbers; those without one are last."""
        slowness = self.pace.slowness
        found = [
            *goals(self.outcomes, slowness=slowness),
            *moving_goals(self.moves, slowness=slowness),
            *planning_goals(self.plans, slowness=slowness),
            *(joint_goals(self.joint, slowness=slowness) if self.joint else ()),
        ]
        return sorted(found, key=lambda goal: goal.name[:2] if goal.name.startswith("T") else "U")

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "outcomes": [outcome.as_json() for outcome in self.outcomes],
            "moves": [one.as_json() for one in self.moves],
            "plans": [one.as_json() for one in self.plans],
            "joint": [self.joint.as_json()] if self.joint else [],
        }

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""
        single = [outcome for outcome in self.outcomes if outcome.steps == 1]
        if any(outcome.levels for outcome in single):
            yield answers_table(single, ours=OURS)
        if any(outcome.steps > 1 for outcome in self.outcomes):
            yield sequences_table(self.outcomes)
        if any(outcome.engine == OURS for outcome in self.outcomes) and len(self.settings.engines) > 1:
            yield duels_table(self.outcomes, ours=OURS)
        if self.moves:
            yield moving_table(self.moves)
        if self.plans:
            yield planning_table(self.plans)
        if self.joint:
            yield joint_table(self.joint)
        if complaints := failures(self.outcomes):
            yield complaints
        if self.goals:
            yield goals_table(self.goals)


def measure(settings: PlacementSettings, *, progress: Callable[[str], None]) -> PlacementMeasurement:
    """Measure every engine on every instance."""
    with framed(progress=progress) as frame:
        outcomes = tuple(_measured(job, frame) for job in settings.jobs())
        moves = tuple(_moved(settings, frame))
        plans = tuple(_planned(settings, frame))
        joint = _joint(settings, frame) if settings.is_joint else None
    return PlacementMeasurement(
        settings=settings,
        machine=frame.machine(),
        pace=frame.pace(),
        outcomes=outcomes,
        moves=moves,
        plans=plans,
        joint=joint,
    )


def write_charts(measured: PlacementMeasurement, folder: Path) -> None:
    """Write what the tables say as pictures; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "time.svg").write_text(time_chart(measured.outcomes), encoding="utf-8")
    (folder / "cost.svg").write_text(cost_chart(measured.outcomes, ours=OURS), encoding="utf-8")


def _moved(settings: PlacementSettings, frame: Frame) -> Iterator[Moving]:
    """Measure every fragmented cluster, here: it takes little of anything."""
    for family in settings.fragmented:
        for nodes in settings.nodes:
            for used in USED_PERCENT:
                frame.step(f"{family}/{nodes}/{used} %")
                for seed in settings.seeds:
                    yield moved(
                        family, nodes, used, seed=seed, rounds=settings.rounds, seconds=settings.seconds
                    )


def _planned(settings: PlacementSettings, frame: Frame) -> Iterator[Planned]:
    """Measure every whole plan, here."""
    for size in sorted({*settings.sizes} & {*PLANNED_SIZES}):
        for family in settings.plans:
            for seed in settings.seeds:
                frame.step(f"{family}/{size}/{seed}")
                yield from planned(family, size, seed=seed, seconds=settings.seconds)


def _joint(settings: PlacementSettings, frame: Frame) -> Joint:
    frame.step(JOINT)
    return run_joint(frame.cores, seconds=settings.seconds)


def _measured(job: Job, frame: Frame) -> Outcome:
    """Measure once, and once more in another process where determinism is in question."""
    frame.step(f"{job.instance.name}: {job.engine}")
    first = run(replace(job, is_shuffled=False), frame.cores)
    if not job.is_shuffled or not first.plans:
        return first
    again = run(replace(job, rounds=1), frame.cores)
    return replace(first, plans=first.plans + again.plans, shuffled=again.shuffled)
