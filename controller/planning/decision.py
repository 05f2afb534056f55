"""The output of planning: how many replicas of each variant, and why."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from controller.planning.load import Capacity, CapacitySource, ModelLoad, Signal


class Reason(StrEnum):
    """What happens to a variant; a condition's reason."""

    SCALE_UP = "ScaleUp"
    SCALE_DOWN = "ScaleDown"
    STEADY = "Steady"
    SHORTAGE = "Shortage"
    """Fewer replicas than its model needs, because something ran out."""

    HOLDING = "Holding"
    """Not decided anew: the data or the solver did not allow it."""


class BoundBy(StrEnum):
    """What kept the number of replicas from being another."""

    DEMAND = "Demand"
    ACCELERATORS = "Accelerators"
    """Too few free ones of the type."""

    NODE_SIZE = "NodeSize"
    """Enough free ones, but on no single node."""

    TOPOLOGY = "Topology"
    """Room, but not where the rules of its pods about zones, racks and shared nodes admit one more."""

    PRIORITY = "Priority"
    """A higher priority took them."""

    QUOTA = "Quota"
    """The namespace's quota of accelerators is used up."""

    BUDGET = "Budget"
    """What may be spent per hour is spent."""

    ORDERED = "Ordered"
    """A person pinned or paused it."""

    MAX_REPLICAS = "MaxReplicas"
    MIN_REPLICAS = "MinReplicas"
    """Its own minimum, or the one replica that keeps a model warm."""

    FLAPPING = "Flapping"
    """It changed direction too often of late for cost alone to turn it again."""

    STALE_METRICS = "StaleMetrics"
    MISSING_METRICS = "MissingMetrics"
    CAPACITY_UNKNOWN = "CapacityUnknown"
    SOLVER = "Solver"
    """No answer in time: the current replicas stand."""


class SolverStatus(StrEnum):
    """How far the solver came."""

    OPTIMAL = "Optimal"
    """Every level proven."""

    FEASIBLE = "Feasible"
    """A valid plan; a better one may exist, see the gap."""

    TIMED_OUT = "TimedOut"
    """No plan within the limits: what runs stands."""

    FAILED = "Failed"
    """The answer broke a rule, or the process ended: what runs stands."""


class ReliefKind(StrEnum):
    """What a person could change."""

    NODE = "Node"
    PRIORITY = "Priority"
    QUOTA = "Quota"
    BUDGET = "Budget"
    MAX_REPLICAS = "MaxReplicas"
    MOVES = "Moves"
    """Replicas of others to be moved, so that what is free lies together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Relief:
    """A change after which the plan, made again, grants the model more."""

    kind: ReliefKind
    text: str
    """What to change, such as `+1 free 8-accelerator H100 node` or `a priority above 20`."""

    unmet_per_mille: int
    """Share of the model's required capacity that would be missing then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alternative:
    """The best other mix for the model at the plan's prices: one in which this variant has another number."""

    replicas: tuple[tuple[str, int], ...]
    """(variant, replicas) of the model's variants."""

    extra_cost: Decimal
    """Per hour, over what is granted; less than nothing where it serves less."""

    unmet_per_mille: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The answer for one variant."""

    namespace: str
    name: str
    model_id: str
    accelerator: str
    priority: int
    replicas: int
    """What is granted; the number to publish."""

    current_replicas: int
    unconstrained_replicas: int
    """What it would be with unlimited nodes."""

    load: ModelLoad
    """What the whole model is asked for."""

    required_requests_per_second: float
    """Capacity that the whole model is to have."""

    capacity: Capacity | None
    """What one replica serves; None when unknown."""

    unmet_per_mille: int
    """Share of the model's required capacity that this plan does not provide."""

    bound_by: BoundBy
    reason: Reason
    message: str
    """One sentence with the numbers; the same in status, event, log and metric."""

    alternative: Alternative | None = None
    """The next best option; None where there is none, or nothing to choose."""

    reliefs: tuple[Relief, ...] = ()
    """What would change the answer, the smallest change first; only where the model goes short."""

    excess: tuple[str, ...] = ()
    """Which quotas and budgets over this variant what runs exceeds, and by how much, in sentences."""

    @property
    def signal(self) -> Signal:
        """How well the demand is known."""
        return self.load.signal

    @property
    def capacity_source(self) -> CapacitySource:
        """Where the capacity of one replica comes from."""
        return self.capacity.source if self.capacity else CapacitySource.UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePlacement:
    """A proposal: this many pods of a variant that are not bound yet find room on this node."""

    namespace: str
    name: str
    node: str
    pods: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """Replicas to be evicted from a node: they find room elsewhere, others need theirs."""

    namespace: str
    name: str
    """Of the variant, or of the pod."""

    node: str
    replicas: int
    is_other: bool = False
    """Whether it is a pod that belongs to no variant."""

    benefits: tuple[tuple[str, str], ...] = ()
    """(namespace, name) of the variants that find room then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRequest:
    """Nodes of a pool that the plan counts on, and what is to run on them."""

    pool: str
    nodes: int
    price_per_hour: Decimal
    """Of all of them."""

    lead_seconds: float
    pods: tuple[tuple[str, str, int], ...]
    """(namespace, name, pods) of the variants."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelReport:
    """How good the plan is at one level of the lexicographic order."""

    level: str
    value: int
    bound: int
    """No plan has less."""

    gap: float
    """Relative distance of the value to the bound."""

    improvable: float
    """Share of all that is wanted at this level that might at most still be served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SolverReport:
    """What can be said for the answer. Nothing here depends on a clock."""

    status: SolverStatus
    unproven: str
    """The first level of the lexicographic order that was not proven optimal; empty when all were."""

    gap: float
    """Relative distance to the proven bound at that level; 1 without an answer."""

    message: str
    """Why the solver has no answer, or an empty text."""

    levels: tuple[LevelReport, ...] = ()

    @property
    def is_answered(self) -> bool:
        """Whether the plan is the solver's."""
        return self.status in {SolverStatus.OPTIMAL, SolverStatus.FEASIBLE}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The decision for all variants, sorted by namespace and name."""

    decisions: tuple[Decision, ...]
    placements: tuple[NodePlacement, ...]
    cost: Decimal
    """Of all granted replicas, per hour."""

    solver: SolverReport
    requests: tuple[NodeRequest, ...] = ()
    """Nodes to add, by pool."""

    moves: tuple[Move, ...] = ()
    """What to evict, where that is allowed, so that more of what goes short finds room in the next plan."""
