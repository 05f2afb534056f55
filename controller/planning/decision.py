"""The output of planning: the number of replicas of each variant, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from controller.planning.load import Capacity, CapacitySource, ModelLoad, Signal


class Reason(StrEnum):
    """What happens to a variant; the reason of its condition."""

    SCALE_UP = "ScaleUp"
    SCALE_DOWN = "ScaleDown"
    STEADY = "Steady"
    SHORTAGE = "Shortage"
    """Fewer replicas than the model needs, because a resource is exhausted."""

    HOLDING = "Holding"
    """No new decision: the data or the solver did not allow one."""


class BoundBy(StrEnum):
    """What limited or determined the number of replicas."""

    DEMAND = "Demand"
    ACCELERATORS = "Accelerators"
    """Too few free accelerators of the type."""

    NODE_SIZE = "NodeSize"
    """Enough free accelerators in total, but not on a single node."""

    TOPOLOGY = "Topology"
    """Enough room, but the pods' rules on zones, racks or shared nodes admit no further replica."""

    PRIORITY = "Priority"
    """The accelerators went to a higher priority."""

    QUOTA = "Quota"
    """The accelerator quota of the namespace is used up."""

    BUDGET = "Budget"
    """The hourly budget is used up."""

    ORDERED = "Ordered"
    """A user pinned or paused the variant."""

    MAX_REPLICAS = "MaxReplicas"
    MIN_REPLICAS = "MinReplicas"
    """The variant's own minimum, or the one replica that keeps a model warm."""

    STALE_METRICS = "StaleMetrics"
    MISSING_METRICS = "MissingMetrics"
    CAPACITY_UNKNOWN = "CapacityUnknown"
    TARGETS = "Targets"
    """The variant cannot meet a latency target, so new replicas are not counted on."""

    SOLVER = "Solver"
    """No plan from the solver, or none for this variant (`Plan.omissions`): the current replicas are kept."""


class SolverStatus(StrEnum):
    """The outcome of the solver."""

    OPTIMAL = "Optimal"
    """Every level is proven optimal."""

    FEASIBLE = "Feasible"
    """A valid plan; the gap says how much better another might be."""

    TIMED_OUT = "TimedOut"
    """No plan within the limits: the current replicas are kept."""

    FAILED = "Failed"
    """The plan violated a rule, or the process ended: the current replicas are kept."""


class ReliefKind(StrEnum):
    """The kind of change that a user could make."""

    NODE = "Node"
    PRIORITY = "Priority"
    QUOTA = "Quota"
    BUDGET = "Budget"
    MAX_REPLICAS = "MaxReplicas"
    MIN_REPLICAS = "MinReplicas"
    """A lower minimum of a variant that holds what is missing."""

    MOVES = "Moves"
    """Other replicas or pods moved, to defragment free accelerators."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Relief:
    """A change after which planning would grant the model more."""

    kind: ReliefKind
    text: str
    """The change in words, such as `+1 free 8-accelerator H100 node` or
    `priority 19 (1 is served first)`."""

    unmet_per_mille: int
    """Per mille of the model's required capacity that would still be missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantDecision:
    """The decision for one variant."""

    namespace: str
    name: str
    model_id: str
    accelerator: str
    priority: int
    replicas: int
    """Granted replicas, which is the number to publish."""

    current_replicas: int
    unconstrained_replicas: int
    """Replicas that it would have with unlimited nodes."""

    load: ModelLoad
    """Load of the whole model."""

    required_requests_per_second: float
    """Capacity that the whole model is to have."""

    capacity: Capacity | None
    """Capacity of one replica; None when unknown."""

    unmet_per_mille: int
    """Per mille of the model's required capacity that this plan does not provide."""

    bound_by: BoundBy
    reason: Reason
    message: str
    """One sentence with the numbers; the same text in status, event, log and metric."""

    reliefs: tuple[Relief, ...] = ()
    """Changes that would reduce the shortage, in the order they were tried; only where the model is short."""

    excess: tuple[str, ...] = ()
    """Sentences: the quotas and budgets over this variant that running replicas exceed, and by how much."""

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the variant: (namespace, name)."""
        return (self.namespace, self.name)

    @property
    def signal(self) -> Signal:
        """How reliable the demand data is."""
        return self.load.signal

    @property
    def capacity_source(self) -> CapacitySource:
        """Source of the capacity of one replica."""
        return self.capacity.source if self.capacity else CapacitySource.UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePlacement:
    """A proposed placement: pods of a variant that are not bound yet and fit on this node."""

    namespace: str
    name: str
    node: str
    pods: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """Replicas to evict from a node: they fit elsewhere, and others need their accelerators."""

    namespace: str
    name: str
    """Name of the variant, or of the pod."""

    node: str
    replicas: int
    is_other: bool = False
    """Whether this is a pod that belongs to no variant."""

    benefits: tuple[tuple[str, str], ...] = ()
    """(namespace, name) of the variants that gain room."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRequest:
    """Nodes of a pool that the plan relies on, and the pods to run on them."""

    pool: str
    nodes: int
    price_per_hour: Decimal
    """Price of all these nodes together."""

    lead_seconds: float
    pods: tuple[tuple[str, str, int], ...]
    """(namespace, name, pods) of each variant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelReport:
    """The quality of the plan at one level of the lexicographic objective."""

    level: str
    value: int
    bound: int
    """Lower bound: no plan has a smaller value."""

    gap: float
    """Relative distance of the value from the bound."""

    improvable: float
    """Upper limit on the share of all demand at this level that a better plan could still serve."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SolverReport:
    """The quality of the solver's answer. Nothing here depends on a clock."""

    status: SolverStatus
    unproven: str
    """The first level of the lexicographic objective that was not proven optimal; empty when all were."""

    gap: float
    """Relative gap to the proven bound at that level; 1 without an answer."""

    message: str
    """Why the solver has no answer; empty if it has one."""

    levels: tuple[LevelReport, ...] = ()

    @property
    def is_answered(self) -> bool:
        """Whether the plan was computed by the solver."""
        return self.status in {SolverStatus.OPTIMAL, SolverStatus.FEASIBLE}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The decisions for all variants, sorted by namespace and name."""

    decisions: tuple[VariantDecision, ...]
    placements: tuple[NodePlacement, ...]
    cost: Decimal
    """Cost of all granted replicas per hour."""

    solver: SolverReport
    requests: tuple[NodeRequest, ...] = ()
    """Nodes to add, by pool."""

    moves: tuple[Move, ...] = ()
    """Evictions to make, where allowed, so that the next plan has room for more of the missing replicas."""

    omissions: tuple[str, ...] = ()
    """Sentences: the variants, which keep their replicas, and node pools that are left out, and why."""

    def with_messages(self, more: Mapping[tuple[str, str], str]) -> Plan:
        """Return the plan with a part added to the messages of some variants, by their keys."""
        decisions = [
            replace(item, message=f"{item.message}; {more[item.key]}") if item.key in more else item
            for item in self.decisions
        ]
        return replace(self, decisions=tuple(decisions))
