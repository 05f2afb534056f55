"""Types that every group uses: references, conditions, and the named constraints of plain text."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Format, Length, Pattern, Range

Time = Annotated[str, Format("date-time")]
"""A moment in RFC 3339."""

DecimalText = Annotated[
    str, Pattern(r"^\d+(\.\d+)?$", says="a decimal number such as 10 or 10.5"), Length(maximum=32)
]
"""A non-negative decimal number as text: its digits are kept as they were written. The bound is ours."""

ObjectName = Annotated[str, Length(1, 253)]
"""The name of a Kubernetes object."""


@declaration()
class CrossVersionObjectReference:
    """Enough to find a scalable object in the same namespace."""

    api_version: Maybe[Annotated[str, Length(maximum=317)]] = UNSET
    """Group and version of the object, such as `apps/v1`."""

    kind: Annotated[str, Length(1, 63)]
    """Kind of the object, such as `Deployment`."""

    name: ObjectName
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
    """What the condition is about."""

    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that was judged; older than `metadata.generation` means out of date."""

    last_transition_time: Time
    """When the status last changed from one value to another."""

    reason: Annotated[
        str,
        Length(1, 1024),
        Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", says="a reason in CamelCase"),
    ]
    """Why, in one word for programs."""

    message: Annotated[str, Length(maximum=32768)]
    """Why, in one sentence for people."""
