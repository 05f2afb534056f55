"""The placement problem in integers: the only input of the solver.

Variants and nodes are identified by their index; both are sorted by name, so equal snapshots give equal
problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from itertools import pairwise

from controller.planning.pod_rules import MostPerNode, SpreadTerms

PER_MILLE = 1000

UNLIMITED_REPLICAS = 10_000
"""Upper bound on the replicas of a variant that are planned, unless more pods exist."""


NO_DOMAIN = -1
"""Domain of a node without the topology's label."""


EXACT_LIMIT = 2**53
"""Sums must stay below this, because linear relaxations use double precision."""


RowName = tuple[int, int, int] | str
"""(bin, size, pods) of a slot row, or the name of a limit."""


class NumbersTooLargeError(ValueError):
    """A sum of the problem might not be exact in double precision."""


def per_mille_missing(requirement: int, provided: int) -> int:
    """Return the per mille of a requirement that is not provided, rounded up; 0 without a requirement."""
    return -(-PER_MILLE * max(0, requirement - provided) // requirement) if requirement else 0


class Stage(IntEnum):
    """The kind of a shortfall; a lower stage takes absolute precedence over a higher one."""

    MINIMUM = 0
    """Minimum replicas, and the one replica that keeps a model warm."""

    LOAD = 1
    """Capacity for the present load, which that of every model has before a margin of any."""

    DEMAND = 2
    """Required capacity."""

    CONTINUITY = 3
    """Ready capacity to keep until replacements are ready, and the replicas of a model that grows."""


class CountedReplicas(StrEnum):
    """The replicas of a variant that count for a row."""

    ALL = "All"
    EXISTING = "Existing"
    """Those that have nodes now and stay: new ones count nothing."""

    READY = "Ready"
    """Those that are ready now and stay; these are removed last."""


COST = "cost"
"""Name of the last level."""

Level = tuple[Stage, int]
"""Position of a shortfall in the lexicographic objective: stage and priority."""


def divide_each_other(sizes: Iterable[int]) -> bool:
    """Return whether every size divides the next larger one."""
    return all(large % small == 0 for small, large in pairwise(sorted(set(sizes))))


def level_name(stage: Stage, priority: int) -> str:
    """Return the name of a level before cost, such as `demand of priority 3`."""
    name = stage.name.lower()
    return name if stage is Stage.CONTINUITY else f"{name} of priority {priority}"


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantTerms:
    """The integer data of one variant. Replicas that are leaving anyway are not counted anywhere."""

    name: str
    """Used in messages only."""

    accelerators: int
    """Accelerators per pod, on one node."""

    cost: int
    """Cost per replica."""

    start_price: int
    """Price per replica started, in the unit of cost: loading weights occupies an accelerator for minutes."""

    stop_price: int
    """Price per replica stopped, in the unit of cost."""

    current: int
    """Replicas that the scale target requests, at most its maximum: starts and stops count from here."""

    bound_replicas: tuple[tuple[int, ...], ...]
    """Nodes of the pods of each bound replica, in removal order, without nodes outside the problem. Replicas
    without a node are removed before all of them.
    """

    ready: int
    """Number of ready replicas; these are removed last."""

    lower: int
    """Hard lower bound: replicas that must not be removed."""

    upper: int
    """Hard upper bound of replicas."""

    pods: int = 1
    """Pods per replica."""

    together: int | None = None
    """Topology in one of whose domains, and in one bin, all pods of a replica must be; None for anywhere."""

    most_per_node: MostPerNode | None = None
    spread: SpreadTerms | None = None

    @property
    def is_topology_constrained(self) -> bool:
        """Whether the placement of its pods depends on more than free accelerators."""
        return any(rule is not None for rule in (self.together, self.spread, self.most_per_node))

    @property
    def accelerators_per_replica(self) -> int:
        """Accelerators of all pods of a replica."""
        return self.pods * self.accelerators

    def most_counted(self, counted: CountedReplicas) -> int:
        """Return the most replicas that count for a row."""
        match counted:
            case CountedReplicas.ALL:
                return self.upper
            case CountedReplicas.EXISTING:
                return len(self.bound_replicas)
            case CountedReplicas.READY:
                return self.ready


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverRow:
    """A soft requirement: the sum of per-replica amounts falls short of it by a per mille that is minimized.

    Shortfalls are measured as shares of the requirement; the row's weight is the value of a share relative to
    other models of the same priority.
    """

    name: str
    """Used in messages only."""

    stage: Stage
    priority: int
    model: int
    """Index of the model. Rows of one model are contiguous."""

    requirement: int
    terms: tuple[tuple[int, int], ...]
    """(variant, amount per replica); all variants belong to the model."""

    weight: int = 1
    """Weight of a per mille of shortfall relative to other rows of its level."""

    counted: CountedReplicas = CountedReplicas.ALL
    """The replicas that count."""

    @property
    def level(self) -> Level:
        """Position of the shortfall in the lexicographic objective; continuity ignores priority."""
        return (self.stage, 0 if self.stage is Stage.CONTINUITY else self.priority)

    def shortfall(self, provided_by: int) -> int:
        """Return the per mille of the requirement that an amount does not cover, rounded up."""
        return per_mille_missing(self.requirement, provided_by)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Nodes that the same variants may use.

    If every size divides the next larger one, replicas fit if and only if, for each size s, those of size k
    >= s take at most as many s-slots (k / s each) as the nodes have: each replica uses exactly k / s of them,
    on whichever node it is placed.
    """

    nodes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Accelerators per pod of its variants, ascending."""

    variants: tuple[int, ...]

    @property
    def is_divisible(self) -> bool:
        """Whether every size divides the next larger one."""
        return divide_each_other(self.sizes)


class LimitKind(StrEnum):
    """The kind of a limit, used in messages only."""

    QUOTA = "quota"
    BUDGET = "budget"
    CEILING = "ceiling"
    """A maximum on the replicas of a model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitRow:
    """A hard limit, from a quota, a budget or a ceiling: sum of per-replica amounts <= limit."""

    name: str
    """Used in messages only."""

    limit: int
    """Replicas that must stay may exceed it (`engine.shared.limit_of`)."""

    terms: tuple[tuple[int, int], ...]
    """(variant, amount per replica)."""

    kind: LimitKind = LimitKind.QUOTA
    allowed: int | None = None
    """The quota's or budget's own limit, if current use exceeds it; the row then caps one variant at what it
    has. None where `limit` is the limit itself.
    """

    others: int = 0
    """What workloads that are not planned hold of a quota in addition; used in messages only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GrowthTerms:
    """Nodes of one shape that a node autoscaler can still add to a bin."""

    name: str
    """Used in messages only."""

    bin: int
    accelerators: int
    """Accelerators of one node."""

    price: int
    """Price of one node in the unit of cost, on top of the cost of its replicas."""

    limit: int
    """The maximum number of nodes that can be added."""

    domains: tuple[int, ...] = ()
    """Domain of such a node in each topology."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementProblem:
    """The complete placement problem."""

    variants: tuple[VariantTerms, ...]
    """Variants of one model are contiguous, in the order of the models."""

    free: tuple[int, ...]
    """Free accelerators of each node if every bound replica stays; negative on overcommitted nodes."""

    bins: tuple[Bin, ...]
    rows: tuple[CoverRow, ...]
    limits: tuple[LimitRow, ...] = ()
    growth: tuple[GrowthTerms, ...] = ()
    topologies: tuple[tuple[int, ...], ...] = ()
    """Domain of each node, or NO_DOMAIN, per topology. The nodes of one bin are in one domain of each
    topology of a rule.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The quality of a solution at one level of the lexicographic objective, given the levels before."""

    level: str
    value: int
    bound: int
    """Lower bound on the value over every replica mix."""

    total: int
    """The value if nothing at this level were served; for cost, the value itself."""

    @property
    def improvable(self) -> float:
        """Upper limit on the share of the total by which the value could still decrease."""
        return (self.value - self.bound) / self.total if self.value > self.bound else 0.0

    @property
    def gap(self) -> float:
        """Relative distance of the value from the bound."""
        return 1 - self.bound / self.value if self.value > self.bound else 0.0

    def without(self, shortfall: int) -> Proof:
        """Return the proof without a shortfall that every solution has."""
        return replace(
            self,
            value=self.value - shortfall,
            bound=max(0, self.bound - shortfall),
            total=self.total - shortfall,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """A solution of a placement problem."""

    replicas: tuple[int, ...]
    """Replicas of each variant: those that stay on their nodes plus those that are newly placed."""

    placements: tuple[tuple[int, int, int], ...]
    """(variant, node, pods) of the new pods, sorted."""

    grown: tuple[tuple[int, int, int], ...] = ()
    """(variant, growth, pods) of the new pods on nodes to be added, sorted."""

    added: tuple[int, ...] = ()
    """Nodes to add, per growth; empty if none."""

    proofs: tuple[Proof, ...] = ()
    """One proof per level, in order."""

    prices: Mapping[str, Mapping[RowName, float]] = field(default_factory=dict)
    """Final dual prices of shared rows, by the name of each level that was searched."""

    @property
    def unproven(self) -> Proof | None:
        """The proof of the first level that was not proven optimal; None if all were."""
        return next((proof for proof in self.proofs if proof.gap), None)


def provided_by(problem: PlacementProblem, row: CoverRow, replicas: tuple[int, ...]) -> int:
    """Return what the replicas provide for a row."""
    if row.counted is CountedReplicas.ALL:
        return sum(amount * replicas[v] for v, amount in row.terms)
    most = (problem.variants[v].most_counted(row.counted) for v, _ in row.terms)
    return sum(amount * min(replicas[v], one) for (v, amount), one in zip(row.terms, most, strict=True))


def unavoidable_shortfalls(problem: PlacementProblem) -> Mapping[str, int]:
    """Return by level what rows for existing or ready replicas are short of if all of these stay."""
    shortfalls = Counter[str]()
    for row in problem.rows:
        if row.counted is not CountedReplicas.ALL:
            most = sum(amount * problem.variants[v].most_counted(row.counted) for v, amount in row.terms)
            shortfalls[level_name(*row.level)] += row.weight * row.shortfall(most)
    return shortfalls


def bins_of(problem: PlacementProblem) -> list[list[int]]:
    """Return the bins that each variant may use."""
    by_variant: list[list[int]] = [[] for _ in problem.variants]
    for index, bin_ in enumerate(problem.bins):
        for variant in bin_.variants:
            by_variant[variant].append(index)
    return by_variant


def staying_pods(problem: PlacementProblem, variant: int, replicas: int) -> Counter[int]:
    """Return the pods of a variant on each node after it is reduced to some number of replicas."""
    bound = problem.variants[variant].bound_replicas
    return Counter(node for nodes in bound[max(0, len(bound) - replicas) :] for node in nodes)


def free_after_removals(problem: PlacementProblem, replicas: tuple[int, ...]) -> list[int]:
    """Return the free accelerators of each node after the removals that these replica counts imply."""
    free = list(problem.free)
    for variant, count in zip(problem.variants, replicas, strict=True):
        for nodes in variant.bound_replicas[: max(0, len(variant.bound_replicas) - count)]:
            for node in nodes:
                free[node] += variant.accelerators
    return free
