"""Which pods a pod must or should run near, or keep away from.

Rules: `validatePodAffinityTerm` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36.
They stand below three lists and more, beyond the server's budget for CEL: the webhook alone checks what the
schema cannot say. Bounds on counts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from apiserver.kinds.core.labels import LabelKey, Selector
from apiserver.kinds.core.names import DnsLabel
from apiserver.kinds.core.nodeaffinity import Weight
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Items
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly


def _label_key_list_errors(value: Json, path: FieldPath) -> Iterator[FieldError]:
    matched, mismatched = value.get("matchLabelKeys", []), set(value.get("mismatchLabelKeys", []))
    selector = value.get("labelSelector")
    if selector is None:
        for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
            if keys:
                yield errors.forbidden(path.child(name), "may not be set when `labelSelector` is not set")
        return
    selected = {*selector.get("matchLabels", {})}
    selected |= {expression.get("key") for expression in selector.get("matchExpressions", [])}
    for position, key in enumerate(matched):
        here = path.child("matchLabelKeys").index(position)
        if key in selected:
            yield errors.invalid(here, key, "exists in both `matchLabelKeys` and `labelSelector`")
        if key in mismatched:
            yield errors.invalid(here, key, "exists in both `matchLabelKeys` and `mismatchLabelKeys`")


@declaration(
    WebhookOnly(
        _label_key_list_errors,
        "`matchLabelKeys` and `mismatchLabelKeys` need a `labelSelector` and have no key in common;"
        " nor have `matchLabelKeys` and the selector.",
    )
)
class PodAffinityTerm:
    """Pods to be near, or to keep away from, and what counts as near."""

    label_selector: Maybe[Selector] = UNSET
    """Labels that select the pods in question. Without a selector no pods are meant."""

    namespace_selector: Maybe[Selector] = UNSET
    """Namespaces they are in, by label, beside those that are named. An empty one means all."""

    namespaces: Maybe[Annotated[tuple[DnsLabel, ...], Items(maximum=64)]] = UNSET
    """Namespaces they are in, by name. Without any, and without a selector: the pod's own."""

    topology_key: LabelKey
    """Label of nodes: those with the same value are near each other, such as `kubernetes.io/hostname`."""

    match_label_keys: Maybe[Annotated[tuple[LabelKey, ...], Items(maximum=32)]] = UNSET
    """Labels in which the pods must have the same values as the one that is placed."""

    mismatch_label_keys: Maybe[Annotated[tuple[LabelKey, ...], Items(maximum=32)]] = UNSET
    """Labels in which the pods must have other values than the one that is placed."""


@declaration()
class WeightedPodAffinityTerm:
    """A preference for being near some pods, or away from them."""

    weight: Weight
    """How much it counts, from 1 to 100."""

    pod_affinity_term: PodAffinityTerm
    """The pods to be near or to keep away from."""


PodTerms = Annotated[tuple[PodAffinityTerm, ...], Items(maximum=32)]
WeightedPodTerms = Annotated[tuple[WeightedPodAffinityTerm, ...], Items(maximum=32)]


@declaration()
class PodAffinity:
    """Pods that a pod must or should run near."""

    required_during_scheduling_ignored_during_execution: Maybe[PodTerms] = UNSET
    """Pods that it must run near, all of them. What changes later moves no pod."""

    preferred_during_scheduling_ignored_during_execution: Maybe[WeightedPodTerms] = UNSET
    """Pods that it should run near."""


@declaration()
class PodAntiAffinity:
    """Pods that a pod must or should keep away from."""

    required_during_scheduling_ignored_during_execution: Maybe[PodTerms] = UNSET
    """Pods that it must keep away from, all of them. What changes later moves no pod."""

    preferred_during_scheduling_ignored_during_execution: Maybe[WeightedPodTerms] = UNSET
    """Pods that it should keep away from."""
