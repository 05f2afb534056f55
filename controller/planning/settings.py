"""The numbers that a person may choose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controller.planning.ranges import negative_or_endless


class UnmetUnit(StrEnum):
    """What a share of a model's demand that is not met counts for, beside others of the same priority."""

    VALUE = "value"
    """What it costs to serve it, and at least a quarter of the level's average: most value is served."""

    MODEL = "model"
    """The same for every model: most models are served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Prices and limits of planning. Raises ValueError when a duration is none."""

    standing_seconds: float = 600.0
    """How long a mix of replicas is expected to stand: what its starts cost is spread over this time."""

    flap_reversals: int = 0
    """How often a variant may change direction within the window before cost alone turns it no more; 0 for
    as often as it likes."""

    flap_window_seconds: float = 3600.0
    """Length of that window."""

    most_preempted: int = 10**6
    """How many replicas that their models need one plan may take from them for higher priorities."""

    unmet_unit: UnmetUnit = UnmetUnit.VALUE
    """Who goes short among models of one priority."""

    most_moves: int = 0
    """How many replicas one plan may evict to bring together what is free; with 0 it only says how many."""

    relief_solves: int = 12
    """How many changes that might help those who go short are tried, by planning again, for one plan."""

    deterministic_seconds: float = 2.0
    """Effort limit in CP-SAT's own reproducible unit, for up to some 2,500 models on five types of nodes; for
    more of them, and where they share more sizes and types, in proportion."""

    wall_seconds: float = 20.0
    """Safety limit by the clock; a plan that hits it may differ from run to run."""

    names_all: bool = True
    """Whether sentences about one namespace name variants of others."""

    seed: int = 1
    """Of the solver's random choices."""

    def __post_init__(self) -> None:
        """Refuse durations that are none."""
        wrong = negative_or_endless(standing_seconds=self.standing_seconds)
        if not self.standing_seconds:
            wrong.append("standing_seconds: must be greater than 0")
        if wrong:
            raise ValueError("; ".join(wrong))
