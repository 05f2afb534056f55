"""A namespace in memory with Models, and with what their controller reads and writes there."""

from __future__ import annotations

# ruff: noqa: ARG002 (same parameters as for a real cluster)
import copy
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound, error_of
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.kthena.groups import NETWORKING
from controller.engines.exposition import UnreadableMetricsError
from controller.expansion.adapters import listed_adapters, wanted_paths
from controller.expansion.expansion import ExpansionSettings
from controller.expansion.steps import ChildKey, digest_object, key_group
from controller.models.model import FIELD_MANAGER, AdapterReader, ModelReconciler
from support.models import model

if TYPE_CHECKING:
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json
    from controller.models.caches import ModelCaches

NAMESPACE = "chat"
_WITHOUT_GENERATION = ("ConfigMap", "Service", "HorizontalPodAutoscaler")
_MODEL_LABEL = "stowplan.dev/model"
_BACKEND_LABEL = "stowplan.dev/backend"


class ModelStage(Cluster):
    """Models and their objects, with pods whose loaders report what tests set."""

    def __init__(self) -> None:
        self.items: dict[str, Json] = {}
        self.made: dict[ChildKey, Json] = {}
        self.unseen: set[ChildKey] = set()
        """Objects that the watches have not reported yet."""

        self.behind: dict[ChildKey, Json] = {}
        """Outdated objects that the watches still report."""

        self.latecomers: set[ChildKey] = set()
        """Objects that someone else creates just after a failed read."""

        self.fails: dict[str, ClusterError] = {}
        """Errors of the server for applying an object, by kind."""

        self.group = NETWORKING
        """The API group of ModelServers and ModelRoutes."""

        self.pages: dict[str, Json] = {}
        self.applied: list[str] = []
        self.deleted: list[str] = []
        self._version = 1
        self.restart()

    def restart(self) -> None:
        """Replace the controller by one without memory."""
        writer = StatusWriter(
            cluster=self,
            events=EventRecorder(self, controller="models", instance="one"),
            field_manager=FIELD_MANAGER,
        )
        now = datetime(2026, 1, 1, tzinfo=UTC)
        self._reconciler = ModelReconciler(
            writer, cast("ModelCaches", self), AdapterReader(self), ExpansionSettings(), now=lambda: now
        )

    def put(self, *backends: Json, name: str = "qwen", **members: Any) -> None:
        """Store a Model with some backends."""
        kept = {"status": self.items.get(name, {}).get("status", {})}
        metadata = {"uid": f"uid of {name}", "namespace": NAMESPACE, "generation": 1}
        self.items[name] = model(*backends, name=name, metadata=metadata, **members) | kept

    def occupy(self, kind: str, name: str, group: str = "", **spec: Any) -> ChildKey:
        """Store an object of someone else, replacing any of the same name."""
        key = ChildKey(kind, name, group)
        self.made[key] = {"kind": kind, "metadata": self._identity(name), "spec": spec}
        return key

    async def reconcile(self, name: str = "qwen") -> bool:
        """Reconcile a Model once; return whether no retry is needed."""
        return await self._reconciler.reconcile((NAMESPACE, name))

    async def settle(self, name: str = "qwen") -> bool:
        """Reconcile a Model until nothing changes; return whether no retry is needed."""
        while True:
            before = len(self.applied) + len(self.deleted)
            is_done = await self.reconcile(name)
            if len(self.applied) + len(self.deleted) == before:
                return is_done

    def load(self, pod: str, *names: str, **failed: str) -> None:
        """Set the listed adapters that a pod's engine has loaded, and those that failed."""
        paths = wanted_paths(self.made.values())["l4"]
        self.pages[pod] = {"loaded": {name: paths[name] for name in names}, "failed": failed}

    @property
    def routed(self) -> set[str]:
        """The adapters to which requests are routed."""
        return set(self.made[ChildKey("ModelRoute", "qwen")]["spec"].get("loraAdapters", []))

    @property
    def listed(self) -> set[str]:
        """The adapters that engines should load."""
        return set(listed_adapters(self.made[ChildKey("ConfigMap", "qwen-l4")]))

    def reason(self, condition: str, name: str = "qwen") -> tuple[str, str]:
        """Return reason and message of a condition."""
        found = {item["type"]: item for item in self.items[name]["status"]["conditions"]}[condition]
        return found["reason"], found["message"]

    def kinds(self, name: str) -> set[str]:
        """Return the kinds of the existing objects with a name."""
        return {key.kind for key in self.made if key.name == name}

    # Read by the reconciler from its caches.

    def model(self, key: tuple[str, str]) -> Json | None:
        """Return a Model."""
        return copy.deepcopy(self.items.get(key[1]))

    def models(self, namespace: str) -> Sequence[Json]:
        """Return the Models."""
        return [copy.deepcopy(item) for item in self.items.values()]

    def children(self, key: tuple[str, str], asked: Collection[ChildKey]) -> Mapping[ChildKey, Json]:
        """Return the objects with the label of a Model, as reported by the watches."""
        owner = {
            child: (item["metadata"].get("labels") or {}).get(_MODEL_LABEL)
            for child, item in self.made.items()
            if child not in self.unseen
        }
        found = {child for child, name in owner.items() if name == key[1] or (name and child in asked)}
        known = {child: self.made[child] for child in found} | self.behind
        return {child: digest_object(copy.deepcopy(item)) for child, item in known.items()}

    def pods(self, key: tuple[str, str]) -> Sequence[Json]:
        """Return a ready pod for each page."""
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        return [
            {
                "metadata": {"name": name, "uid": name, "labels": {_BACKEND_LABEL: "l4"}},
                "spec": {"containers": [{"name": "adapters", "ports": [{"containerPort": 8100}]}]},
                "status": {"phase": "Running", "conditions": [ready]},
            }
            for name in self.pages
        ]

    def routing_group(self) -> str:
        """Return the chosen group."""
        return self.group

    def upstream(self) -> str:
        """Return that there is no other controller."""
        return ""

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return the page of a loader."""
        page = self.pages[pod["metadata"]["name"]]
        if not page:
            raise UnreadableMetricsError("no answer: not in time")
        return json.dumps(page)

    # Calls of the API server.

    async def get(self, resource: Resource, name: str, **options: Any) -> Json:
        """Return an object."""
        key = _key(resource, name)
        if key not in self.made:
            if key in self.latecomers:
                self.occupy(*key)
            raise NotFound(f"{resource.plural} {name} not found")
        return copy.deepcopy(self.made[key])

    async def apply(self, resource: Resource, body: Json, **options: Any) -> Json:
        """Store an object, or the status of a Model. A given uid or resource version must match."""
        name, key = body["metadata"]["name"], _key(resource, body["metadata"]["name"])
        if options.get("subresource") == "status":
            self.items[name]["status"] = body["status"]
            return self.items[name]
        if key.kind in self.fails:
            raise self.fails[key.kind]
        live = self.made.get(key)
        self._demand(body["metadata"], live)
        made = copy.deepcopy(body)
        known = live["metadata"] if live else self._identity(name)
        made["metadata"] = {**known, **body["metadata"]} | {"uid": known["uid"]}
        for member in ("labels", "annotations"):
            made["metadata"][member] = (known.get(member) or {}) | (body["metadata"].get(member) or {})
        made["status"] = {"availableReplicas": 2, "replicas": 2, "updatedReplicas": 2}
        self.made[key] = made
        self.touch(key)
        made["status"]["observedGeneration"] = made["metadata"].get("generation", 0)
        self.applied.append(f"{key.kind} {name}")
        return copy.deepcopy(made)

    async def delete(self, resource: Resource, name: str, **options: Any) -> Json:
        """Delete an object with a given uid."""
        if self.made[_key(resource, name)]["metadata"]["uid"] != options["uid"]:
            raise Conflict("another one has its name")
        del self.made[_key(resource, name)]
        self.deleted.append(f"{resource.kind} {name}")
        return {}

    def touch(self, key: ChildKey) -> None:
        """Give a changed object a new resource version, and a new generation if its kind has one."""
        metadata = self.made[key]["metadata"]
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        if key.kind not in _WITHOUT_GENERATION:
            metadata["generation"] = metadata.get("generation", 0) + 1

    def _identity(self, name: str) -> Json:
        self._version += 1
        return {"name": name, "namespace": NAMESPACE, "uid": f"u{self._version}"}

    @staticmethod
    def _demand(wanted: Json, live: Json | None) -> None:
        if live is None:
            if "uid" in wanted:
                raise Conflict("uid mismatch: no existing object was found")
            return
        if wanted.get("uid", live["metadata"]["uid"]) != live["metadata"]["uid"]:
            causes = [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "immutable"}]
            raise error_of(422, status={"reason": "Invalid", "details": {"causes": causes}})
        if wanted.get("resourceVersion", live["metadata"].get("resourceVersion")) != live["metadata"].get(
            "resourceVersion"
        ):
            raise Conflict("the object has been modified")


def _key(resource: Resource, name: str) -> ChildKey:
    return ChildKey(resource.kind, name, key_group(resource.group))
