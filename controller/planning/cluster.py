"""What a snapshot knows of the cluster: nodes, nodes that could be added, and what is not to be exceeded."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from controller.planning.ranges import out_of_range

NAME_FIELD = "metadata.name"
"""Stands among a node's labels for its name, which affinity may also ask for; no label is called so."""

MOST_ACCELERATORS = 10**4
"""Of one node: more is a typing error."""

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taint:
    """A node's refusal of pods that don't tolerate it; only NoSchedule and NoExecute taints belong here."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toleration:
    """A pod template's consent to taints, with the meaning of a core/v1 toleration."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRequirement:
    """A demand on one label of a node, with the meaning of a core/v1 node selector requirement."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MovablePod:
    """A pod that belongs to no variant and may be evicted, since its owner makes another one elsewhere.

    Raises ValueError when a number is out of its range.
    """

    namespace: str
    name: str
    accelerators: int
    price_class: int = 2
    """1 (evicted first) to 3."""

    node_selector: frozenset[tuple[str, str]] = frozenset()
    node_affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    """Node selector terms, as in `Variant.node_affinity`."""

    tolerations: frozenset[Toleration] = frozenset()
    disruption_budget: str = ""
    """Name of the one PodDisruptionBudget that it is under; empty without one."""

    evictable: int | None = None
    """Evictions that the budget allows now, of all pods that are under it; None without one."""

    def __post_init__(self) -> None:
        """Refuse what no pod can mean."""
        wrong = out_of_range(
            accelerators=(self.accelerators, 1, 10**4),
            price_class=(self.price_class, 1, 3),
            evictable=(self.evictable or 0, 0, 10**6),
        )
        if wrong:
            raise ValueError(f"pod {self.namespace}/{self.name}: " + "; ".join(wrong))


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A machine with accelerators of one type.

    Raises ValueError when it has more of them than anybody builds.
    """

    name: str
    accelerator: str
    """Normalised type, spelled as in `Variant.accelerator`."""

    accelerators_allocatable: int
    accelerators_used_by_others: int = 0
    """Requested by pods that belong to no variant of the snapshot and are not being deleted."""

    labels: frozenset[tuple[str, str]] = frozenset()
    taints: frozenset[Taint] = frozenset()
    schedulable: bool = True
    """Ready and not cordoned. What runs on an unschedulable node stays; nothing new goes there."""

    def __post_init__(self) -> None:
        """Refuse what no machine has."""
        wrong = out_of_range(accelerators_allocatable=(self.accelerators_allocatable, 0, MOST_ACCELERATORS))
        if wrong:
            raise ValueError(f"node {self.name}: " + "; ".join(wrong))

    movable: tuple[MovablePod, ...] = ()
    """Those of the others' pods that may be evicted; what they hold counts as used by others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePool:
    """Nodes of one shape that a node autoscaler can still add.

    Raises ValueError when a number is out of its range.
    """

    name: str
    accelerator: str
    """Normalised type."""

    accelerators_per_node: int
    price_per_node: Decimal
    """Per hour, on top of what the replicas on it cost; 0 where their cost includes it."""

    nodes_addable: int
    """How many more there can be."""

    lead_seconds: float = 0.0
    """From asking for a node until pods run on it."""

    labels: frozenset[tuple[str, str]] = frozenset()
    """Of the nodes to come."""

    taints: frozenset[Taint] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what no pool can mean."""
        wrong = out_of_range(
            accelerators_per_node=(self.accelerators_per_node, 1, MOST_ACCELERATORS),
            price_per_node=(self.price_per_node, 0, 10**9),
            nodes_addable=(self.nodes_addable, 0, 10**5),
            lead_seconds=(self.lead_seconds, 0, 10**6),
        )
        if wrong:
            raise ValueError(f"node pool {self.name}: " + "; ".join(wrong))


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """A limit on the accelerators that pods of a namespace may request."""

    name: str
    namespace: str
    accelerators: int
    """For the variants of the snapshot: the hard limit less what other pods request."""

    accelerator: str = ""
    """Normalised type; empty for all types together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A limit on what the replicas of some namespaces may cost per hour."""

    name: str
    cost_per_hour: Decimal
    namespaces: frozenset[str] = frozenset()
    """Empty for all of them."""

    is_strict: bool = False
    """Whether it takes replicas that are needed where it is below what runs."""
