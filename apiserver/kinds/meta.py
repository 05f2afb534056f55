"""Types that every group uses: references, conditions, and the named constraints of plain text."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.core.names import ApiVersion, DnsSubdomain, KindName
from apiserver.schema import durations, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Format, Length, Pattern, Range, Width
from apiserver.schema.texts import PathSegment

Int32 = Annotated[int, Width(32)]
"""An integer of 32 bits, as typed clients of the releases hold it: a list with one that is larger cannot be
read by them at all."""

Uint32 = Annotated[int, Width(32, signed=False)]
"""An integer of 32 bits without a sign."""

Time = Annotated[str, Format("date-time")]
"""A moment in RFC 3339."""

DecimalText = Annotated[
    str, Pattern(r"^\d+(\.\d+)?$", says="a decimal number such as 10 or 10.5"), Length(maximum=32)
]
"""A non-negative decimal number as text: its digits are kept as they were written. The bound is ours."""

Duration = Annotated[
    str, Pattern(durations.PATTERN, says=durations.SAYS), Length(maximum=durations.LONGEST_CHARACTERS)
]
"""A length of time as Go writes one, unsigned; `apiserver.schema.durations` reads it. The bound is ours."""

Quantity = Annotated[
    int | str,
    Pattern(quantities.PATTERN, says="a quantity such as 2, 500m or 80Gi"),
    Length(maximum=quantities.LONGEST_CHARACTERS),
]
"""An amount as Kubernetes writes one; read it with `apiserver.schema.quantities`. The bound is ours."""

PositiveQuantity = Annotated[
    int | str,
    Pattern(quantities.POSITIVE_PATTERN, says="a quantity greater than 0, such as 2, 500m or 80Gi"),
    Length(maximum=quantities.LONGEST_CHARACTERS),
    Range(1),
]
"""A quantity greater than 0."""

ObjectName = Annotated[str, Length(1, 253), PathSegment()]
"""The name of an object of any kind: what is allowed beyond this differs from kind to kind."""


@declaration()
class CrossVersionObjectReference:
    """Enough to find a scalable object in the same namespace."""

    api_version: Maybe[ApiVersion] = UNSET
    """Group and version of the object, such as `apps/v1`."""

    kind: KindName
    """Kind of the object, such as `Deployment`."""

    name: DnsSubdomain
    """Name of the object."""


@declaration()
class Condition:
    """One aspect of the state of an object, as of an observed generation."""

    type: Annotated[
        str,
        Length(maximum=316),
        Pattern(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            says="a name in CamelCase, optionally with a domain in front",
        ),
    ]
    """The aspect of the state that the condition is about."""

    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds: True, False or Unknown."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that was judged; older than `metadata.generation` means out of date."""

    last_transition_time: Time
    """When the status last changed from one value to another."""

    reason: Annotated[
        str,
        Length(1, 1024),
        Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", says="a reason in CamelCase"),
    ]
    """The reason for the status, in one word for programs."""

    message: Annotated[str, Length(maximum=32768)]
    """The reason for the status, in one sentence for people."""
