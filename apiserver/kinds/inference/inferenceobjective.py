"""InferenceObjective `v1alpha2`, exactly as released.

An object without `spec` is valid. `priority` has no default: an unset priority is read as 0 but never filled
in, so that another field may replace it in a later version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from apiserver.kinds.meta import AGE, Condition, ObjectName, condition
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.json import Json
from apiserver.schema.kind import Column, Kind, Reference, Version
from apiserver.schema.markers import Items, Length, MapKeys, Pattern
from apiserver.schema.paths import FieldPath

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


_INT32: Final = range(-(2**31), 2**31)

# The columns with priority 0 are those of the release. `Priority` is a string there too: an unset one is
# shown empty, not as 0.
_COLUMNS: Final = (
    Column("Inference Pool", "string", ".spec.poolRef.name", "Pool that serves the requests."),
    Column("Priority", "string", ".spec.priority", "Importance of the requests; 0 if unset."),
    AGE,
    condition("Accepted", "Accepted", description="Whether the spec is valid.", priority=1),
    condition("ResolvedRefs", "Resolved", description="Whether the pool exists.", priority=1),
    condition("Ready", "Ready", description="Whether the pool has ready pods.", priority=1),
    condition(
        "ResolvedRefs", "Models", member="message", description="Models that the pool serves.", priority=1
    ),
    condition("Ready", "Endpoints", member="message", description="Ready pods of the pool.", priority=1),
)


def objective_advice(value: Json) -> list[str]:
    """Return a warning for each part of a valid objective that is probably a mistake."""
    spec: Json | None = value.get("spec")
    if spec is None:
        return ["spec: not set: the objective names no pool, and no request can use it"]
    return [*_priority_advice(spec), *_pool_advice(spec["poolRef"])]


def _priority_advice(spec: Json) -> Iterator[str]:
    if not _INT32[0] <= spec.get("priority", 0) <= _INT32[-1]:  # `in` a range is a search for 1e9
        yield "spec.priority: exceeds 32 bits, the limit of llm-d.ai/v1alpha2 InferenceObjective"


def _pool_advice(pool: Json) -> Iterator[str]:
    path = "spec.poolRef"
    if pool.get("kind", POOL_KIND) != POOL_KIND:
        yield f"{path}.kind: endpoint pickers look for an InferencePool of that name and ignore this field"
    group = pool.get("group", POOL_GROUP)
    if group == FORMER_POOL_GROUP:
        yield f"{path}.group: the former group of InferencePools; use {POOL_GROUP}"
    elif group != POOL_GROUP:
        yield f"{path}.group: InferencePools are not in this group; use {POOL_GROUP}"


def _references(value: Json) -> Iterator[Reference]:
    pool = value.get("spec", {}).get("poolRef")
    if pool is not None:
        yield Reference(
            path=FieldPath().child("spec", "poolRef"),
            group=pool.get("group", POOL_GROUP),
            kind=pool.get("kind", POOL_KIND),
            name=pool.get("name", ""),
        )


INFERENCE_OBJECTIVE: Final = Kind(
    group=FORMER_POOL_GROUP,
    kind="InferenceObjective",
    plural="inferenceobjectives",
    short_names=("infobj",),
    categories=("stowplan",),
    versions=(
        Version(
            name="v1alpha2",
            declaration=InferenceObjective,
            is_storage=True,
            columns=_COLUMNS,
            advise=(objective_advice,),
            references=_references,
        ),
    ),
)
