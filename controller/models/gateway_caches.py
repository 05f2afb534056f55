"""Caches of the Gateway API objects made for ModelRoutes, and of the inputs of their translation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from apiserver.cluster.cache import Change, Grouped, catch_errors
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import OptionalCache
from apiserver.cluster.resource import CUSTOM_RESOURCE_DEFINITIONS, MODEL_ROUTES, NAMESPACES
from apiserver.schema.json import Json
from controller.expansion.parts import MANAGED_BY
from controller.expansion.standing import ChildKey, digest_object, key_of
from controller.gateways.installed import API_VERSIONS, Installed, installed_of, reduce_definition
from controller.models.gateways import RESOURCES

_ASK_AGAIN_SECONDS: Final = 10.0
"""Retry interval in seconds: a new kind's objects become readable shortly after its definition."""

_OURS: Final = ",".join(f"{name}={text}" for name, text in MANAGED_BY.items())


class GatewayCaches:
    """Caches of the inputs of the translation for Gateways.

    `changed` is called with a namespace and the name of a ModelRoute. An empty name stands for all
    ModelRoutes of the namespace, an empty namespace for all namespaces.
    """

    def __init__(self, cluster: Cluster, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._namespaces = OptionalCache(
            cluster, NAMESPACES, reduce=_annotations, without="annotations of Namespaces"
        )
        self._definitions = {
            name: OptionalCache(
                cluster,
                CUSTOM_RESOURCE_DEFINITIONS,
                reduce=reduce_definition,
                field_selector=f"metadata.name={name}",
                without=f"the definition {name}",
            )
            for name in API_VERSIONS
        }
        self._children = {
            resource.full_name: OptionalCache(
                cluster,
                resource,
                label_selector=_OURS,
                reduce=digest_object,
                without=f"{resource.kind}s",
                ask_again_seconds=_ASK_AGAIN_SECONDS,
            )
            for resource in RESOURCES
        }
        self._served = {name: asyncio.Event() for name in API_VERSIONS}
        self._annotated: dict[str, Json] = {}
        self._made = Grouped(lambda item: (str(item["metadata"]["namespace"]), key_of(item)))
        self._namespaces.subscribe(self._namespace_changed)
        for definitions in self._definitions.values():
            definitions.subscribe(self._definition_changed)
        for children in self._children.values():
            children.subscribe(catch_errors(self._child_changed))

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in (self._namespaces, *self._definitions.values()):
                group.create_task(cache.run())
            for name, children in self._children.items():
                group.create_task(self._run_when_served(name, children))

    async def wait_until_synced(self) -> None:
        """Wait until the served kinds are known and their initial lists complete."""
        for cache in (self._namespaces, *self._definitions.values()):
            await cache.settled.wait()
        for name, served in self._served.items():
            if served.is_set():
                await self._children[name].settled.wait()

    def why_not_current(self) -> str | None:
        """Return which cache is too old to act on, or None."""
        caches = (self._namespaces, *self._definitions.values(), *self._children.values())
        return next(filter(None, (cache.why_lost() for cache in caches)), None)

    def namespace(self, name: str) -> Json | None:
        """Return a Namespace, reduced to its annotations."""
        return self._annotated.get(name)

    def installed(self) -> Installed:
        """Return which definitions are served by the cluster and readable."""
        readable = [name for name, children in self._children.items() if children.is_readable]
        return installed_of(item for name in readable for item in self._definitions[name].items())

    def made(self, namespace: str) -> Mapping[ChildKey, Json]:
        """Return the objects that were made for the ModelRoutes of a namespace, as a copy for threads."""
        return {**self._made.of(namespace)}

    async def _run_when_served(self, name: str, children: OptionalCache) -> None:
        await self._served[name].wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(children.run())
            await children.settled.wait()
            self._changed("", "")

    def _namespace_changed(self, change: Change) -> None:
        name = change.key[1]
        if change.new is None:
            del self._annotated[name]
        elif change.new != self._annotated.get(name):
            self._annotated[name] = change.new
            self._changed(name, "")

    def _definition_changed(self, change: Change) -> None:
        """Report all routes as changed: a kind may be served now, or have new fields."""
        if change.new is not None:
            self._served[change.key[1]].set()
        self._changed("", "")

    def _child_changed(self, change: Change) -> None:
        self._made.take(change)
        for item in filter(None, (change.old, change.new)):
            for owner in item["metadata"].get("ownerReferences") or []:
                if owner["kind"] == MODEL_ROUTES.kind:
                    self._changed(change.key[0], owner["name"])


def _annotations(namespace: Json) -> Json:
    """Return the reduced Namespace. Namespaces that are equal in this form need no notification."""
    metadata = namespace["metadata"]
    kept = {"name": metadata["name"], "annotations": metadata.get("annotations") or {}}
    return {"metadata": kept}
