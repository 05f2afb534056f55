"""Caches of Models and of the objects made for them, with notification of the Model a change concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from apiserver.cluster.cache import Cache, Change, GroupIndex, catch_errors, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import SILENT_SECONDS, OptionalCache
from apiserver.cluster.resource import (
    AUTOSCALING_POLICIES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    MODELS,
    PODS,
    SERVICES,
)
from apiserver.kinds.identity import Key
from apiserver.kinds.identity import key_of as identity
from apiserver.log import EventLogger
from apiserver.schema.json import Json, as_object
from controller.expansion.adapters import LOADER
from controller.expansion.parts import MODEL_LABEL, served_name
from controller.expansion.routing import AUTO, routing_group
from controller.expansion.steps import ChildKey, digest_object, key_of
from controller.models.traffic_caches import ASK_AGAIN_SECONDS, ROUTING

RESOURCES: Final = (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    SERVICES,
    *(resource for resources in ROUTING.values() for resource in resources),
    AUTOSCALING_POLICIES,
    AUTOSCALING_POLICY_BINDINGS,
    HORIZONTAL_POD_AUTOSCALERS,
)
"""Resources of the objects made for Models."""


UNREAD: Final = "unread"
"""Member of a cached Model without its spec: why it is not read."""

_log = EventLogger(__name__)

_UPSTREAM: Final = "modelinfers.workload.volcano.sh"
"""The definition that the upstream controller of Models uses; it shows that this controller is installed."""

_MOST_VALUES: Final = 100_000
"""Upper bound of the number of values in a Model; the largest without free JSON has 40,000."""

_MODEL_METADATA: Final = ("namespace", "name", "creationTimestamp")
_POD_METADATA: Final = ("namespace", "name", "uid", "resourceVersion", "deletionTimestamp", "labels")
_POD_STATUS: Final = ("phase", "podIP", "conditions", "initContainerStatuses", "containerStatuses")


class ModelCaches:
    """Caches of the Model reconciler; `changed` is called with the namespace and name of a Model."""

    def __init__(
        self, cluster: Cluster, changed: Callable[[Key], None], *, routing_setting: str = AUTO
    ) -> None:
        """Create the caches; `routing_setting` is the group of ModelServers and ModelRoutes, or AUTO."""
        self._changed = changed
        self._models = Cache(cluster, MODELS, reduce=_seal)
        self._pods = Cache(cluster, PODS, label_selector=MODEL_LABEL, reduce=_pod)
        self._upstream = Cache(
            cluster,
            CUSTOM_RESOURCE_DEFINITIONS,
            field_selector=f"metadata.name={_UPSTREAM}",
            metadata_only=True,
        )
        routing = [resource for pair in ROUTING.values() for resource in pair]
        self._children = {
            resource: Cache(cluster, resource, label_selector=MODEL_LABEL, reduce=digest_object)
            for resource in RESOURCES
            if resource not in (LEADER_WORKER_SETS, *routing)
        }
        self._groups = OptionalCache(
            cluster,
            LEADER_WORKER_SETS,
            reduce=digest_object,
            without="LeaderWorkerSets",
            label_selector=MODEL_LABEL,
        )
        self._routing = {
            resource: OptionalCache(
                cluster,
                resource,
                reduce=digest_object,
                without=f"{resource.kind}s of {resource.group}",
                label_selector=MODEL_LABEL,
                ask_again_seconds=ASK_AGAIN_SECONDS,
            )
            for resource in routing
        }
        self._routing_setting = routing_setting
        self._routing_group = ""
        # Indexed by lookup key: a scan for each Model would take quadratic time in total.
        self._made: dict[tuple[str, ChildKey], Json] = {}
        self._made_for = GroupIndex(lambda item: (_model_of(item), key_of(item)))
        self._models_of = GroupIndex(identity)
        self._pods_of = GroupIndex(lambda pod: (_model_of(pod), str(pod["metadata"]["name"])))
        self._all = (self._models, self._pods, self._upstream, *self._children.values())

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self._all:
                group.create_task(cache.run())
            for optional in self._optional:
                group.create_task(optional.run())
            group.create_task(self._follow_routing_group())

    async def wait_until_synced(self) -> None:
        """Wait until every initial list is complete; then report every Model once, and each change."""
        for cache in self._all:
            await cache.synced.wait()
        for optional in self._optional:
            await optional.settled.wait()
        self._choose_routing_group()
        self._pods.subscribe(catch_errors(self._pod_changed))
        for optional in self._optional:
            optional.subscribe(catch_errors(self._child_changed))
        for children in self._children.values():
            children.subscribe(catch_errors(self._child_changed))
        self._upstream.subscribe(lambda _: self._all_changed())
        self._models.subscribe(catch_errors(self._model_changed))

    def why_not_current(self) -> str | None:
        """Return which cache is missing or too old to act on, or None."""
        needed = (cache.why_not_current(within_seconds=SILENT_SECONDS) for cache in self._all)
        lost = (optional.why_lost() for optional in self._optional)
        return next(filter(None, (*needed, *lost)), None)

    def model(self, key: Key) -> Json | None:
        """Return a Model, or None if it does not exist."""
        entry = self._models.get(*key)
        return None if entry is None else msgspec.json.decode(entry["sealed"])

    def models(self, namespace: str) -> Sequence[Json]:
        """Return the Models of a namespace, reduced to their names and age."""
        return [*self._models_of.of(namespace).values()]

    def children(self, model: Key, requested: Collection[ChildKey]) -> Mapping[ChildKey, Json]:
        """Return the objects made for a Model, and objects of any origin with the names in `requested`."""
        keys = {*requested, *self._made_for.of(model)}
        return {key: item for key in keys if (item := self._made.get((model[0], key))) is not None}

    def pods(self, model: Key) -> Sequence[Json]:
        """Return the pods of a Model."""
        return tuple(self._pods_of.of(model).values())

    def upstream(self) -> str:
        """Return the definition of an installed upstream controller of Models, or an empty string."""
        return _UPSTREAM if self._upstream.items() else ""

    def routing_group(self) -> str:
        """Return the API group in which ModelServers and ModelRoutes are written."""
        return self._routing_group

    def subscribe_upstream(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever the result of `upstream` may have changed."""
        self._upstream.subscribe(lambda _: callback())

    @property
    def _optional(self) -> Sequence[OptionalCache]:
        return (self._groups, *self._routing.values())

    async def _follow_routing_group(self) -> None:
        """Choose again, as Kthena may be installed or removed at any time."""
        while True:
            await asyncio.sleep(ASK_AGAIN_SECONDS)
            if self._routing_group:
                self._choose_routing_group()

    def _choose_routing_group(self) -> None:
        """Choose the routing group; log a change, and report all Models."""
        served = [
            group for group, pair in ROUTING.items() if all(self._routing[item].is_readable for item in pair)
        ]
        chosen = routing_group(self._routing_setting, served)
        if chosen != self._routing_group:
            _log.info("routing group chosen", group=chosen, served=served, setting=self._routing_setting)
            self._routing_group = chosen
            self._all_changed()

    def _model_changed(self, change: Change) -> None:
        """Report a Model, and others with its old or new served name, which may wait for that name."""
        self._models_of.take(change)
        self._changed(change.key)
        old, new = (None if item is None else served_name(item) for item in (change.old, change.new))
        for item in self.models(change.key[0]) if old != new else ():
            if served_name(item) in (old, new):
                self._changed((change.key[0], item["metadata"]["name"]))

    def _child_changed(self, change: Change) -> None:
        namespace = change.key[0]
        if change.old is not None:
            self._made.pop((namespace, key_of(change.old)), None)
        if change.new is not None:
            self._made[namespace, key_of(change.new)] = change.new
        self._made_for.take(change)
        self._tell(change)

    def _pod_changed(self, change: Change) -> None:
        self._pods_of.take(change)
        self._tell(change)

    def _tell(self, change: Change) -> None:
        """Report the Models that an object belonged to and belongs to as changed."""
        for item in filter(None, (change.old, change.new)):
            self._changed(_model_of(item))

    def _all_changed(self) -> None:
        for item in self._models.items():
            self._changed((item["metadata"]["namespace"], item["metadata"]["name"]))


def _model_of(item: Json) -> Key:
    metadata = item["metadata"]
    return metadata["namespace"], metadata["labels"][MODEL_LABEL]


def _seal(model: Json) -> Json:
    """Return a reduced Model with all of it encoded, as a megabyte takes twenty times as much when decoded.

    A Model with too many values, most of which must be in free JSON, is not read.
    """
    sealed = msgspec.json.encode(without_managed_fields(model))
    if sum(map(sealed.count, (b"{", b"[", b","))) > _MOST_VALUES:
        why = f"not read, because the object has more than {_MOST_VALUES:,} values: shorten `config`"
        sealed = msgspec.json.encode({**model, "spec": {}, UNREAD: why})
    return {
        "metadata": {name: model["metadata"].get(name) for name in _MODEL_METADATA},
        "spec": {"name": as_object(model.get("spec")).get("name")},
        "sealed": sealed,
    }


def _pod(pod: Json) -> Json:
    """Return a pod reduced to its state, its address and the ports of its loader."""
    spec, status = pod["spec"], pod.get("status") or {}
    loaders = [
        {name: item[name] for name in ("name", "ports") if name in item}
        for item in spec["containers"]
        if item["name"] == LOADER
    ]
    return {
        "metadata": {name: pod["metadata"][name] for name in _POD_METADATA if name in pod["metadata"]},
        "spec": {"hostNetwork": spec.get("hostNetwork", False), "containers": loaders},
        "status": {name: status[name] for name in _POD_STATUS if name in status},
    }
