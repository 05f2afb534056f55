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
from hack.bench.placement.moving import USED_PERCENT, Moving, moved, moving_goals, moving_table
from hack.bench.placement.outcome import Job, Outcome
from hack.bench.placement.report import answers_table, duels_table, failures, sequences_table

_SLOW = (HIGHS, HIGHS_ROUGH, TEXTBOOK)
_SEQUENCES = "F13"


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
            rounds=1 if slow else self.rounds,
            is_shuffled=engine == OURS,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementMeasurement(Measurement):
    """What came of measuring placement."""

    settings: PlacementSettings
    outcomes: tuple[Outcome, ...]
    moves: tuple[Moving, ...] = ()

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        return [*goals(self.outcomes), *moving_goals(self.moves, slowness=self.pace.slowness)]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "outcomes": [outcome.as_json() for outcome in self.outcomes],
            "moves": [one.as_json() for one in self.moves],
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
        if complaints := failures(self.outcomes):
            yield complaints


def measure(settings: PlacementSettings, *, progress: Callable[[str], None]) -> PlacementMeasurement:
    """Measure every engine on every instance."""
    with framed(progress=progress) as frame:
        outcomes = tuple(_measured(job, frame) for job in settings.jobs())
        moves = tuple(_moved(settings, frame))
    return PlacementMeasurement(
        settings=settings, machine=frame.machine(), pace=frame.pace(), outcomes=outcomes, moves=moves
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


def _measured(job: Job, frame: Frame) -> Outcome:
    """Measure once, and once more in another process where determinism is in question."""
    frame.step(f"{job.instance.name}: {job.engine}")
    first = run(replace(job, is_shuffled=False), frame.cores)
    if not job.is_shuffled or not first.plans:
        return first
    again = run(replace(job, rounds=1), frame.cores)
    return replace(first, plans=first.plans + again.plans, shuffled=again.shuffled)
