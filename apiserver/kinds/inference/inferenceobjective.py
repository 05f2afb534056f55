"""InferenceObjective `v1alpha2`, exactly as released.

An object without `spec` is valid, and `priority` has no default: an absent one reads as 0 and is never filled
in, so that another field may one day take its place.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.meta import Condition, ObjectName
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, MapKeys, Pattern

POOL_GROUP: Final = "inference.networking.k8s.io"
"""Group of the InferencePool since it is generally available."""

FORMER_POOL_GROUP: Final = "inference.networking.x-k8s.io"
"""Group of the InferencePool before. Objectives are in it."""

POOL_KIND: Final = "InferencePool"

GroupName = Annotated[
    str,
    Length(maximum=253),
    Pattern(
        r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        says="an API group such as inference.networking.k8s.io, or empty for the core group",
    ),
]
KindName = Annotated[
    str,
    Length(1, 63),
    Pattern(
        r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$",
        says="a kind such as InferencePool: a letter, then letters, digits and dashes",
    ),
]
"""The name of a kind, in the pattern of the release to the letter."""

_PENDING: Final = Condition(
    type="Ready",
    status="Unknown",
    reason="Pending",
    message="Waiting for controller",
    last_transition_time="1970-01-01T00:00:00Z",
)


@declaration()
class PoolObjectReference:
    """Names an object in the namespace of the objective."""

    group: GroupName = POOL_GROUP
    """API group of the object; empty means the core group."""

    kind: KindName = POOL_KIND
    """Kind of the object, such as InferencePool."""

    name: ObjectName
    """Name of the object."""


@declaration()
class InferenceObjectiveSpec:
    """The desired state of an InferenceObjective: which requests of a pool matter more than others."""

    priority: Maybe[int] = UNSET
    """How important requests are. Under load those of a higher number are always served first; fairness holds
    among equals only. Negative numbers are allowed, and may be shed. Without it, 0."""

    pool_ref: PoolObjectReference
    """The pool whose capacity is shared, in the same namespace."""


@declaration()
class InferenceObjectiveStatus:
    """The observed state of an InferenceObjective."""

    conditions: Annotated[tuple[Condition, ...], Items(maximum=8), MapKeys("type")] = (_PENDING,)
    """`Accepted`: the spec is valid. `ResolvedRefs`: the pool is there. `Ready`: so are pods of it."""


@declaration()
class InferenceObjective:
    """The importance of one use of a model. Requests name it in a header."""

    spec: Maybe[InferenceObjectiveSpec] = UNSET
    """The desired state of the objective: its pool, and the priority of its requests there."""

    status: Maybe[InferenceObjectiveStatus] = UNSET
    """The observed state of the objective. Written by the controller."""
