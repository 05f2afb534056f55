"""The placement problem in whole numbers: what the solver sees, and nothing else.

Variants and nodes are named by their index; both are sorted by name, so equal snapshots make equal problems.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.planning.warm_start import DualPrices

PER_MILLE = 1000

UNLIMITED_REPLICAS = 1_000_000
"""Where counting stops when nothing else bounds a variant."""


NO_DOMAIN = -1
"""Of a node without the topology's label."""

EMPTY_DOMAIN = 10**9
"""Of no node: counts where pods are spread, and never has any."""


EXACT_LIMIT = 2**53
"""Sums stay below this: linear relaxations work in double precision."""


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


COST = "cost"
"""Name of the last level."""

Level = tuple[Stage, int]
"""Where a shortfall stands in the lexicographic order: its stage and priority."""


def level_name(stage: Stage, priority: int) -> str:
    """Return `demand of priority 3`: what a level before cost is called."""
    name = stage.name.lower()
    return name if stage is Stage.CONTINUITY else f"{name} of priority {priority}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SpreadTerms:
    """That new pods go where few of the variant's are: not too many more than where there are fewest.

    A new pod may go to a domain only if the pods there then exceed those of the domain with the fewest by at
    most `max_skew`: the meaning of a core/v1 topology spread constraint that must not be violated.
    """

    topology: int
    max_skew: int
    domains: tuple[int, ...]
    """Of the topology, ascending: all that count, room or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantTerms:
    """One variant in numbers. Replicas that leave anyway are not counted anywhere."""

    name: str
    """For messages only."""

    accelerators: int
    """Per pod, on one node."""

    cost: int
    """Per replica."""

    start_price: int
    """For each replica started, in the unit of cost: loading weights takes minutes of an accelerator."""

    stop_price: int
    """For each replica stopped, in the unit of cost."""

    current: int
    bound: tuple[tuple[int, ...], ...]
    """Nodes of the pods of each replica that has any, in removal order; nodes outside the problem are left
    out. Replicas without a node are removed before all of them."""

    ready: int
    """Removed last."""

    lower: int
    """Hard: replicas that must not be touched."""

    upper: int
    """Hard."""

    pods: int = 1
    """Per replica."""

    together: int | None = None
    """Topology: all pods of one replica are in one of its domains, and in one bin. None for anywhere."""

    spread: SpreadTerms | None = None
    most_per_node: int | None = None
    """Pods of the variant on one node; None for as many as there is room for."""

    @property
    def is_topology_constrained(self) -> bool:
        """Whether room alone does not say where its pods may go."""
        return self.together is not None or self.spread is not None or self.most_per_node is not None

    @property
    def accelerators_per_replica(self) -> int:
        """What all pods of a replica hold together."""
        return self.pods * self.accelerators


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverRow:
    """A requirement: sum of per-replica amounts >= requirement, or a shortfall in per mille of it.

    The shortfall is counted in shares of the requirement; how much a share weighs against another model's of
    the same priority is the row's weight.
    """

    name: str
    """For messages only."""

    stage: Stage
    priority: int
    model: int
    """Whose requirement it is: index among the models. Those of one model stand together."""

    requirement: int
    terms: tuple[tuple[int, int], ...]
    """(variant, amount per replica); all variants are the model's."""

    weight: int = 1
    """What a per mille of shortfall counts for against others of its level."""

    @property
    def level(self) -> Level:
        """Where its shortfall stands in the lexicographic order; continuity knows no priority."""
        return (self.stage, 0 if self.stage is Stage.CONTINUITY else self.priority)

    def shortfall(self, provided: int) -> int:
        """Return the per mille of the requirement that an amount leaves uncovered, rounded up."""
        return per_mille_missing(self.requirement, provided)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Nodes that the same variants may use.

    When every size divides the next one, replicas fit exactly when, for each size s, the replicas of size
    k >= s take at most as many s-slots (k / s each) as the nodes have: each replica uses up exactly k / s of
    them, whichever node it goes to.
    """

    nodes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Of its variants' pods, ascending."""

    variants: tuple[int, ...]

    @property
    def is_divisible(self) -> bool:
        """Whether every size divides the next one."""
        return all(large % small == 0 for small, large in pairwise(self.sizes))


class LimitKind(StrEnum):
    """What a limit stands for; for messages only."""

    QUOTA = "quota"
    BUDGET = "budget"
    CEILING = "ceiling"
    """The most replicas of a model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitRow:
    """A quota, a budget or a ceiling: sum of per-replica amounts <= limit, never relaxed."""

    name: str
    """For messages only."""

    limit: int
    terms: tuple[tuple[int, int], ...]
    """(variant, amount per replica)."""

    kind: LimitKind = LimitKind.QUOTA
    allowed: int | None = None
    """What the quota or budget itself allows, where what runs exceeds it: then the row holds one variant at
    what it has. None where `limit` is what is allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GrowthTerms:
    """Nodes of one shape that a node autoscaler can still add to a bin."""

    name: str
    """For messages only."""

    bin: int
    accelerators: int
    """Of one node."""

    price: int
    """Of one node, in the unit of cost, on top of what its replicas cost."""

    limit: int
    """How many more nodes there can be."""

    domains: tuple[int, ...] = ()
    """Of such a node, per topology."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementProblem:
    """All of it."""

    variants: tuple[VariantTerms, ...]
    """Those of one model stand together, in the order of the models."""

    free: tuple[int, ...]
    """Free accelerators of each node if every bound replica stays; negative when overcommitted."""

    bins: tuple[Bin, ...]
    rows: tuple[CoverRow, ...]
    limits: tuple[LimitRow, ...] = ()
    growth: tuple[GrowthTerms, ...] = ()
    topologies: tuple[tuple[int, ...], ...] = ()
    """Per topology: the domain of each node, or NO_DOMAIN. Nodes of one bin are in one domain of each
    topology that pods are spread over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """How good an answer is at one level of the lexicographic order, given the levels before."""

    level: str
    value: int
    bound: int
    """No answer has less, over every replica mix."""

    total: int
    """What the value would be if nothing at this level were served; of cost, the value itself."""

    @property
    def improvable(self) -> float:
        """Share of the total by which the value might at most still be less."""
        return (self.value - self.bound) / self.total if self.value > self.bound else 0.0

    @property
    def gap(self) -> float:
        """Relative distance of the value to the bound."""
        return 1 - self.bound / self.value if self.value > self.bound else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """An answer to a placement problem."""

    replicas: tuple[int, ...]
    """Of each variant: those that stay on their nodes plus those that get a place."""

    placements: tuple[tuple[int, int, int], ...]
    """(variant, node, pods) for those that get a place, sorted."""

    grown: tuple[tuple[int, int, int], ...] = ()
    """(variant, growth, pods) for those whose place is on a node that is yet to be added, sorted."""

    added: tuple[int, ...] = ()
    """Nodes to add, per growth; empty when none are."""

    proofs: tuple[Proof, ...] = ()
    """One per level, in order."""

    alternatives: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Per variant: the best other mix of its model, as (variant, replicas), in which it has another number of
    replicas and nothing more goes short; empty where there is none."""

    unproven: str = ""
    """The first level that was not proven optimal; empty when all were."""

    gap: float = 0.0
    """Relative distance to the bound at that level."""

    prices: DualPrices | None = None
    """What the search for it ended with; None where nothing had to be searched."""


def provided(problem: PlacementProblem, row: CoverRow, replicas: tuple[int, ...]) -> int:
    """Return what the replicas provide for a row; for continuity only the ready ones, which go last."""
    if row.stage is Stage.CONTINUITY:
        return sum(amount * min(replicas[v], problem.variants[v].ready) for v, amount in row.terms)
    return sum(amount * replicas[v] for v, amount in row.terms)


def bins_of(problem: PlacementProblem) -> list[list[int]]:
    """Return the bins that each variant may use."""
    found: list[list[int]] = [[] for _ in problem.variants]
    for index, bin_ in enumerate(problem.bins):
        for variant in bin_.variants:
            found[variant].append(index)
    return found


def staying_pods(problem: PlacementProblem, variant: int, replicas: int) -> Counter[int]:
    """Return how many pods of a variant lie on each node once it has no more than some replicas."""
    bound = problem.variants[variant].bound
    return Counter(node for nodes in bound[max(0, len(bound) - replicas) :] for node in nodes)


def freed(problem: PlacementProblem, replicas: tuple[int, ...]) -> list[int]:
    """Return the free accelerators of each node after the removals that these replica counts imply."""
    free = list(problem.free)
    for variant, count in zip(problem.variants, replicas, strict=True):
        for nodes in variant.bound[: max(0, len(variant.bound) - count)]:
            for node in nodes:
                free[node] += variant.accelerators
    return free
