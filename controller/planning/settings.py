"""The parameters of planning that a user may choose."""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.ranges import negative_or_endless, refuse


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Prices and limits of planning. Raises ValueError for an invalid duration."""

    standing_seconds: float = 600.0
    """How long a replica mix is expected to last, in seconds: start costs are amortized over this time."""

    most_moves: int = 0
    """The maximum number of replicas that one plan evicts to defragment nodes; with 0 they are only reported.
    """

    relief_solves: int = 12
    """The maximum number of candidate reliefs that are evaluated for one plan, by planning again."""

    deterministic_seconds: float = 2.0
    """Effort limit of each placement in CP-SAT's deterministic time, for up to about 2,500 models on five
    node types; it is raised in proportion for more models, or for more shared sizes and types.
    """

    wall_seconds: float = 20.0
    """Safety limit in wall time for each placement; one that reaches it may differ from run to run."""

    names_all: bool = True
    """Whether messages in one namespace may name variants of other namespaces."""

    seed: int = 1
    """Random seed of the solver."""

    def __post_init__(self) -> None:
        wrong = negative_or_endless(standing_seconds=self.standing_seconds)
        if not self.standing_seconds:
            wrong.append("standing_seconds: must be greater than 0")
        refuse(wrong)
