"""The reconciler of a Model: creates and updates its objects, and writes its status. It is idempotent."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from apiserver.cluster.resource import MODEL_ROUTES, MODELS
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.identity import Key, seniority
from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json, as_list, as_object
from controller.engines.exposition import UnreadableMetricsError
from controller.expansion.adapters import (
    LOADER,
    AdapterLoading,
    LoaderReport,
    adapter_loading,
    routed_pairs,
    wanted_paths,
)
from controller.expansion.expansion import Expansion, ExpansionSettings, expand
from controller.expansion.parts import BACKEND_LABEL, Note, served_name
from controller.expansion.reporting import ModelCondition, Report, model_status
from controller.expansion.steps import (
    ChildKey,
    ExistingObjects,
    Steps,
    belongs_to,
    key_of,
    resting_backends,
    steps,
    taken_backends,
)
from controller.models.caches import RESOURCES, UNREAD, ModelCaches
from controller.models.child_writer import ChildWriter
from controller.observe.pods import is_present, is_ready

FIELD_MANAGER: Final = "stowplan-models"
_OWN: Final = {
    **dict.fromkeys(map(str, ModelCondition), ""),
    ModelCondition.FAILED: "True",
    ModelCondition.FIELDS_EFFECTIVE: "False",
}


class ModelReconciler:
    """Reconciles Models. Keeps fingerprints of the objects that it applied."""

    def __init__(
        self,
        writer: StatusWriter,
        caches: ModelCaches,
        adapters: AdapterReader,
        settings: ExpansionSettings,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._writer = writer
        self._caches = caches
        self._adapters = adapters
        self._settings = settings
        self._now = now
        self._children = ChildWriter(writer, RESOURCES)
        self._applied: dict[Key, dict[ChildKey, str]] = {}

    async def reconcile(self, key: Key) -> bool:
        """Reconcile one Model; return whether no retry is needed.

        Raises ClusterError if the API server is unreachable, and NotLeading.
        """
        model = self._caches.model(key)
        if model is None or model["metadata"].get("deletionTimestamp"):
            self._applied.pop(key, None)  # the cluster's garbage collector deletes its objects
            self._adapters.forget(key)
            return True
        # In a thread, as the lease must be renewed while a large Model is processed. Also below.
        completed, problems = await asyncio.to_thread(_with_defaults, self._writer.latest(model))
        report, is_over = await self._act(key, await self._report(completed, problems))
        await self._writer.write(MODELS, report.model, model_status(report, now=self._now()), own=_OWN)
        return is_over and report.loading.is_done and not report.foreign

    async def _report(self, model: Json, problems: Sequence[Note]) -> Report:
        """Return the state of a Model before any change."""
        caches, metadata = self._caches, model["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        upstream = caches.upstream()
        namesake = older_namesake(model, caches.models(namespace))
        expansion, adapters = Expansion(objects=(), notes=tuple(problems)), AdapterLoading()
        settings = replace(self._settings, routing_group=caches.routing_group())
        if not upstream and not problems:
            expansion = await asyncio.to_thread(expand, model, settings)
            adapters = await self._adapter_loading(model, expansion)
        requested = frozenset(map(key_of, expansion.objects))
        known = {
            key: item
            for key, item in caches.children((namespace, name), requested).items()
            if key in requested or belongs_to(item, metadata["uid"])
        }
        children = await self._children.complete(known, namespace, requested)
        backends = taken_backends(expansion.objects, children, metadata["uid"])
        resting = resting_backends(expansion.objects, children, metadata["uid"])
        if adapters.unloaded or backends or resting:
            expansion = await asyncio.to_thread(expand, model, settings, adapters.unloaded, backends, resting)
        if namesake:
            objects = tuple(item for item in expansion.objects if item["kind"] != MODEL_ROUTES.kind)
            expansion = replace(expansion, objects=objects)
        applied = self._applied.setdefault((namespace, name), {})
        existing = ExistingObjects(children=children, applied=applied)
        none = Steps(apply=(), delete=(), awaited=())
        return Report(
            model=model,
            expansion=expansion,
            existing=existing,
            steps=none if upstream else await asyncio.to_thread(steps, model, expansion, existing),
            pods=caches.pods((namespace, name)),
            loading=adapters,
            upstream=upstream,
            namesake=namesake,
        )

    async def _adapter_loading(self, model: Json, expansion: Expansion) -> AdapterLoading:
        """Return the state of the adapters that running engines load; most Models have none."""
        key = model["metadata"]["namespace"], model["metadata"]["name"]
        paths = wanted_paths(expansion.objects)
        reports = await self._adapters.reports(key, paths, self._caches.pods(key))
        children = self._caches.children(key, ()) if paths else {}
        own = (item for item in children.values() if belongs_to(item, model["metadata"]["uid"]))
        return adapter_loading(paths, reports, routed_pairs(own))

    async def _act(self, key: Key, report: Report) -> tuple[Report, bool]:
        """Take the steps of a report; return the report afterwards, and whether all steps are done."""
        written = await self._children.act(report.steps, report.existing.children, self._applied[key])
        existing = replace(report.existing, children=written.children)
        is_over = written.is_over
        if report.steps.apply:  # further steps may be possible now, and no event arrives if nothing changed
            following = await asyncio.to_thread(steps, report.model, report.expansion, existing)
            is_over = is_over and not (following.apply or following.delete)
        return replace(report, existing=existing, refused=written.refused), is_over


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


_MOST_SHOWN: Final = 300
_MOST_ADAPTERS: Final = 256
"""The number of adapters that are kept of a report: twice as many as a backend may have."""

PODS_AT_A_TIME: Final = 8
"""The number of pods of one Model that are read concurrently."""

_MODEL_SECONDS: Final = 10.0
"""The time after which no further pod of a Model is read. Silent pods would delay other Models."""

_UNREAD: Final = f"it was not read: others took {_MODEL_SECONDS:g} s"

_Run = tuple[str, int]
"""UID of a pod and the restart count of its containers: a restart may lose the loaded adapters."""


class PodReader(Protocol):
    """Reads pages from pods, and from no other address."""

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return a pod's response. Raises UnreadableMetricsError with the reason if there is none."""


class AdapterReader:
    """Caches each pod's report until more adapters are wanted of it."""

    def __init__(self, pods: PodReader, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._pods = pods
        self._seconds = seconds
        self._known: dict[Key, dict[_Run, LoaderReport]] = {}

    async def reports(
        self, model: Key, paths: Mapping[str, Mapping[str, str]], pods: Sequence[Json]
    ) -> Sequence[LoaderReport]:
        """Return the reports of the ready pods of some backends. A silent pod does not delay the others."""
        if not paths:
            self._known.pop(model, None)
            return ()
        running = {
            _run_of(pod): pod
            for pod in pods
            if pod["metadata"]["labels"].get(BACKEND_LABEL) in paths and is_present(pod) and is_ready(pod)
        }
        known = self._known.get(model, {})
        gate, due = asyncio.Semaphore(PODS_AT_A_TIME), self._seconds() + _MODEL_SECONDS

        async def look(run: _Run) -> LoaderReport:
            async with gate:
                return await self._look(running[run], known.get(run), paths, due)

        # Silent pods come last, so that there is time for others, and take turns.
        turns = dict.fromkeys(run for run in (*known, *running) if run in running)
        runs = sorted(turns, key=lambda run: bool(run in known and known[run].silent))
        reports = dict(zip(runs, await asyncio.gather(*map(look, runs)), strict=True))
        self._known[model] = dict(sorted(reports.items(), key=lambda item: item[1].silent != _UNREAD))
        return [reports[run] for run in running]

    def forget(self, model: Key) -> None:
        """Drop the reports of a deleted Model."""
        self._known.pop(model, None)

    async def _look(
        self, pod: Json, known: LoaderReport | None, paths: Mapping[str, Mapping[str, str]], due: float
    ) -> LoaderReport:
        name, backend = str(pod["metadata"]["name"]), str(pod["metadata"]["labels"][BACKEND_LABEL])
        if known is not None and not (known.silent or known.lacks(paths[backend])):
            return known
        port = _port(pod)
        if port is None:
            return LoaderReport(
                pod=name, backend=backend
            )  # from an earlier template: it loads none at run time
        if self._seconds() > due:
            return LoaderReport(pod=name, backend=backend, silent=_UNREAD)
        try:
            page = json.loads(await self._pods.read(pod, port, "/"))
            return LoaderReport(
                pod=name, backend=backend, loaded=_texts(page["loaded"]), failed=_texts(page["failed"])
            )
        except UnreadableMetricsError as error:
            return LoaderReport(pod=name, backend=backend, silent=str(error))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return LoaderReport(pod=name, backend=backend, silent="the response is not that of a loader")


def _texts(value: Json) -> dict[str, str]:
    return {
        str(name)[:_MOST_SHOWN]: str(text)[:_MOST_SHOWN]
        for name, text in itertools.islice(value.items(), _MOST_ADAPTERS)
    }


def _run_of(pod: Json) -> _Run:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return str(pod["metadata"]["uid"]), sum(int(item.get("restartCount") or 0) for item in statuses)


def _port(pod: Json) -> int | None:
    """Return the port on which a pod's loader reports its state, or None if it has no loader."""
    for container in pod["spec"]["containers"]:
        if container["name"] == LOADER:
            return next((int(port["containerPort"]) for port in container.get("ports") or []), None)
    return None
