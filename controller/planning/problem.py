"""The placement problem in whole numbers: what the solver sees, and nothing else.

Variants and nodes are named by their index; both are sorted by name, so equal snapshots make equal problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

PER_MILLE = 1000

UNLIMITED_REPLICAS = 1_000_000
"""Where counting stops when nothing else bounds a variant."""


class NumbersTooLargeError(ValueError):
    """A sum of the problem could exceed what the solver can represent exactly."""


def per_mille_missing(requirement: int, provided: int) -> int:
    """Return the per mille of a requirement that is not provided, rounded up; 0 when nothing is required."""
    return -(-PER_MILLE * max(0, requirement - provided) // requirement) if requirement else 0


class Stage(IntEnum):
    """What a shortfall means; a lower stage matters infinitely more than a higher one."""

    MINIMUM = 0
    """Minimum replicas, and the one replica that keeps a model warm."""

    DEMAND = 1
    """Required capacity."""

    CONTINUITY = 2
    """Ready capacity until replacements are ready too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantTerms:
    """One variant in numbers. Replicas that leave anyway are not counted anywhere."""

    name: str
    """For messages only."""

    accelerators: int
    """Per replica, on one node."""

    cost: int
    """Per replica."""

    transition_price: int
    """For each replica started or stopped, in the unit of cost."""

    current: int
    bound: tuple[int | None, ...]
    """Node of each replica that has one, in removal order; None for a node outside the problem.
    Replicas without a node are removed before all of them."""

    ready: int
    """Removed last."""

    lower: int
    """Hard: replicas that must not be touched."""

    upper: int
    """Hard."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverRow:
    """A requirement: sum of per-replica amounts >= requirement, or a shortfall in per mille of it.

    The shortfall is counted per requirement, not by its size: a small model counts as much as a large one of
    the same priority.
    """

    name: str
    """For messages only."""

    stage: Stage
    priority: int
    model: int
    """Whose requirement it is: index among the models."""

    requirement: int
    terms: tuple[tuple[int, int], ...]
    """(variant, amount per replica)."""

    @property
    def level(self) -> tuple[Stage, int]:
        """Where its shortfall stands in the lexicographic order; continuity knows no priority."""
        return (self.stage, 0 if self.stage is Stage.CONTINUITY else self.priority)

    def shortfall(self, provided: int) -> int:
        """Return the per mille of the requirement that an amount leaves uncovered, rounded up."""
        return per_mille_missing(self.requirement, provided)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Nodes that the same variants may use, and the slot sizes that decide what fits.

    When every size divides the next one, replicas fit exactly when, for each size s, the replicas of size
    k >= s take at most as many s-slots (k / s each) as the nodes have: each replica uses up exactly k / s of
    them, whichever node it goes to. Otherwise a bin is one node with slots of a single accelerator.
    """

    nodes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Ascending, each dividing the next."""

    variants: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementProblem:
    """All of it."""

    variants: tuple[VariantTerms, ...]
    free: tuple[int, ...]
    """Free accelerators of each node if every bound replica stays; negative when overcommitted."""

    bins: tuple[Bin, ...]
    rows: tuple[CoverRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """An answer to a placement problem."""

    replicas: tuple[int, ...]
    """Of each variant: those that stay on their nodes plus those that get a place."""

    placements: tuple[tuple[int, int, int], ...]
    """(variant, node, replicas) for those that get a place, sorted."""

    unproven: str = ""
    """The first level that was not proven optimal; empty when all were."""

    gap: float = 0.0
    """Relative distance to the bound at that level."""


def provided(problem: PlacementProblem, row: CoverRow, replicas: tuple[int, ...]) -> int:
    """Return what the replicas provide for a row; for continuity only the ready ones, which go last."""
    if row.stage is Stage.CONTINUITY:
        return sum(amount * min(replicas[v], problem.variants[v].ready) for v, amount in row.terms)
    return sum(amount * replicas[v] for v, amount in row.terms)


def freed(problem: PlacementProblem, replicas: tuple[int, ...]) -> list[int]:
    """Return the free accelerators of each node after the removals that these replica counts imply."""
    free = list(problem.free)
    for variant, count in zip(problem.variants, replicas, strict=True):
        for node in variant.bound[: max(0, len(variant.bound) - count)]:
            if node is not None:
                free[node] += variant.accelerators
    return free
