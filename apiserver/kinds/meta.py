"""Types shared by all API groups: references, conditions, and named constraints on text and numbers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import ApiVersion, DnsSubdomain, KindName
from apiserver.schema import durations, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
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
