"""The reconciler of a Model: creates and updates its objects, and writes its status. It is idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from apiserver.cluster.resource import (
    AUTOSCALING_POLICIES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    MODEL_ROUTES,
    MODELS,
    SERVICES,
)
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.identity import seniority
from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json, as_list, as_object
from controller.expansion.expansion import Expansion, ExpansionSettings, expand
from controller.expansion.loading import Loading, loading, routed_pairs, wanted_paths
from controller.expansion.parts import Note, served_name
from controller.expansion.reporting import ModelCondition, Report, model_status
from controller.expansion.standing import (
    ChildKey,
    Standing,
    Steps,
    belongs_to,
    key_of,
    resting_backends,
    steps,
    taken_backends,
)
from controller.models.child_writer import ChildWriter
from controller.models.model_adapters import AdapterReader, Key
from controller.models.traffic import ROUTING

FIELD_MANAGER: Final = "stowplan-models"
_OWN: Final = {
    **dict.fromkeys(map(str, ModelCondition), ""),
    ModelCondition.FAILED: "True",
    ModelCondition.FIELDS_EFFECTIVE: "False",
}

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


class World(Protocol):
    """Caches that the reconciler reads."""

    def model(self, key: Key) -> Json | None:
        """Return a Model, or None if it does not exist."""

    def models(self, namespace: str) -> Sequence[Json]:
        """Return the Models of a namespace, reduced to their names and age."""

    def children(self, model: Key, asked: Collection[ChildKey]) -> Mapping[ChildKey, Json]:
        """Return the objects made for a Model, and objects of any origin with the names in `asked`."""

    def pods(self, model: Key) -> Sequence[Json]:
        """Return the pods of a Model."""

    def upstream(self) -> str:
        """Return the definition of an installed upstream controller of Models, or an empty string."""

    def routing_group(self) -> str:
        """Return the API group in which ModelServers and ModelRoutes are written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelTools:
    """Dependencies of the reconciler."""

    writer: StatusWriter
    world: World
    adapters: AdapterReader
    settings: ExpansionSettings
    now: Callable[[], datetime]


class ModelReconciler:
    """Reconciles Models. Keeps fingerprints of the objects that it applied."""

    def __init__(self, tools: ModelTools) -> None:
        self._tools = tools
        self._children = ChildWriter(tools.writer, RESOURCES)
        self._applied: dict[Key, dict[ChildKey, str]] = {}

    async def reconcile(self, key: Key) -> bool:
        """Reconcile one Model; return whether no retry is needed.

        Raises ClusterError if the API server is unreachable, and NotLeading.
        """
        world = self._tools.world
        model = world.model(key)
        if model is None or model["metadata"].get("deletionTimestamp"):
            self._applied.pop(key, None)  # the cluster's garbage collector deletes its objects
            self._tools.adapters.forget(key)
            return True
        # In a thread, as the lease must be renewed while a large Model is processed. Also below.
        completed, problems = await asyncio.to_thread(_with_defaults, self._tools.writer.latest(model))
        report, is_over = await self._act(key, await self._report(completed, problems))
        await self._publish(report)
        return is_over and report.loading.is_done and not report.foreign

    async def _report(self, model: Json, problems: Sequence[Note]) -> Report:
        """Return the state of a Model before any change."""
        world, metadata = self._tools.world, model["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        upstream = world.upstream()
        namesake = older_namesake(model, world.models(namespace))
        expansion, adapters = Expansion(objects=(), notes=tuple(problems)), Loading()
        settings = replace(self._tools.settings, routing_group=world.routing_group())
        if not upstream and not problems:
            expansion = await asyncio.to_thread(expand, model, settings)
            adapters = await self._loading(model, expansion)
        asked = frozenset(map(key_of, expansion.objects))
        known = {
            key: item
            for key, item in world.children((namespace, name), asked).items()
            if key in asked or belongs_to(item, metadata["uid"])
        }
        children = await self._children.complete(known, namespace, asked)
        taken = taken_backends(expansion.objects, children, metadata["uid"])
        resting = resting_backends(expansion.objects, children, metadata["uid"])
        if adapters.unloaded or taken or resting:
            expansion = await asyncio.to_thread(expand, model, settings, adapters.unloaded, taken, resting)
        if namesake:
            objects = tuple(item for item in expansion.objects if item["kind"] != MODEL_ROUTES.kind)
            expansion = replace(expansion, objects=objects)
        applied = self._applied.setdefault((namespace, name), {})
        standing = Standing(children=children, applied=applied)
        none = Steps(apply=(), delete=(), awaited=())
        return Report(
            model=model,
            expansion=expansion,
            standing=standing,
            steps=none if upstream else await asyncio.to_thread(steps, model, expansion, standing),
            pods=world.pods((namespace, name)),
            loading=adapters,
            upstream=upstream,
            namesake=namesake,
        )

    async def _loading(self, model: Json, expansion: Expansion) -> Loading:
        """Return the state of the adapters that running engines load; most Models have none."""
        key = model["metadata"]["namespace"], model["metadata"]["name"]
        wanted = wanted_paths(expansion.objects)
        reports = await self._tools.adapters.reports(key, wanted, self._tools.world.pods(key))
        children = self._tools.world.children(key, ()) if wanted else {}
        own = (item for item in children.values() if belongs_to(item, model["metadata"]["uid"]))
        return loading(wanted, reports, routed_pairs(own))

    async def _act(self, key: Key, report: Report) -> tuple[Report, bool]:
        """Take the steps of a report; return the report afterwards, and whether all steps are done."""
        acted = await self._children.act(report.steps, report.standing.children, self._applied[key])
        standing = replace(report.standing, children=acted.children)
        is_over = acted.is_over
        if report.steps.apply:  # further steps may be possible now, and no event arrives if nothing changed
            following = await asyncio.to_thread(steps, report.model, report.expansion, standing)
            is_over = is_over and not (following.apply or following.delete)
        return replace(report, standing=standing, refused=acted.refused), is_over

    async def _publish(self, report: Report) -> None:
        await self._tools.writer.write(
            MODELS,
            report.model,
            model_status(report, now=self._tools.now()),
            own=_OWN,
        )


def older_namesake(model: Json, models: Sequence[Json]) -> str:
    """Return the oldest Model with the same served name, or an empty string if it is this one."""
    same_named = [item for item in models if served_name(item) == served_name(model)]
    first = min(same_named, key=seniority, default=model)
    name, own = str(first["metadata"]["name"]), str(model["metadata"]["name"])
    return "" if name == own else name


def _with_defaults(model: Json) -> tuple[Json, Sequence[Note]]:
    """Return a Model with its defaults, and its errors: it may have been stored before our validation.

    Only the names of the backends remain of an invalid one.
    """
    served = find_version(MODELS.api_version, MODELS.kind)
    if served is None:
        raise LookupError(MODELS.kind)
    value = {**model, "apiVersion": MODELS.api_version, "kind": MODELS.kind}
    status = value.pop("status", None) or {}
    if why := value.pop(UNREAD, ""):
        problems = [Note(path="spec", text=str(why), prevents=True)]
        return {**value, "spec": {"backends": []}, "status": status}, problems
    if errors := errors_of(*served, value):
        problems = [Note(path=str(error.path), text=error.body, prevents=True) for error in errors]
        spec = as_object(value.get("spec"))
        backends = map(as_object, as_list(spec.get("backends")))
        named = [{"name": item["name"]} for item in backends if isinstance(item.get("name"), str)]
        return {**value, "spec": {**spec, "backends": named}, "status": status}, problems
    return {**with_defaults(served[1], value), "status": status}, []
