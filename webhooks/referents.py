"""Warnings that depend on other objects, and the caches of these objects, filled in the background.

They never cause a rejection, because manifests may be applied in any order. There are no warnings until the
caches are filled, and conversion does not use this module.
"""

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
)
from apiserver.kinds.autoscalers import autoscaler_of
from apiserver.kinds.following import following_problems, target_subject, variant_subject
from apiserver.kinds.metric_labels import variant_labels
from apiserver.kinds.registry import find_kind
from apiserver.log import EventLogger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apiserver.cluster.cache import Change
    from apiserver.cluster.client import Cluster
    from apiserver.kinds.autoscalers import Autoscaler
    from apiserver.kinds.following import Problem
    from apiserver.schema.json import Json
    from apiserver.schema.kind import Reference

Claimant = tuple[str, str]
"""Kind and name of the object that scales a target."""

_Target = tuple[str, str, str, str]


class ScalerIndex:
    """The objects that scale each target, kept current by `take`."""

    def __init__(self) -> None:
        self._claimants: dict[_Target, dict[Claimant, Json]] = {}

    def take(self, kind: str, change: Change) -> None:
        """Apply a change of an object, both states reduced to their targets, and what else is needed."""
        namespace, name = change.key
        for target in _targets(change.old, namespace):
            claimants = self._claimants.get(target, {})
            claimants.pop((kind, name), None)
            if not claimants:
                self._claimants.pop(target, None)
        if change.new is not None:
            for target in _targets(change.new, namespace):
                self._claimants.setdefault(target, {})[kind, name] = change.new

    def of(self, reference: Reference, namespace: str) -> list[tuple[Claimant, Json]]:
        """Return the reduced objects that scale a target, sorted by kind and name."""
        target = (namespace, reference.group, reference.kind, reference.name)
        return sorted(self._claimants.get(target, {}).items(), key=lambda item: item[0])


def autoscaler_only(value: Json) -> Json:
    """Reduce a HorizontalPodAutoscaler to its target and its record."""
    meant = value["spec"]["scaleTargetRef"]
    group = str(meant.get("apiVersion") or "").rpartition("/")[0]
    return {"targets": [(group, meant["kind"], meant["name"])], "autoscaler": autoscaler_of(value)}


def targets_only(group: str, kind: str) -> Callable[[Json], Json]:
    """Return the function that reduces an object of one of our kinds to its scale targets."""
    known = find_kind(group, kind)
    assert known is not None, f"{kind} of {group} is a kind of Stowplan"
    references = known.storage_version.references

    def reduce(value: Json) -> Json:
        try:
            listed = list(references(value))
        except (KeyError, TypeError, AttributeError):
            listed = []  # stored without admission, so its targets are unreadable
        return {
            "targets": [(item.group, item.kind, item.name) for item in listed if item.is_scaled and item.name]
        }

    return reduce


def _targets(value: Json | None, namespace: str) -> Iterator[_Target]:
    for group, kind, name in value["targets"] if value else ():
        yield namespace, group, kind, name


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


class Referents:
    """The objects that are known to exist, and what scales each target; none before `follow` fills caches."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._caches: dict[tuple[str, str], Cache] = {}
        self._settings: Cache | None = None
        self._claims = ScalerIndex()
        self._autoscalers = ScalerIndex()

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
        return [claimant for claimant, _ in self._claims.of(reference, namespace) if claimant != own]

    def autoscalers(self, reference: Reference, namespace: str) -> Sequence[Autoscaler]:
        """Return the known HorizontalPodAutoscalers of a target."""
        return [item["autoscaler"] for _, item in self._autoscalers.of(reference, namespace)]

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
            take = partial(self._autoscalers.take, HORIZONTAL_POD_AUTOSCALERS.kind)
            tasks.create_task(_subscribe(cluster, HORIZONTAL_POD_AUTOSCALERS, autoscaler_only, take))

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
            await cluster.get_path(resource.path(), query={"limit": "1"})
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


def reference_warnings(
    references: Sequence[Reference], value: Json, referents: Referents, own: Claimant
) -> Iterator[str]:
    """Yield a warning for each referenced object that is missing, and for each target that others scale.

    These include autoscalers that do not follow the decisions on this object as they are meant.
    """
    namespace = str(value["metadata"].get("namespace") or "")
    for reference in references:
        what = f'{reference.path}: {reference.kind} "{reference.name}"'
        for kind, name in referents.others(reference, namespace, own) if reference.is_scaled else ():
            yield f'{what} is already scaled by {kind} "{name}": the newer of the two is ignored'
        for problem in _misread(reference, value, referents, own) if reference.is_scaled else ():
            yield f"{what}: {problem.message}"
        if referents.has(reference, namespace) is False:
            key = f' with key "{reference.key}"' if reference.key else ""
            place = referents.place(reference, namespace)
            yield f'{what}{key} does not exist yet in namespace "{place}"'


def _misread(reference: Reference, value: Json, referents: Referents, own: Claimant) -> Iterable[Problem]:
    """Return why the autoscalers of a target do not follow the decisions on an object."""
    metadata = {"name": "", **value["metadata"]}  # a create request may have generateName only
    with_name = value | {"metadata": metadata}
    if own[0] == "VariantAutoscaling":
        subject = variant_subject(variant_labels(with_name))
    else:
        subject = target_subject(with_name, reference.kind, reference.name)
    autoscalers = referents.autoscalers(reference, str(metadata.get("namespace") or ""))
    return following_problems(autoscalers, subject)
