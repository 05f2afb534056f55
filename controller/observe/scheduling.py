"""Node-related scheduling constraints of a pod template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.schema.json import Json, JsonValue
from controller.planning.cluster import NodeRequirement, Taint, Toleration

MOVING: Final = "stowplan.dev/moving"
"""Taint that keeps new pods off a node while pods are moved from it; planning ignores it."""

PLACED_BY: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
"""Pod spec fields that restrict placement."""

MOST_VALUES: Final = 2000
"""Maximum number of values in these fields: each may be compared with each node. Real pods have a few dozen,
or one for each of some hundred nodes.
"""

_REMOVED_SOON: Final = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "node.kubernetes.io/out-of-service",
        "cloud.google.com/impending-node-termination",
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/asg-lifecycle-termination",
    }
)
"""Taints of nodes that are about to be drained and removed, or whose machine is gone."""

_REPELLENT: Final = frozenset({"NoSchedule", "NoExecute"})


def placement_values(pod_spec: Json) -> int:
    """Return the number of values in the fields that restrict placement."""
    return sum(_values_in(pod_spec[name]) for name in PLACED_BY if name in pod_spec)


def _values_in(value: JsonValue) -> int:
    if isinstance(value, dict):
        return sum(map(_values_in, value.values()))
    return sum(map(_values_in, value)) if isinstance(value, list) else 1


def node_affinity(pod_spec: Json) -> tuple[tuple[NodeRequirement, ...], ...]:
    """Return the node selector terms that pods require: all requirements of at least one term."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return tuple(_term(term) for term in required.get("nodeSelectorTerms") or [])


def require_labels(
    terms: tuple[tuple[NodeRequirement, ...], ...], keys: Sequence[str]
) -> tuple[tuple[NodeRequirement, ...], ...]:
    """Return terms that also require some labels, with any value."""
    more = tuple(NodeRequirement(key=key, operator="Exists") for key in keys)
    if not more:
        return terms
    # An empty term matches no node, whatever else is required.
    return tuple((*term, *more) if term else term for term in terms) or (more,)


def tolerations(pod_spec: Json) -> frozenset[Toleration]:
    """Return the tolerations of pods."""
    return frozenset(
        Toleration(
            key=item.get("key") or "",
            operator=item.get("operator") or "Equal",
            value=item.get("value") or "",
            effect=item.get("effect") or "",
        )
        for item in pod_spec.get("tolerations") or []
    )


def repellent_taints(taints: Sequence[Json]) -> frozenset[Taint]:
    """Return the taints that keep pods off a node, with the effects NoSchedule and NoExecute."""
    return frozenset(
        Taint(key=taint["key"], value=taint.get("value") or "", effect=taint["effect"])
        for taint in taints
        if taint["effect"] in _REPELLENT and taint["key"] != MOVING
    )


def is_leaving(node: Json) -> bool:
    """Return whether a node is being removed, so that its pods have to leave whatever they tolerate."""
    taints = (node.get("spec") or {}).get("taints") or []
    is_deleted = node["metadata"].get("deletionTimestamp") is not None
    return is_deleted or any(taint["key"] in _REMOVED_SOON for taint in taints)


def _term(term: Json) -> tuple[NodeRequirement, ...]:
    # Node name is the only field that node selectors support.
    demands = [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]
    return tuple(
        NodeRequirement(
            key=demand["key"], operator=demand["operator"], values=tuple(demand.get("values") or [])
        )
        for demand in demands
    )
