"""Local copies of Models and of what they became, and which Model a change is about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from apiserver.cluster.cache import Cache, Change, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import OptionalCache
from apiserver.cluster.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEADER_WORKER_SETS,
    MODELS,
    PODS,
)
from apiserver.schema.json import Json
from controller.models.parts import MODEL_LABEL
from controller.models.standing import ChildKey
from controller.reconcilers.model import RESOURCES

_UPSTREAM: Final = "modelinfers.workload.volcano.sh"
"""What the upstream controller of Models makes of them."""

_SILENT_SECONDS: Final = 600.0


class ModelCaches:
    """What the reconciler of Models looks at; `changed` is called with the namespace and name of a Model."""

    def __init__(self, cluster: Cluster, changed: Callable[[tuple[str, str]], None]) -> None:
        self._changed = changed
        self._models = Cache(cluster, MODELS, reduce=without_managed_fields)
        self._pods = Cache(cluster, PODS, label_selector=MODEL_LABEL, reduce=without_managed_fields)
        self._upstream = Cache(
            cluster,
            CUSTOM_RESOURCE_DEFINITIONS,
            field_selector=f"metadata.name={_UPSTREAM}",
            metadata_only=True,
        )
        self._children = {
            kind: Cache(cluster, resource, label_selector=MODEL_LABEL, reduce=without_managed_fields)
            for kind, resource in RESOURCES.items()
            if resource is not LEADER_WORKER_SETS
        }
        self._groups = OptionalCache(
            cluster,
            LEADER_WORKER_SETS,
            without="LeaderWorkerSets",
            silent_seconds=_SILENT_SECONDS,
            reduce=without_managed_fields,
        )
        self._all = (self._models, self._pods, self._upstream, *self._children.values())

    async def run(self) -> None:
        """Keep all copies current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self._all:
                group.create_task(cache.run())
            group.create_task(self._groups.run())

    async def synced(self) -> None:
        """Wait until every first list is in, then tell of every Model, and from then on of each change."""
        for cache in self._all:
            await cache.synced.wait()
        await self._groups.settled.wait()
        for cache in (self._pods, *self._children.values()):
            cache.subscribe(self._child_changed)
        self._groups.subscribe(self._child_changed)
        self._upstream.subscribe(lambda _: self._all_changed())
        self._models.subscribe(self._model_changed)

    def why_not_current(self) -> str | None:
        """Return which copy is missing or too old to act on, or None."""
        for cache in self._all:
            if not cache.synced.is_set():
                return f"{cache.resource.plural} are not listed yet"
            if cache.age_seconds() > _SILENT_SECONDS:
                return f"nothing was heard of {cache.resource.plural} for {cache.age_seconds():.0f} s"
        return self._groups.why_lost()

    def models(self, namespace: str) -> Sequence[Json]:
        """Return the Models of a namespace."""
        return [item for item in self._models.items() if item["metadata"]["namespace"] == namespace]

    def children(self, namespace: str) -> Mapping[ChildKey, Json]:
        """Return what this controller made in a namespace, for any Model."""
        found = {
            ChildKey(kind, item["metadata"]["name"]): item
            for kind, cache in self._children.items()
            for item in cache.items()
            if item["metadata"]["namespace"] == namespace
        }
        groups = {
            ChildKey(LEADER_WORKER_SETS.kind, item["metadata"]["name"]): item
            for item in self._groups.items()
            if item["metadata"]["namespace"] == namespace and _model_of(item)
        }
        return found | groups

    def pods(self, namespace: str, model: str) -> Sequence[Json]:
        """Return the pods of a Model."""
        return [
            item
            for item in self._pods.items()
            if item["metadata"]["namespace"] == namespace and _model_of(item) == model
        ]

    def upstream(self) -> str:
        """Return the API of another controller of Models; empty where there is none."""
        return _UPSTREAM if self._upstream.items() else ""

    def _model_changed(self, change: Change) -> None:
        """Tell of a Model, and of others in its namespace: one may have waited for its name."""
        old, new = (item and {**item, "status": None} for item in (change.old, change.new))
        self._changed(change.key)
        if (old or {}).get("spec") != (new or {}).get("spec"):
            for item in self.models(change.key[0]):
                self._changed((change.key[0], item["metadata"]["name"]))

    def _child_changed(self, change: Change) -> None:
        item = change.new or change.old
        if item is not None and (model := _model_of(item)):
            self._changed((item["metadata"]["namespace"], model))

    def _all_changed(self) -> None:
        for item in self._models.items():
            self._changed((item["metadata"]["namespace"], item["metadata"]["name"]))


def _model_of(item: Json) -> str:
    return str((item["metadata"].get("labels") or {}).get(MODEL_LABEL) or "")
