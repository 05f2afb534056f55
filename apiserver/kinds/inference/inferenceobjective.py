"""InferenceObjective `v1alpha2`, exactly as released.

An object without `spec` is valid. `priority` has no default: an unset priority is read as 0 but never filled
in, so that another field may replace it in a later version.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.meta import Condition, ObjectName
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, MapKeys, Pattern

POOL_GROUP: Final = "inference.networking.k8s.io"
"""The API group of InferencePool since general availability."""

FORMER_POOL_GROUP: Final = "inference.networking.x-k8s.io"
"""The API group of InferencePool before general availability, which is still the group of
InferenceObjective."""

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
"""The name of a kind, with exactly the pattern of the release."""

_PENDING: Final = Condition(
    type="Ready",
    status="Unknown",
    reason="Pending",
    message="Waiting for controller",
    last_transition_time="1970-01-01T00:00:00Z",
)


@declaration()
class PoolObjectReference:
    """A reference to an object in the namespace of the objective."""

    group: GroupName = POOL_GROUP
    """The API group of the object. Empty means the core group."""

    kind: KindName = POOL_KIND
    """The kind of the object, such as InferencePool."""

    name: ObjectName
    """The name of the object."""


@declaration()
class InferenceObjectiveSpec:
    """The desired state of an InferenceObjective: the priority of a class of requests to a pool."""

    priority: Maybe[int] = UNSET
    """The priority of the requests. Under load, requests of a higher priority are always served first;
    fairness applies only among requests of equal priority. Requests of negative priority may be shed. An
    unset priority is read as 0."""

    pool_ref: PoolObjectReference
    """The pool whose capacity the requests share, in the same namespace."""


@declaration()
class InferenceObjectiveStatus:
    """The observed state of an InferenceObjective."""

    conditions: Annotated[tuple[Condition, ...], Items(maximum=8), MapKeys("type")] = (_PENDING,)
    """The conditions of the objective. `Accepted`: the spec is valid. `ResolvedRefs`: the pool exists.
    `Ready`: the pool has ready pods."""


@declaration()
class InferenceObjective:
    """The priority of one use of a model. Requests select an objective by a header."""

    spec: Maybe[InferenceObjectiveSpec] = UNSET
    """The desired state of the objective: its pool, and the priority of its requests."""

    status: Maybe[InferenceObjectiveStatus] = UNSET
    """The observed state of the objective. Written by the controller."""
