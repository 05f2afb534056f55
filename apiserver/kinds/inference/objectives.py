"""The kind InferenceObjective: names, printer columns, warnings and references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.kinds.columns import AGE, condition
from apiserver.kinds.inference.inferenceobjective import (
    FORMER_POOL_GROUP,
    POOL_GROUP,
    POOL_KIND,
    InferenceObjective,
)
from apiserver.schema.json import Json
from apiserver.schema.kind import Column, Kind, Reference, Version
from apiserver.schema.paths import FieldPath

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
    singular="inferenceobjective",
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
