"""Caches of the objects that Stowplan's objects may reference, filled in the background."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from apiserver.cluster.cache import Cache
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.resource import (
    AUTOSCALING_POLICIES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_POOLS,
    MODEL_SERVERS,
    SERVING_MODEL_SERVERS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
    Selection,
)
from apiserver.log import EventLogger
from webhooks.claims import Autoscalers, Claimant, Claims, autoscaler_only, targets_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from apiserver.cluster.cache import Change
    from apiserver.cluster.client import Cluster
    from apiserver.kinds.autoscalers import Autoscaler
    from apiserver.schema.json import Json
    from apiserver.schema.kind import Reference

_LOOK_AGAIN_SECONDS: Final = 60.0

_log = EventLogger(__name__)

NAMED: Final = (
    DEPLOYMENTS,
    STATEFUL_SETS,
    AUTOSCALING_POLICIES,
    MODEL_SERVERS,
    SERVING_MODEL_SERVERS,
    INFERENCE_POOLS,
)
"""Kinds that are looked up by name alone. A kind that the cluster does not serve may be installed later."""

CLAIMING: Final = (AUTOSCALING_POLICY_BINDINGS, VARIANT_AUTOSCALINGS)
"""Stowplan's kinds that name scale targets."""


class CachedReferents:
    """Implements `webhooks.references.Referents` with caches that `follow` fills; none are known before."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._caches: dict[tuple[str, str], Cache] = {}
        self._settings: Cache | None = None
        self._claims = Claims()
        self._autoscalers = Autoscalers()

    def has(self, reference: Reference, namespace: str) -> bool | None:
        """Tell whether the referenced object exists; None if that is unknown."""
        if reference.is_settings:
            return self._has_settings(reference)
        cache = self._caches.get((reference.group, reference.kind))
        if cache is None or not cache.synced.is_set():
            return None
        return cache.get(namespace, reference.name) is not None

    def place(self, reference: Reference, namespace: str) -> str:
        """Return the namespace in which the referenced object is looked up."""
        return self._namespace if reference.is_settings else namespace

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterable[Claimant]:
        """Return the other known objects that scale a target."""
        return self._claims.others(reference, namespace, own)

    def autoscalers(self, reference: Reference, namespace: str) -> Sequence[Autoscaler]:
        """Return the known HorizontalPodAutoscalers of a target."""
        return self._autoscalers.of(reference, namespace)

    async def follow(self, cluster: Cluster) -> None:
        """Keep the caches current until cancelled."""
        self._settings = Cache(cluster, CONFIG_MAPS, namespace=self._namespace, reduce=_keys)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._settings.run())
            for resource in NAMED:
                tasks.create_task(self._follow(cluster, resource))
            for resource in CLAIMING:
                reduce = targets_only(resource.group, resource.kind)
                take = partial(self._claims.take, resource.kind)
                tasks.create_task(_subscribe(cluster, resource, reduce, take))
            tasks.create_task(
                _subscribe(cluster, HORIZONTAL_POD_AUTOSCALERS, autoscaler_only, self._autoscalers.take)
            )

    async def _follow(self, cluster: Cluster, resource: Resource) -> None:
        await _until_served(cluster, resource)
        cache = Cache(cluster, resource, metadata_only=True, reduce=_bare)
        self._caches[resource.group, resource.kind] = cache
        await cache.run()

    def _has_settings(self, reference: Reference) -> bool | None:
        if self._settings is None or not self._settings.synced.is_set():
            return None
        keys = self._settings.get(self._namespace, reference.name)
        return keys is not None and (not reference.key or reference.key in keys)


async def _subscribe(
    cluster: Cluster, resource: Resource, reduce: Callable[[Json], Json], take: Callable[[Change], None]
) -> None:
    await _until_served(cluster, resource)
    cache = Cache(cluster, resource, reduce=reduce)
    cache.subscribe(take)
    await cache.run()


async def _until_served(cluster: Cluster, resource: Resource) -> None:
    """Wait until the cluster serves a kind: its definition may be installed later, or never.

    The permission to list a kind comes with its definition, and the API server checks permissions before it
    finds the kind missing. So Forbidden does not end the wait either; it is logged once.
    """
    has_told = False
    while True:
        try:
            await cluster.list_selection(Selection(resource=resource, metadata_only=True), page_size=1)
        except NotFound:
            pass
        except Forbidden as error:
            if not has_told:
                _log.info("no warnings about other objects of a kind", kind=resource.kind, why=error.message)
            has_told = True
        except ClusterError:
            return  # the cache retries after any other error, and logs it
        else:
            return
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def _bare(value: Json) -> Json:
    """Drop all content; only the existence of the object matters."""
    del value
    return {}


def _keys(value: Json) -> Json:
    """Keep only the names of the keys."""
    return dict.fromkeys([*(value.get("data") or {}), *(value.get("binaryData") or {})])
