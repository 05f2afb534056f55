"""What was played, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass

from controller.closedloop.outcome import Outcome
from controller.closedloop.scenario import Scenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """One scenario under some policies, in the order in which they were asked for."""

    scenario: Scenario
    outcomes: tuple[Outcome, ...]
    warnings: tuple[str, ...] = ()
