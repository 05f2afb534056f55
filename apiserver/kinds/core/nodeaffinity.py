"""Node affinity: the nodes that a pod must or should run on.

Rules: `validateNodeAffinity` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36, and
one rule of the scheduler: Gt and Lt compare with an integer. The rules apply below three or more nested
lists, which exceeds the API server's cost budget for CEL, so only the webhook checks what the schema cannot
express. Limits on counts are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from apiserver.kinds.core.labels import OPERATOR_RULES, LabelKey, label_value_errors
from apiserver.kinds.core.names import DnsSubdomain
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
