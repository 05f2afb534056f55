"""The input of planning: what exists, what runs where, and what the engines report, frozen at one moment.

Whoever observes builds these records; planning never looks anywhere else. Sequences are tuples, sets are
frozen sets, so a snapshot can be pickled, compared and replayed. Their order carries no meaning, except in
`Variant.replicas`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from controller.planning.cluster import Budget, Node, NodePool, NodeRequirement, Quota, Toleration
from controller.planning.load import Capacity, ModelLoad
from controller.planning.ranges import (
    MAX_REPLICAS,
    MOST_START_SECONDS,
    negative_or_endless,
    out_of_range,
)

LOWEST_PRIORITY = 100
"""Priority of a variant without a service class; 1 is the highest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replica:
    """One pod of a variant. One that is being deleted counts nowhere: what it holds is about to be free."""

    name: str
    """Pod name, unique in its namespace."""

    node: str | None = None
    """Where it is bound; None while it waits for the scheduler. Of several pods the first one's."""

    ready: bool = False
    report_age_seconds: float | None = None
    """Age of the engine's newest answer; None when it never answered."""

    further_nodes: tuple[str, ...] = ()
    """Where its other pods are bound, if it has several."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Where its pods are bound."""
        return self.further_nodes if self.node is None else (self.node, *self.further_nodes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """A core/v1 topology spread constraint on the variant's own pods that must not be violated."""

    topology_key: str
    max_skew: int = 1
    counts_from_zero: bool = False
    """Whether the fewest is 0 whatever the plan: some domain that counts has none of its nodes, or there are
    fewer domains than it asks for. Then the skew is the most in each domain."""

    def __post_init__(self) -> None:
        """Refuse what no constraint can mean."""
        wrong = out_of_range(max_skew=(self.max_skew, 1, 10**6))
        if wrong:
            raise ValueError(f"spread over {self.topology_key}: " + "; ".join(wrong))


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One way to run a model: a scale target on one type of accelerator.

    Raises ValueError when the bounds contradict each other or a count is negative.
    """

    namespace: str
    name: str
    """Name of the VariantAutoscaling; (namespace, name) is the identity."""

    model_id: str
    """Variants of one namespace with the same model share one demand."""

    accelerator: str
    """Normalised type; empty when nobody knows, then any node that the selector admits will do."""

    accelerators_per_replica: int
    """What all pods of a replica ask for; 0 = none, such replicas always find room."""

    cost_per_replica: Decimal
    """In the user's own unit per hour."""

    current_replicas: int
    """What the scale target asks for now (`spec.replicas`)."""

    replicas: tuple[Replica, ...] = ()
    """The pods, in the order in which the ReplicaSet controller deletes them, as far as it is told to: not
    bound, not ready, then those whose leaving frees most. Fewer than `current_replicas`: the missing ones are
    yet to be created. More: the first are leaving."""

    desired_replicas: int | None = None
    """The last published decision; None before the first."""

    min_replicas: int = 0
    max_replicas: int | None = None
    """None = no limit but the cluster."""

    may_scale_to_zero: bool = False
    """Whether the model may go without any replica; holds when all its variants say so."""

    priority: int = LOWEST_PRIORITY
    """1 (highest) to 100; the best among a model's variants counts for the model."""

    node_selector: frozenset[tuple[str, str]] = frozenset()
    node_affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    """Node selector terms that pods require: a node has to meet all of at least one; empty admits all."""

    tolerations: frozenset[Toleration] = frozenset()
    pinned_replicas: int | None = None
    """So many replicas by a person's word, whatever the demand; None for what the demand asks."""

    is_paused: bool = False
    """Whether a person stopped all scaling: what the scale target asks for now stands."""

    may_be_preempted: bool = True
    """Whether replicas that its own demand needs may give way to higher priorities."""

    held_replicas: int = 0
    """Replicas that must not go yet, because they started only a while ago."""

    capacity: Capacity | None = None
    """What one replica serves; None when nobody knows."""

    start_seconds: float = 0.0
    """From a replica's start until it is ready."""

    pods_per_replica: int = 1
    """A replica can span several nodes: so many pods, which share its accelerators evenly."""

    together_in: str = ""
    """Label of nodes whose value all pods of one replica must share; empty for anywhere."""

    spread: Spread | None = None
    most_per_node: int | None = None
    """Pods of the variant on one node; None for as many as there is room for."""

    disruption_budget: str = ""
    """Name of the one PodDisruptionBudget that its pods are under; all under it share what it allows."""

    evictable_replicas: int | None = None
    """Evictions that the budget allows now; None without one. 0 also where budgets overlap or differ."""

    may_be_moved: bool = True
    """Whether a pod that is evicted may start anywhere else, and disturbs no other pod."""

    def __post_init__(self) -> None:
        """Refuse bounds that nothing can meet."""
        wrong = out_of_range(
            accelerators_per_replica=(self.accelerators_per_replica, 0, 10**4),
            cost_per_replica=(self.cost_per_replica, 0, 10**9),
            current_replicas=(self.current_replicas, 0, MAX_REPLICAS),
            min_replicas=(self.min_replicas, 0, MAX_REPLICAS),
            max_replicas=(self.max_replicas or 0, 0, MAX_REPLICAS),
            pinned_replicas=(self.pinned_replicas or 0, 0, MAX_REPLICAS),
            held_replicas=(self.held_replicas, 0, MAX_REPLICAS),
            priority=(self.priority, 1, LOWEST_PRIORITY),
            evictable_replicas=(self.evictable_replicas or 0, 0, MAX_REPLICAS),
            start_seconds=(self.start_seconds, 0, MOST_START_SECONDS),
            pods_per_replica=(self.pods_per_replica, 1, 10**3),
            most_per_node=(1 if self.most_per_node is None else self.most_per_node, 1, 10**4),
        )
        if self.accelerators_per_replica % max(1, self.pods_per_replica):
            wrong.append(
                f"accelerators_per_replica: must be a multiple of pods_per_replica "
                f"({self.pods_per_replica}), was {self.accelerators_per_replica}"
            )
        if self.max_replicas is not None and self.max_replicas < self.min_replicas:
            wrong.append(
                f"max_replicas: must be at least min_replicas ({self.min_replicas}), was {self.max_replicas}"
            )
        if wrong:
            raise ValueError(f"{self.namespace}/{self.name}: " + "; ".join(wrong))

    @property
    def key(self) -> tuple[str, str]:
        """The identity: (namespace, name)."""
        return (self.namespace, self.name)

    @property
    def accelerators_per_pod(self) -> int:
        """What one pod asks for, on one node."""
        return self.accelerators_per_replica // self.pods_per_replica

    @property
    def ready_replicas(self) -> int:
        """How many of the pods are ready."""
        return sum(replica.ready for replica in self.replicas)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRule:
    """What holds for all variants of a model together.

    Raises ValueError when the bounds contradict each other or a number is out of its range.
    """

    namespace: str
    model_id: str
    min_replicas: int = 0
    max_replicas: int | None = None
    idle_seconds: float | None = None
    """Time since the last request; None when nobody knows."""

    grace_seconds: float = 0.0
    """How long a model without requests keeps its last replica, if it may scale to zero."""

    def __post_init__(self) -> None:
        """Refuse bounds that nothing can meet."""
        wrong = out_of_range(
            min_replicas=(self.min_replicas, 0, MAX_REPLICAS),
            max_replicas=(self.max_replicas or 0, 0, MAX_REPLICAS),
            idle_seconds=(self.idle_seconds or 0, 0, 10**9),
            grace_seconds=(self.grace_seconds, 0, 10**9),
        )
        if self.max_replicas is not None and self.max_replicas < self.min_replicas:
            wrong.append(
                f"max_replicas: must be at least min_replicas ({self.min_replicas}), was {self.max_replicas}"
            )
        if wrong:
            raise ValueError(f"{self.namespace}/{self.model_id}: " + "; ".join(wrong))


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Everything that one decision is taken from.

    Raises ValueError when a node, a variant, a pod, a model's rule or its load is listed twice, or its moment
    is none.
    """

    nodes: tuple[Node, ...]
    variants: tuple[Variant, ...]
    models: tuple[ModelRule, ...] = ()
    """Only of models for which more holds than for every other."""

    loads: tuple[ModelLoad, ...] = ()
    """What models are asked for; that of a model that is not listed is unknown."""

    pools: tuple[NodePool, ...] = ()
    quotas: tuple[Quota, ...] = ()
    budgets: tuple[Budget, ...] = ()

    taken_seconds: float = 0.0
    """When it was taken, in seconds since 1970; 0 where nobody knows: then nobody's turns are counted."""

    def __post_init__(self) -> None:
        """Refuse to count anything twice, and a moment that no clock shows."""
        names = (
            *(f"node {node.name}" for node in self.nodes),
            *(f"variant {variant.namespace}/{variant.name}" for variant in self.variants),
            *(f"pod {v.namespace}/{replica.name}" for v in self.variants for replica in v.replicas),
            *(f"model {rule.namespace}/{rule.model_id}" for rule in self.models),
            *(f"load of {load.namespace}/{load.model_id}" for load in self.loads),
            *(f"node pool {pool.name}" for pool in self.pools),
        )
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        wrong = [f"listed more than once: {', '.join(twice)}"] if twice else []
        wrong += negative_or_endless(taken_seconds=self.taken_seconds)
        if wrong:
            raise ValueError("; ".join(wrong))
