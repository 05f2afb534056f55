"""Affinity: scheduling constraints of a pod on nodes, and on the pods to be with or to be kept apart from.

Rules: `validatePodAffinityTerm` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36.
They apply below three or more nested lists, which exceeds the API server's cost budget for CEL, so only the
webhook checks what the schema cannot express. Limits on counts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from apiserver.kinds.core.labels import LabelKey, Selector
from apiserver.kinds.core.names import DnsLabel
from apiserver.kinds.core.nodeaffinity import NodeAffinity, Weight
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Items
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly


def _label_key_list_errors(value: Json, path: FieldPath) -> Sequence[FieldError]:
    selector = value.get("labelSelector")
    if selector is None:
        named = (name for name in ("matchLabelKeys", "mismatchLabelKeys") if value.get(name))
        detail = "may not be set when `labelSelector` is not set"
        return [errors.forbidden(path.child(name), detail) for name in named]
    matched, mismatched = value.get("matchLabelKeys", []), set(value.get("mismatchLabelKeys", []))
    problems: list[FieldError] = []
    selected = {*selector.get("matchLabels", {})}
    selected |= {expression.get("key") for expression in selector.get("matchExpressions", [])}
    for position, key in enumerate(matched):
        here = path.child("matchLabelKeys").index(position)
        if key in selected:
            problems.append(errors.invalid(here, key, "exists in both `matchLabelKeys` and `labelSelector`"))
        if key in mismatched:
            problems.append(
                errors.invalid(here, key, "exists in both `matchLabelKeys` and `mismatchLabelKeys`")
            )
    return problems


@declaration(
    WebhookOnly(
        _label_key_list_errors,
        "`matchLabelKeys` and `mismatchLabelKeys` need a `labelSelector` and have no key in common;"
        " nor have `matchLabelKeys` and the selector.",
    )
)
class PodAffinityTerm:
    """A set of pods, and the topology domain within which they count as co-located."""

    label_selector: Maybe[Selector] = UNSET
    """A query for the pods by their labels. Without a selector the term matches no pods."""

    namespace_selector: Maybe[Selector] = UNSET
    """A query for the namespaces of the pods by label, in addition to `namespaces`. An empty selector selects
    all namespaces."""

    namespaces: Maybe[Annotated[tuple[DnsLabel, ...], Items(maximum=64)]] = UNSET
    """The names of the namespaces of the pods. Defaults to the pod's own namespace if `namespaceSelector` is
    not set either."""

    topology_key: LabelKey
    """The node label that defines the topology domain: nodes with the same value are in the same domain. An
    example is `kubernetes.io/hostname`."""

    match_label_keys: Maybe[Annotated[tuple[LabelKey, ...], Items(maximum=32)]] = UNSET
    """Label keys for which the pods must have the same value as the pod to be scheduled."""

    mismatch_label_keys: Maybe[Annotated[tuple[LabelKey, ...], Items(maximum=32)]] = UNSET
    """Label keys for which the pods must have a different value than the pod to be scheduled."""


@declaration()
class WeightedPodAffinityTerm:
    """A weighted preference for or against co-location with pods."""

    weight: Weight
    """The weight of the preference, from 1 to 100."""

    pod_affinity_term: PodAffinityTerm
    """The pods, and their topology domain."""


PodTerms = Annotated[tuple[PodAffinityTerm, ...], Items(maximum=32)]
WeightedPodTerms = Annotated[tuple[WeightedPodAffinityTerm, ...], Items(maximum=32)]


@declaration()
class PodAffinity:
    """The pods that a pod must or should be co-located with."""

    required_during_scheduling_ignored_during_execution: Maybe[PodTerms] = UNSET
    """The pods that the pod must be co-located with. All terms must hold. A running pod is not evicted if
    they no longer hold."""

    preferred_during_scheduling_ignored_during_execution: Maybe[WeightedPodTerms] = UNSET
    """The pods that the pod should be co-located with."""


@declaration()
class PodAntiAffinity:
    """The pods that a pod must or should not be co-located with."""

    required_during_scheduling_ignored_during_execution: Maybe[PodTerms] = UNSET
    """The pods that the pod must not be co-located with. All terms must hold. A running pod is not evicted if
    they no longer hold."""

    preferred_during_scheduling_ignored_during_execution: Maybe[WeightedPodTerms] = UNSET
    """The pods that the pod should not be co-located with."""


@declaration()
class Affinity:
    """The scheduling constraints of a pod."""

    node_affinity: Maybe[NodeAffinity] = UNSET
    """The nodes that the pod must or should run on."""

    pod_affinity: Maybe[PodAffinity] = UNSET
    """The pods that the pod must or should be co-located with, in the same node or zone."""

    pod_anti_affinity: Maybe[PodAntiAffinity] = UNSET
    """The pods that the pod must or should not be co-located with, in the same node or zone."""
