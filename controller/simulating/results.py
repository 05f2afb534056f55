"""The results of a simulation, independent of their presentation."""

from __future__ import annotations

from dataclasses import dataclass

from controller.closedloop.outcome import Outcome
from controller.closedloop.scenario import Scenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """One scenario under several policies, in the requested order."""

    scenario: Scenario
    outcomes: tuple[Outcome, ...]
    warnings: tuple[str, ...] = ()
