"""Everything that one run of the placement benchmark measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.bench.compared import OURS
from hack.bench.goals import Goal
from hack.bench.measurement import Measurement
from hack.bench.placement.chart import cost_chart, time_chart
from hack.bench.placement.goals import goals
from hack.bench.placement.joint import Joint, joint_goals, joint_table
from hack.bench.placement.moving import Moving, moving_goals, moving_table
from hack.bench.placement.outcome import Outcome
from hack.bench.placement.planning import Planned, planning_goals, planning_table
from hack.bench.placement.race import Race, race_goals, race_table
from hack.bench.placement.repeating import Again, again_goals, again_table
from hack.bench.placement.report import answers_table, duels_table, failures, goals_table, sequences_table
from hack.bench.placement.schedule import PlacementSettings
from hack.bench.placement.small import small_goals, small_table


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementMeasurement(Measurement):
    """What came of measuring placement."""

    settings: PlacementSettings
    outcomes: tuple[Outcome, ...]
    moves: tuple[Moving, ...] = ()
    plans: tuple[Planned, ...] = ()
    again: tuple[Again, ...] = ()
    races: tuple[Race, ...] = ()
    joint: Joint | None = None

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured, in the order of their numbers; those without one are last."""
        slowness = self.pace.slowness
        found = [
            *goals(self.outcomes, slowness=slowness),
            *small_goals(self.outcomes, slowness=slowness),
            *race_goals(self.races),
            *moving_goals(self.moves, slowness=slowness),
            *planning_goals(self.plans, slowness=slowness),
            *again_goals(self.again),
            *(joint_goals(self.joint, slowness=slowness) if self.joint else ()),
        ]
        return sorted(found, key=lambda goal: goal.name[:2] if goal.name.startswith("T") else "U")

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "outcomes": [outcome.as_json() for outcome in self.outcomes],
            "moves": [one.as_json() for one in self.moves],
            "plans": [one.as_json() for one in self.plans],
            "again": [one.as_json() for one in self.again],
            "races": [one.as_json() for one in self.races],
            "joint": [self.joint.as_json()] if self.joint else [],
        }

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""
        found = (*self._of_outcomes(), *self._of_the_rest(), failures(self.outcomes))
        yield from (table for table in found if table)
        if self.goals:
            yield goals_table(self.goals)

    def _of_outcomes(self) -> Iterator[Sequence[str]]:
        single = [outcome for outcome in self.outcomes if outcome.steps == 1]
        if any(outcome.levels for outcome in single):
            yield answers_table(single, ours=OURS)
        if any(outcome.steps > 1 for outcome in self.outcomes):
            yield sequences_table(self.outcomes)
        if any(outcome.engine == OURS for outcome in self.outcomes) and len(self.settings.engines) > 1:
            yield duels_table(self.outcomes, ours=OURS)
        yield small_table(self.outcomes, slowness=self.pace.slowness)

    def _of_the_rest(self) -> Iterator[Sequence[str]]:
        if self.races:
            yield race_table(self.races)
        if self.moves:
            yield moving_table(self.moves)
        if self.plans:
            yield planning_table(self.plans)
        if self.again:
            yield again_table(self.again)
        if self.joint:
            yield joint_table(self.joint)


def write_charts(measured: PlacementMeasurement, folder: Path) -> None:
    """Write what the tables say as pictures; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "time.svg").write_text(time_chart(measured.outcomes), encoding="utf-8")
    (folder / "cost.svg").write_text(cost_chart(measured.outcomes, ours=OURS), encoding="utf-8")
