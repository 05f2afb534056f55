"""Which nodes pods may run on, and which they should.

Rules: `validateNodeAffinity` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36; and
one that the scheduler has: what Gt and Lt compare with is a whole number. All stand below three lists and
more, beyond the server's budget for CEL: the webhook alone checks what the schema cannot say. Bounds on
counts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import re2

from apiserver.kinds.core.labels import LabelKey, label_value_errors
from apiserver.kinds.core.names import DnsSubdomain
from apiserver.kinds.meta import Int32
from apiserver.schema import errors
from apiserver.schema.choices import ForbiddenWhen, RequiredWhen
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Items, Length, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly, WithoutCel

_LONGEST_VALUE: Final = 317
_LONGEST_LABEL_VALUE: Final = 63
_WHOLE: Final = re2.compile(r"^[-+]?[0-9]{1,18}$")

Weight = Annotated[Int32, Range(1, 100)]
"""How much a preference counts against others."""


def _comparison_errors(value: Json, path: FieldPath) -> Iterator[FieldError]:
    values = value.get("values", [])
    if value.get("operator") not in {"Gt", "Lt"}:
        return
    if len(values) != 1:
        yield errors.required(path.child("values"), "must be a single value when `operator` is 'Gt' or 'Lt'")
    elif len(values[0]) <= _LONGEST_VALUE and not _WHOLE.search(values[0]):
        detail = "must be an integer when `operator` is 'Gt' or 'Lt'"
        yield errors.invalid(path.child("values").index(0), values[0], detail)


def _value_errors(text: str) -> tuple[str, ...]:
    if _LONGEST_LABEL_VALUE < len(text) <= _LONGEST_VALUE:
        return (f"must be no more than {_LONGEST_LABEL_VALUE} bytes",)
    return label_value_errors(text)


def _required_value_errors(value: Json, path: FieldPath) -> Iterator[FieldError]:
    for place, term in enumerate(value.get("nodeSelectorTerms", [])):
        for position, expression in enumerate(term.get("matchExpressions", [])):
            for rank, text in enumerate(expression.get("values", [])):
                for detail in _value_errors(text):
                    here = path.child("nodeSelectorTerms").index(place).child("matchExpressions")
                    yield errors.invalid(here.index(position).child("values").index(rank), text, detail)


@declaration(
    WithoutCel(RequiredWhen("values", "operator", ("In", "NotIn"))),
    WithoutCel(ForbiddenWhen("values", "operator", ("Exists", "DoesNotExist"))),
    WebhookOnly(_comparison_errors, "`values` is one integer when `operator` is 'Gt' or 'Lt'."),
)
class NodeSelectorRequirement:
    """One condition on the labels of a node."""

    key: LabelKey
    """The label that is looked at, such as `nvidia.com/gpu.product`."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the label is compared with the values."""

    values: Maybe[
        Annotated[tuple[Annotated[str, Length(maximum=_LONGEST_VALUE)], ...], Items(maximum=64)]
    ] = UNSET
    """What it is compared with: one or more for In and NotIn, one integer for Gt and Lt, none otherwise."""


@declaration()
class NodeFieldRequirement:
    """One condition on the name of a node."""

    key: Literal["metadata.name"]
    """The field that is compared: always `metadata.name`."""

    operator: Literal["In", "NotIn"]
    """Whether the node must be that one or must not."""

    values: Annotated[tuple[DnsSubdomain, ...], Items(1, 1)]
    """The name of the node."""


@declaration()
class NodeSelectorTerm:
    """Conditions on a node that must all hold. Without any, no node meets them."""

    match_expressions: Maybe[Annotated[tuple[NodeSelectorRequirement, ...], Items(maximum=32)]] = UNSET
    """Conditions on the labels of the node."""

    match_fields: Maybe[Annotated[tuple[NodeFieldRequirement, ...], Items(maximum=32)]] = UNSET
    """Conditions on the name of the node."""


@declaration(WebhookOnly(_required_value_errors, "Required values are valid as those of labels."))
class NodeSelector:
    """Nodes that meet one of several terms."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Items(1, 32)]
    """Terms of which a node must meet one."""


@declaration()
class PreferredSchedulingTerm:
    """A preference for some nodes."""

    weight: Weight
    """How much it counts, from 1 to 100."""

    preference: NodeSelectorTerm
    """The nodes that are preferred."""


@declaration()
class NodeAffinity:
    """Nodes that a pod must or should run on."""

    required_during_scheduling_ignored_during_execution: Maybe[Annotated[NodeSelector, Atomic()]] = UNSET
    """Nodes that it must run on. What changes later moves no pod."""

    preferred_during_scheduling_ignored_during_execution: Maybe[
        Annotated[tuple[PreferredSchedulingTerm, ...], Items(maximum=32)]
    ] = UNSET
    """Nodes that it should run on: those with the highest sum of weights come first."""
