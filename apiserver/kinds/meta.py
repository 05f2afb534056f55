"""What all API groups share: references, conditions, constraints on text and numbers, printer columns.

Length limits of references are ours where the API server has none.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import (
    ApiVersion,
    DnsLabelOrEmpty,
    DnsSubdomain,
    DnsSubdomainOrEmpty,
    KindName,
    KindNameOrEmpty,
)
from apiserver.schema import durations, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.kind import Column
from apiserver.schema.markers import Format, Length, Pattern, Range, Width
from apiserver.schema.rules import Cel

Int32 = Annotated[int, Width(32)]
"""A 32-bit signed integer. The released typed clients hold such a field in 32 bits, and fail to decode a
whole list if one item has a larger value."""

Uint32 = Annotated[int, Width(32, signed=False)]
"""A 32-bit unsigned integer."""

Time = Annotated[str, Format("date-time")]
"""A timestamp in RFC 3339 format."""

DecimalText = Annotated[
    str,
    Pattern(r"^\d+(\.\d+)?$", says="a non-negative decimal number such as 10 or 10.5"),
    Length(maximum=32),
]
"""A non-negative decimal number as text, which keeps the digits exactly as written. The length limit is
ours."""

Duration = Annotated[
    str, Pattern(durations.PATTERN, says=durations.SAYS), Length(maximum=durations.LONGEST_CHARACTERS)
]
"""A non-negative duration in Go syntax, parsed by `apiserver.schema.durations`. The length limit is ours."""

Quantity = Annotated[
    int | str,
    Pattern(quantities.PATTERN, says="a quantity such as 2, 500m or 80Gi"),
    Length(maximum=quantities.LONGEST_CHARACTERS),
]
"""A quantity in Kubernetes syntax, parsed by `apiserver.schema.quantities`. The length limit is ours."""

PositiveQuantity = Annotated[
    int | str,
    Pattern(quantities.POSITIVE_PATTERN, says="a quantity greater than 0, such as 2, 500m or 80Gi"),
    Length(maximum=quantities.LONGEST_CHARACTERS),
    Range(1),
]
"""A quantity greater than 0."""

_LONGEST_NAME: Final = 253

ObjectName = Annotated[
    str,
    Length(1, _LONGEST_NAME),
    Cel(
        "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')",
        # The schema rejects a longer name.
        lambda name: len(name) > _LONGEST_NAME or not (name in {".", ".."} or "/" in name or "%" in name),
        "must be a name that no URL reads as a path: not '.' or '..', and without '/' and '%'",
        sentence="Not `.` or `..`, and without `/` and `%`.",
    ),
]
"""The name of an object of any kind. Further constraints differ from kind to kind."""


@declaration()
class CrossVersionObjectReference:
    """A reference to a scalable object in the same namespace."""

    api_version: Maybe[ApiVersion] = UNSET
    """The API version of the object, such as `apps/v1`."""

    kind: KindName
    """The kind of the object, such as `Deployment`."""

    name: DnsSubdomain
    """The name of the object."""


@declaration()
class Condition:
    """One aspect of the state of an object at an observed generation."""

    type: Annotated[
        str,
        Length(maximum=316),
        Pattern(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            says="a name in CamelCase, optionally with a domain in front",
        ),
    ]
    """The type of the condition."""

    status: Literal["True", "False", "Unknown"]
    """The status of the condition: True, False or Unknown."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The `metadata.generation` that the condition was set from. If it is lower than the current one, the
    condition is out of date."""

    last_transition_time: Time
    """The last time the status changed from one value to another."""

    reason: Annotated[
        str,
        Length(1, 1024),
        Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", says="a reason in CamelCase"),
    ]
    """A machine-readable reason for the status, in CamelCase."""

    message: Annotated[str, Length(maximum=32768)]
    """A human-readable explanation of the status, in one sentence."""


@declaration()
class LocalObjectReference:
    """A reference to an object in the same namespace.

    The name is required. The upstream type allows an empty one, but an object with such a reference has no
    effect.
    """

    name: DnsSubdomain
    """The name of the object."""


@declaration()
class ObjectReference:
    """A reference to an object. The referring kind determines which fields are required."""

    api_version: Maybe[ApiVersion] = UNSET
    """The API version of the object, such as `apps/v1`."""

    kind: Maybe[KindNameOrEmpty] = UNSET
    """The kind of the object, such as `Deployment`."""

    namespace: Maybe[DnsLabelOrEmpty] = UNSET
    """The namespace of the object. Defaults to the namespace of the referring object."""

    name: Maybe[DnsSubdomainOrEmpty] = UNSET
    """The name of the object."""

    uid: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The UID of the object, which differs from that of a later object with the same name."""

    resource_version: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The resource version of the object."""

    field_path: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """The part of the object that is referred to, such as `spec.containers{engine}`."""


AGE: Final = Column("Age", "date", ".metadata.creationTimestamp", "Time since the object was created.")
"""The age of the object. It is the last of the columns that are shown without `-o wide`."""


def condition(kind: str, name: str, *, description: str, member: str = "status", priority: int = 0) -> Column:
    """Return a column that shows the status, or another member, of the condition of type `kind`."""
    return Column(
        name, "string", f'.status.conditions[?(@.type=="{kind}")].{member}', description, priority=priority
    )


READY: Final = (
    condition("Ready", "Ready", description="Whether nothing prevents it from working."),
    condition(
        "Ready", "Reason", member="reason", description="Reason of the worst problem, of any condition."
    ),
)
"""Whether an object is ready, and why not. kubectl prints the reason of a problem even if it is."""
