"""Affinity: scheduling constraints of a pod on nodes, and on the pods to be with or to be kept apart from.

Rules: `validateNodeAffinity` and `validatePodAffinityTerm` of
`k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36, and one rule of the scheduler: Gt and
Lt compare with an integer. They apply below three or more nested lists, which exceeds the API server's cost
budget for CEL, so only the webhook checks what the schema cannot express. Limits on counts are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import (
    OPERATOR_RULES,
    DnsLabel,
    DnsSubdomain,
    LabelKey,
    Selector,
    label_value_errors,
)
from apiserver.kinds.meta import Int32
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Items, Length, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly

_LONGEST_VALUE: Final = 317
_LONGEST_LABEL_VALUE: Final = 63
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")

Weight = Annotated[Int32, Range(1, 100)]
"""The weight of a preference, from 1 to 100."""


def _comparison_errors(value: Json, path: FieldPath) -> Sequence[FieldError]:
    if value.get("operator") not in {"Gt", "Lt"}:
        return ()
    values, here = value.get("values", []), path.child("values")
    if len(values) != 1:
        return [errors.required(here, "must be a single value when `operator` is 'Gt' or 'Lt'")]
    if len(values[0]) > _LONGEST_VALUE or _WHOLE.fullmatch(values[0]):
        return ()
    return [errors.invalid(here.index(0), values[0], "must be an integer when `operator` is 'Gt' or 'Lt'")]


def _value_errors(text: str) -> tuple[str, ...]:
    if _LONGEST_LABEL_VALUE < len(text) <= _LONGEST_VALUE:
        return (f"must be no more than {_LONGEST_LABEL_VALUE} bytes",)
    return label_value_errors(text)


def _required_value_errors(value: Json, path: FieldPath) -> Sequence[FieldError]:
    here = path.parts
    return [
        errors.invalid(
            FieldPath((*here, "nodeSelectorTerms", place, "matchExpressions", position, "values", rank)),
            text,
            detail,
        )
        for place, term in enumerate(value.get("nodeSelectorTerms", ()))
        for position, expression in enumerate(term.get("matchExpressions", ()))
        for rank, text in enumerate(expression.get("values", ()))
        for detail in _value_errors(text)
    ]


@declaration(
    *OPERATOR_RULES,
    WebhookOnly(_comparison_errors, "`values` is one integer when `operator` is 'Gt' or 'Lt'."),
)
class NodeSelectorRequirement:
    """One requirement on the labels of a node."""

    key: LabelKey
    """The key of the label, such as `nvidia.com/gpu.product`."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """The relationship of the label to the values."""

    values: Maybe[
        Annotated[tuple[Annotated[str, Length(maximum=_LONGEST_VALUE)], ...], Items(maximum=64)]
    ] = UNSET
    """The values to compare the label with: one or more for In and NotIn, one integer for Gt and Lt, none
    otherwise."""


@declaration()
class NodeFieldRequirement:
    """One requirement on the name of a node."""

    key: Literal["metadata.name"]
    """The field of the node: always `metadata.name`."""

    operator: Literal["In", "NotIn"]
    """Whether the name must be equal to the value (In) or different from it (NotIn)."""

    values: Annotated[tuple[DnsSubdomain, ...], Items(1, 1)]
    """The name of the node."""


@declaration()
class NodeSelectorTerm:
    """Requirements on a node, all of which must hold. A term without requirements matches no node."""

    match_expressions: Maybe[Annotated[tuple[NodeSelectorRequirement, ...], Items(maximum=32)]] = UNSET
    """Requirements on the labels of the node."""

    match_fields: Maybe[Annotated[tuple[NodeFieldRequirement, ...], Items(maximum=32)]] = UNSET
    """Requirements on the name of the node."""


@declaration(WebhookOnly(_required_value_errors, "Required values are valid as those of labels."))
class NodeSelector:
    """A set of nodes, given as alternative terms."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Items(1, 32)]
    """The alternative terms. A node must match at least one of them."""


@declaration()
class PreferredSchedulingTerm:
    """A weighted preference for the nodes that match a term."""

    weight: Weight
    """The weight of the preference, from 1 to 100."""

    preference: NodeSelectorTerm
    """The preferred nodes."""


@declaration()
class NodeAffinity:
    """The nodes that a pod must or should run on."""

    required_during_scheduling_ignored_during_execution: Maybe[Annotated[NodeSelector, Atomic()]] = UNSET
    """The nodes that the pod must run on. A running pod is not evicted if its node no longer matches."""

    preferred_during_scheduling_ignored_during_execution: Maybe[
        Annotated[tuple[PreferredSchedulingTerm, ...], Items(maximum=32)]
    ] = UNSET
    """The nodes that the pod should run on. The scheduler prefers nodes with the greatest sum of weights."""


def _label_key_list_errors(value: Json, path: FieldPath) -> Sequence[FieldError]:
    selector = value.get("labelSelector")
    if selector is None:
        label_members = (name for name in ("matchLabelKeys", "mismatchLabelKeys") if value.get(name))
        detail = "may not be set when `labelSelector` is not set"
        return [errors.forbidden(path.child(name), detail) for name in label_members]
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
