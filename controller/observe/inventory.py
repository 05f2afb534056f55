"""Nodes with accelerators, how many of these other workloads use, and nodes that Karpenter could add.

A NodePool of Karpenter is a range of instance types. It is used in planning only if it determines the
accelerator type and count; nothing is guessed, and its price and lead time are unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import (
    PROVISIONED_PRODUCT_LABELS,
    RESOURCE_NAMES,
    accelerators_in,
    accelerators_of,
    product_of,
    whole,
)
from controller.observe.pods import is_present, is_stuck, target_of_pod
from controller.observe.scheduling import is_leaving, repellent_taints
from controller.observe.targets import TargetKey
from controller.planning.cluster import MOST_ACCELERATORS, NAME_FIELD, MovablePod, Node, NodePool

NONE_MOVABLE: Final[Mapping[str, tuple[MovablePod, ...]]] = MappingProxyType({})
"""No movable pods of other workloads."""


def inventory(
    nodes: Sequence[Json],
    pods: Sequence[Json],
    planned: frozenset[TargetKey],
    movable: Mapping[str, tuple[MovablePod, ...]] = NONE_MOVABLE,
    *,
    now_seconds: float = 0.0,
) -> tuple[Node, ...]:
    """Return the nodes that have accelerators, up to MOST_ACCELERATORS each.

    `planned` are the targets that planning decides on; `movable` the other pods that may be evicted, by node.
    A pod that is stuck now, of whatever target, holds its accelerators like one of another workload.
    """
    held: Counter[str] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node:
            continue
        if is_stuck(pod, now_seconds) or (is_present(pod) and target_of_pod(pod) not in planned):
            held[node] += accelerators_of(pod["spec"])
    usable = (node for node in nodes if 0 < accelerators_on(node) <= MOST_ACCELERATORS)
    named = ((node, node["metadata"]["name"]) for node in usable)
    return tuple(_node(node, held[name], movable.get(name, ())) for node, name in named)


def oversized_nodes(nodes: Sequence[Json]) -> tuple[str, ...]:
    """Return a message for each node that is omitted because it has too many accelerators."""
    return tuple(
        f"node {node['metadata']['name']} is omitted: it reports {accelerators_on(node)} accelerators, and"
        f" can have at most {MOST_ACCELERATORS}; correct its status.allocatable"
        for node in nodes
        if accelerators_on(node) > MOST_ACCELERATORS
    )


def accelerators_on(node: Json) -> int:
    """Return the allocatable accelerators of a node."""
    return accelerators_in((node.get("status") or {}).get("allocatable") or {})


def type_of(node: Json) -> str:
    """Return the normalized type of a node's accelerators."""
    return product_of(node["metadata"].get("labels") or {})


def labels_of(node: Json) -> frozenset[tuple[str, str]]:
    """Return a node's labels, including the pseudo-label of its name."""
    metadata = node["metadata"]
    return frozenset({**(metadata.get("labels") or {}), NAME_FIELD: metadata["name"]}.items())


def _node(node: Json, held: int, movable: tuple[MovablePod, ...]) -> Node:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    return Node(
        name=node["metadata"]["name"],
        accelerator=type_of(node),
        accelerators_allocatable=accelerators_on(node),
        # Anyone can assign a pod to a node, whatever it requests.
        accelerators_used_by_others=min(held, MOST_ACCELERATORS),
        movable=movable,
        labels=labels_of(node),
        taints=repellent_taints(spec.get("taints") or []),
        schedulable=not spec.get("unschedulable") and _is_ready(status) and not is_leaving(node),
    )


def _is_ready(status: Json) -> bool:
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
    return conditions.get("Ready") == "True"


COUNT_LABELS: Final = (
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
)
"""Labels with the number of accelerators per node."""

INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
"""Existing nodes of the same instance type show what a new one has."""

_ACCELERATOR_LABELS: Final = frozenset({*PROVISIONED_PRODUCT_LABELS, *COUNT_LABELS})
_EXCLUDING: Final = frozenset({"NotIn", "DoesNotExist", "Lt", "Lte"})
_POOL_LABEL: Final = "karpenter.sh/nodepool"
_INITIALIZED: Final = "karpenter.sh/initialized"
"""Label that a node gets when it is ready, has its devices, and has lost its startup taints."""

_NODES: Final = "nodes"
"""Name of the limit on the number of nodes."""

_MOST_NODES: Final = 10**5
_MOST_ACCELERATORS: Final = 10**4


@dataclass(frozen=True, kw_only=True, slots=True)
class KarpenterPools:
    """The node pools that can be used in planning, and a message for each that cannot."""

    pools: tuple[NodePool, ...] = ()
    problems: tuple[str, ...] = ()


def karpenter_pools(objects: Sequence[Json], nodes: Sequence[Json]) -> KarpenterPools:
    """Return the pools with accelerators among NodePools (`karpenter.sh/v1`); others are skipped."""
    pools: list[NodePool] = []
    problems: list[str] = []
    for item in objects:
        if not _is_about_accelerators(item) or not _is_in_use(item):
            continue
        where = f"Karpenter NodePool {item['metadata']['name']}"
        if why_not := _why_not_ready(item):
            problems.append(f"{where} is not ready, so no nodes of it are planned: {why_not}")
            continue
        try:
            pools.append(_pool(item, nodes))
        except ValueError as error:
            problems.append(f"{where}: {error}; to plan with its nodes, declare it in planning.nodePools")
    return KarpenterPools(pools=tuple(pools), problems=tuple(problems))


def _is_in_use(item: Json) -> bool:
    """Return whether pods that wait make Karpenter add nodes: with `replicas`, their number is fixed."""
    return not item["metadata"].get("deletionTimestamp") and item["spec"].get("replicas") is None


def _why_not_ready(item: Json) -> str:
    """Return why Karpenter ignores a NodePool, for instance without its node class; empty if it does not."""
    conditions = (item.get("status") or {}).get("conditions") or []
    ready = next((condition for condition in conditions if condition["type"] == "Ready"), None)
    if ready is None or ready["status"] != "False":
        return ""
    return str(ready.get("message") or ready.get("reason") or "its condition Ready is False")


def _is_about_accelerators(item: Json) -> bool:
    limited = (item["spec"].get("limits") or {}).keys()
    labelled = _template_labels(item).keys() & _ACCELERATOR_LABELS
    return bool(labelled or limited & {*RESOURCE_NAMES}) or any(map(_asks_for_some, _requirements(item)))


def _asks_for_some(demand: Json) -> bool:
    """Return whether a requirement asks for accelerators, rather than excluding them."""
    is_exclusion = demand["operator"] in _EXCLUDING or list(demand.get("values") or []) == ["0"]
    return demand["key"] in _ACCELERATOR_LABELS and not is_exclusion


def _pool(item: Json, nodes: Sequence[Json]) -> NodePool:
    """Return the record of one NodePool. Raises ValueError if it does not determine type, count or limit."""
    name = item["metadata"]["name"]
    possible = _possible_labels(item)
    labels = {key: next(iter(values)) for key, values in possible.items() if len(values) == 1}
    twin = _twin(labels, nodes)
    accelerator, number = _type(labels, twin), _number(labels, twin)
    own = [node for node in nodes if _labels(node).get(_POOL_LABEL) == name]
    return NodePool(
        name=name,
        accelerator=accelerator,
        accelerators_per_node=number,
        price_per_node=Decimal(0),
        nodes_addable=min(_nodes_below_limits(item, own, twin, number), _MOST_NODES),
        labels=frozenset((key, value) for key, values in possible.items() for value in values),
        taints=repellent_taints((item["spec"]["template"].get("spec") or {}).get("taints") or []),
    )


def _type(labels: Mapping[str, str], twin: Json) -> str:
    product = product_of(labels) or product_of(_labels(twin))
    if not product:
        raise ValueError(
            "its requirements leave the accelerator's type open"
            f" (none has one {PROVISIONED_PRODUCT_LABELS[0]})"
        )
    return product


def _number(labels: Mapping[str, str], twin: Json) -> int:
    text = next((labels[label] for label in COUNT_LABELS if labels.get(label)), "")
    number = int(text) if text.isdecimal() and len(text) < len(str(_MOST_ACCELERATORS)) else 0
    number = number or _accelerators_on(twin)
    if not number:
        raise ValueError(f"its requirements leave the number per node open (none has one {COUNT_LABELS[0]})")
    return number


def _nodes_below_limits(item: Json, own: Sequence[Json], twin: Json, number: int) -> int:
    """Return how many nodes are missing below the limits, including those that are being added.

    Karpenter's own count includes a machine from its launch. Here it counts as a node to come until it can
    run pods: otherwise the pods for which it is launched would have no place in the meantime. Nodes that are
    being removed do not count, as in Karpenter's own count. Raises ValueError without an applicable limit.
    """
    joined = [node for node in own if _has_joined(node)]
    sample = next((node for node in (*joined, twin) if _accelerators_on(node)), {})
    ceilings = item["spec"].get("limits") or {}
    rooms = []
    if any(name in ceilings for name in RESOURCE_NAMES):
        rooms.append((accelerators_in(ceilings) - sum(map(_accelerators_on, joined))) // number)
    for name in ceilings.keys() - RESOURCE_NAMES:
        if each := _capacity(sample, name):
            used = sum(_capacity(node, name) for node in joined)
            rooms.append((whole(ceilings[name]) - used) // each)
    if not rooms:
        raise ValueError("it has no limit of accelerators (spec.limits, such as nvidia.com/gpu) or of nodes")
    return max(0, min(rooms))


def _has_joined(node: Json) -> bool:
    """Return whether a node can run pods, and is not being removed."""
    return _labels(node).get(_INITIALIZED) == "true" and not is_leaving(node)


def _capacity(node: Json, name: str) -> int:
    """Return what a node counts towards a limit; 0 if unknown."""
    capacity = (node.get("status") or {}).get("capacity") or {}
    return 1 if name == _NODES else whole(capacity.get(name, 0))


def _possible_labels(item: Json) -> Mapping[str, frozenset[str]]:
    """Return the values that labels of new nodes may have, for labels of which these are known."""
    own = {**_template_labels(item), _POOL_LABEL: item["metadata"]["name"]}
    possible = {key: frozenset({value}) for key, value in own.items()}
    for demand in _requirements(item):
        if demand["operator"] == "In":
            listed = frozenset(map(str, demand.get("values") or []))
            possible[demand["key"]] = possible.get(demand["key"], listed) & listed
    for demand in _requirements(item):
        if demand["operator"] == "NotIn" and demand["key"] in possible:
            possible[demand["key"]] -= frozenset(map(str, demand.get("values") or []))
    return possible


def _twin(labels: Mapping[str, str], nodes: Sequence[Json]) -> Json:
    """Return an existing node of the only instance type that the pool admits, or an empty object."""
    instance_type = labels.get(INSTANCE_TYPE_LABEL)
    alike = (
        node for node in nodes if instance_type and _labels(node).get(INSTANCE_TYPE_LABEL) == instance_type
    )
    return next((node for node in alike if _accelerators_on(node)), {})


def _requirements(item: Json) -> Iterator[Json]:
    for demand in (item["spec"]["template"].get("spec") or {}).get("requirements") or []:
        if demand.get("key") and demand.get("operator"):
            yield demand


def _template_labels(item: Json) -> Mapping[str, str]:
    return (item["spec"]["template"].get("metadata") or {}).get("labels") or {}


def _labels(node: Json) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("labels") or {}


def _accelerators_on(node: Json) -> int:
    status = node.get("status") or {}
    return accelerators_in(status.get("capacity") or status.get("allocatable") or {})
