"""The cluster as a snapshot records it: nodes, nodes that could be added, quotas and budgets."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from controller.planning.ranges import out_of_range, refuse

NAME_FIELD = "metadata.name"
"""Key of the pseudo-label that holds a node's name, for node affinity; no real label has this key."""

MOST_ACCELERATORS = 10**4
"""Maximum accelerators of one node; a larger number is considered a mistake."""

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taint:
    """A taint of a node, which repels pods that do not tolerate it; only NoSchedule and NoExecute effects."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toleration:
    """A toleration of a pod template, with the semantics of a core/v1 toleration."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRequirement:
    """A requirement on one label of a node, with the semantics of a core/v1 node selector requirement."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MovablePod:
    """A pod that belongs to no variant and may be evicted, because its owner recreates it elsewhere.

    Raises ValueError when a number is out of its range.
    """

    namespace: str
    name: str
    accelerators: int
    price_class: int = 2
    """Price class of an eviction, from 1 (evicted first) to 3."""

    node_selector: frozenset[tuple[str, str]] = frozenset()
    node_affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    """Node selector terms, as in `Variant.node_affinity`."""

    tolerations: frozenset[Toleration] = frozenset()
    disruption_budget: str = ""
    """Name of the PodDisruptionBudget that selects it; empty without one."""

    evictable: int | None = None
    """Evictions that the budget currently allows, over all pods that it selects; None without a budget."""

    def __post_init__(self) -> None:
        wrong = out_of_range(
            accelerators=(self.accelerators, 1, 10**4),
            price_class=(self.price_class, 1, 3),
            evictable=(self.evictable or 0, 0, 10**6),
        )
        refuse(wrong, f"pod {self.namespace}/{self.name}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node with accelerators of one type.

    Raises ValueError when it has more than MOST_ACCELERATORS.
    """

    name: str
    accelerator: str
    """Normalized type, spelled as in `Variant.accelerator`."""

    accelerators_allocatable: int
    accelerators_used_by_others: int = 0
    """Accelerators requested by pods that belong to no variant of the snapshot and are not being deleted."""

    labels: frozenset[tuple[str, str]] = frozenset()
    taints: frozenset[Taint] = frozenset()
    schedulable: bool = True
    """Whether the node is ready, and neither cordoned nor being removed. Pods on an unschedulable node stay;
    no new pods go there.
    """

    def __post_init__(self) -> None:
        wrong = out_of_range(accelerators_allocatable=(self.accelerators_allocatable, 0, MOST_ACCELERATORS))
        refuse(wrong, f"node {self.name}")

    movable: tuple[MovablePod, ...] = ()
    """Pods of other workloads that may be evicted; `accelerators_used_by_others` includes what they use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Nodes of one shape that a node autoscaler can still add.

    Raises ValueError when a number is out of its range.
    """

    name: str
    accelerator: str
    """Normalized accelerator type."""

    accelerators_per_node: int
    price_per_node: Decimal
    """Price of a node per hour, on top of the cost of its replicas; 0 if that cost includes it."""

    nodes_addable: int
    """The maximum number of nodes that can still be added."""

    max_nodes: int | None = None
    """The maximum number of nodes, including those that exist; None if unknown."""

    lead_seconds: float = 0.0
    """Time from requesting a node until pods run on it, in seconds."""

    labels: frozenset[tuple[str, str]] = frozenset()
    """Labels of the nodes that are added. Of several values of one label, a node gets one that its pods
    select.
    """

    taints: frozenset[Taint] = frozenset()

    def __post_init__(self) -> None:
        wrong = out_of_range(
            accelerators_per_node=(self.accelerators_per_node, 1, MOST_ACCELERATORS),
            price_per_node=(self.price_per_node, 0, 10**9),
            nodes_addable=(self.nodes_addable, 0, 10**5),
            max_nodes=(self.max_nodes or 0, 0, 10**5),
            lead_seconds=(self.lead_seconds, 0, 10**6),
        )
        refuse(wrong, f"node pool {self.name}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """A limit on the accelerators that pods of a namespace may request."""

    name: str
    namespace: str
    accelerators: int
    """Accelerators available to the variants of the snapshot: the hard limit less what other pods request."""

    accelerator: str = ""
    """Normalized accelerator type; empty for all types together."""

    used_by_others: int = 0
    """What other pods request of the hard limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A limit on the cost per hour of some namespaces' replicas. Raises ValueError for an invalid amount."""

    name: str
    cost_per_hour: Decimal
    namespaces: frozenset[str] = frozenset()
    """The namespaces; empty for all."""

    is_strict: bool = False
    """Whether a budget below the cost of running replicas removes replicas that are needed."""

    def __post_init__(self) -> None:
        cost = self.cost_per_hour
        if not cost.is_finite() or cost < 0:
            raise ValueError(f"budget {self.name}: cost_per_hour: must be finite and at least 0, was {cost}")
