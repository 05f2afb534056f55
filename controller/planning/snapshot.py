"""The input of planning: the cluster, the workloads and what the engines report, frozen at one moment.

The observer builds these records; planning uses no other input. Sequences are tuples and sets are frozen
sets, so a snapshot can be pickled, compared and replayed. Order carries no meaning, except in
`Variant.replicas`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from controller.planning.cluster import Budget, Node, NodePool, NodeRequirement, Quota, Toleration
from controller.planning.load import Capacity, ModelLoad
from controller.planning.pod_rules import PodRules
from controller.planning.ranges import (
    MAX_COST,
    MAX_REPLICAS,
    MOST_START_SECONDS,
    bounds_errors,
    negative_or_endless,
    out_of_range,
    refuse,
)

LOWEST_PRIORITY = 100
"""Priority of a variant without a service class; 1 is the highest."""

MOST_PODS_PER_REPLICA = 10**3
"""Maximum number of pods that one replica may have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replica:
    """One replica of a variant. Replicas that are being deleted are excluded: what they hold will be free."""

    name: str
    """Pod name, unique in its namespace."""

    node: str | None = None
    """Node to which it is bound; None while unscheduled. With several pods, the first pod's node."""

    ready: bool = False
    report_age_seconds: float | None = None
    """Age of the engine's latest response, in seconds; None if it never responded."""

    further_nodes: tuple[str, ...] = ()
    """Nodes of its other pods, if it has several."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes to which its pods are bound."""
        return self.further_nodes if self.node is None else (self.node, *self.further_nodes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One way to run a model: a scale target on one type of accelerator.

    Raises ValueError when bounds contradict each other or a number is out of its range.
    """

    namespace: str
    name: str
    """Name of the VariantAutoscaling; (namespace, name) is the identity."""

    model_id: str
    """Variants of one namespace with the same model share one demand."""

    role: str = ""
    """What its pods do, if they serve requests together with those of another role: `prefill` or `decode`."""

    pair: str = ""
    """The model whose requests need pods of all roles; empty without a role."""

    accelerator: str
    """Normalized type; empty if unknown, then any node that the selector admits may be used."""

    accelerators_per_replica: int
    """Accelerators of all pods of a replica; 0 for none, then replicas always fit."""

    cost_per_replica: Decimal
    """Cost per hour, in the user's own unit."""

    current_replicas: int
    """Replicas that the scale target currently requests (`spec.replicas`)."""

    replicas: tuple[Replica, ...] = ()
    """The replicas in the order in which the ReplicaSet controller would delete them, as far as pod deletion
    costs allow: unbound, unready, then those whose removal frees most. If fewer than `current_replicas`,
    the missing ones are yet to be created. If more, the first ones are leaving.
    """

    ready_ordinals: tuple[int, ...] = ()
    """Ordinals of the ready replicas, from 0, if the highest are removed first, whatever their state."""

    desired_replicas: int | None = None
    """The last published decision; None before the first."""

    min_replicas: int = 0
    max_replicas: int | None = None
    """None for no limit but the cluster."""

    may_scale_to_zero: bool = False
    """Whether the model may have no replica at all; applies if all of its variants allow it."""

    priority: int = LOWEST_PRIORITY
    """From 1 (highest) to 100; the best among a model's variants applies to the model."""

    node_selector: frozenset[tuple[str, str]] = frozenset()
    node_affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    """Required node selector terms: a node must meet all requirements of at least one; empty admits all."""

    tolerations: frozenset[Toleration] = frozenset()
    pinned_replicas: int | None = None
    """Replicas pinned by a user, whatever the demand; None if not pinned."""

    is_paused: bool = False
    """Whether a user paused scaling: the current replicas are kept."""

    may_be_preempted: bool = True
    """Whether replicas that its own demand needs may be preempted by higher priorities."""

    capacity: Capacity | None = None
    """Capacity of one replica; None if unknown."""

    start_seconds: float = 0.0
    """Time from a replica's start until it is ready, in seconds."""

    pods_per_replica: int = 1
    """Pods per replica, which share its accelerators evenly; a replica can span several nodes."""

    together_in: str = ""
    """Node label whose value all pods of one replica must share; empty for anywhere."""

    rules: PodRules = field(default_factory=PodRules)
    """Where its pods can be, besides the nodes that they select."""

    disruption_budget: str = ""
    """Name of the PodDisruptionBudget that selects its pods; all pods under it share its allowance."""

    evictable_replicas: int | None = None
    """Replicas that the budget currently allows to evict; None without one. 0 also if budgets overlap or
    differ.
    """

    may_be_moved: bool = True
    """Whether an evicted pod may start anywhere else without affecting other pods."""

    stalled_replicas: int = 0
    """Replicas that have waited so long for a node that nodes to be added do not count for this variant."""

    def __post_init__(self) -> None:
        wrong = out_of_range(
            accelerators_per_replica=(self.accelerators_per_replica, 0, 10**4),
            cost_per_replica=(self.cost_per_replica, 0, MAX_COST),
            current_replicas=(self.current_replicas, 0, MAX_REPLICAS),
            min_replicas=(self.min_replicas, 0, MAX_REPLICAS),
            max_replicas=(self.max_replicas or 0, 0, MAX_REPLICAS),
            pinned_replicas=(self.pinned_replicas or 0, 0, MAX_REPLICAS),
            stalled_replicas=(self.stalled_replicas, 0, MAX_REPLICAS),
            priority=(self.priority, 1, LOWEST_PRIORITY),
            evictable_replicas=(self.evictable_replicas or 0, 0, MAX_REPLICAS),
            start_seconds=(self.start_seconds, 0, MOST_START_SECONDS),
            pods_per_replica=(self.pods_per_replica, 1, MOST_PODS_PER_REPLICA),
        )
        if self.accelerators_per_replica % max(1, self.pods_per_replica):
            wrong.append(
                f"accelerators_per_replica: must be a multiple of pods_per_replica "
                f"({self.pods_per_replica}), was {self.accelerators_per_replica}"
            )
        wrong += bounds_errors(self.min_replicas, self.max_replicas)
        refuse(wrong, f"{self.namespace}/{self.name}")

    @property
    def key(self) -> tuple[str, str]:
        """The identity: (namespace, name)."""
        return (self.namespace, self.name)

    @property
    def accelerators_per_pod(self) -> int:
        """Accelerators of one pod, on one node."""
        return self.accelerators_per_replica // self.pods_per_replica

    @property
    def ready_replicas(self) -> int:
        """Number of ready replicas, including those that are leaving (compare `demand.ready_replicas`)."""
        return sum(replica.ready for replica in self.replicas)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedModel:
    """What applies to all variants of a model together.

    Raises ValueError when bounds contradict each other or a number is out of its range.
    """

    namespace: str
    model_id: str
    min_replicas: int = 0
    max_replicas: int | None = None
    idle_seconds: float | None = None
    """Time since the last request, in seconds; None if unknown."""

    grace_seconds: float = 0.0
    """How long a model without requests keeps its last replica if it may scale to zero, in seconds."""

    is_awaited: bool = False
    """Whether requests wait, or waited within the grace period, in front of the model."""

    def __post_init__(self) -> None:
        wrong = out_of_range(
            min_replicas=(self.min_replicas, 0, MAX_REPLICAS),
            max_replicas=(self.max_replicas or 0, 0, MAX_REPLICAS),
            idle_seconds=(self.idle_seconds or 0, 0, 10**9),
            grace_seconds=(self.grace_seconds, 0, 10**9),
        )
        wrong += bounds_errors(self.min_replicas, self.max_replicas)
        refuse(wrong, f"{self.namespace}/{self.model_id}")


PREFILL = "prefill"
DECODE = "decode"
"""Roles whose numbers of replicas can have a ratio."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleRatio:
    """How many replicas of prefill one of decode needs, of one model. Raises ValueError for a wrong order."""

    namespace: str
    pair: str
    """The ID of the model, without a role."""

    least: float = 0.0
    most: float | None = None
    """None for any number."""

    def __post_init__(self) -> None:
        if self.least < 0 or (self.most is not None and not 0 < self.most >= self.least):
            refuse([f"ratio of {self.namespace}/{self.pair}: must be above 0, the lower bound first"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The complete input of one decision.

    Raises ValueError when a node, variant, pod, model, load or node pool is listed twice, or the
    timestamp is invalid.
    """

    nodes: tuple[Node, ...]
    variants: tuple[Variant, ...]
    models: tuple[PlannedModel, ...] = ()
    """Only models with bounds or a grace period of their own."""

    loads: tuple[ModelLoad, ...] = ()
    """Loads of models; the load of a model that is not listed is unknown."""

    pools: tuple[NodePool, ...] = ()
    quotas: tuple[Quota, ...] = ()
    budgets: tuple[Budget, ...] = ()
    ratios: tuple[RoleRatio, ...] = ()

    taken_seconds: float = 0.0
    """When the snapshot was taken, in seconds since 1970; 0 if unknown, then reversals are not counted."""

    def __post_init__(self) -> None:
        names = (
            *(f"node {node.name}" for node in self.nodes),
            *(f"variant {variant.namespace}/{variant.name}" for variant in self.variants),
            *(f"pod {v.namespace}/{replica.name}" for v in self.variants for replica in v.replicas),
            *(f"model {model.namespace}/{model.model_id}" for model in self.models),
            *(f"load of {load.namespace}/{load.model_id}" for load in self.loads),
            *(f"node pool {pool.name}" for pool in self.pools),
        )
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        wrong = [f"listed more than once: {', '.join(twice)}"] if twice else []
        wrong += negative_or_endless(taken_seconds=self.taken_seconds)
        refuse(wrong)
