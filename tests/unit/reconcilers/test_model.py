"""One Model whose engines load adapters: in which order list, route and status follow what they have."""

from __future__ import annotations

# ruff: noqa: ARG002 (methods take what those of a real cluster take)
import copy
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from support.models import loading_backend, model

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound
from apiserver.cluster.events import EventRecorder
from controller.models.adapters import listed
from controller.models.expansion import ExpansionSettings
from controller.models.loading import wanted_paths
from controller.models.standing import ChildKey, key_of
from controller.observe.said import UnreadableMetricsError
from controller.reconcilers.model import FIELD_MANAGER, ModelReconciler, ModelTools
from controller.reconcilers.model_adapters import AdapterReader
from controller.reconcilers.status_writer import StatusWriter

if TYPE_CHECKING:
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json

KEY = ("chat", "qwen")


class Namespace(Cluster):
    """One Model and what was made of it, with pods whose loaders tell what they are said to."""

    def __init__(self) -> None:
        self.model: Json = {}
        self.made: dict[ChildKey, Json] = {}
        self.pages: dict[str, Json] = {}
        self.applied: list[str] = []
        now = datetime(2026, 1, 1, tzinfo=UTC)
        writer = StatusWriter(
            cluster=self,
            events=EventRecorder(self, controller="models", instance="one"),
            field_manager=FIELD_MANAGER,
        )
        tools = ModelTools(
            writer=writer,
            world=self,
            adapters=AdapterReader(self),
            settings=ExpansionSettings(),
            now=lambda: now,
        )
        self._reconciler = ModelReconciler(tools)

    async def ask_for(self, *names: str) -> None:
        """Have the Model ask for some adapters, and work on it until nothing changes."""
        kept = {"status": self.model.get("status", {})}
        metadata = {"uid": "u", "namespace": "chat", "generation": 1}
        self.model = model(loading_backend(*names), metadata=metadata) | kept
        await self.settle()

    async def settle(self) -> bool:
        """Work on the Model until nothing changes; returns whether it is not to be tried again."""
        while True:
            before = len(self.applied)
            is_done = await self._reconciler.reconcile(KEY)
            if len(self.applied) == before:
                return is_done

    def load(self, pod: str, *names: str, **failed: str) -> None:
        """Have the engine of a pod load some adapters of the list, and others fail."""
        paths = wanted_paths(self.made.values())["l4"]
        self.pages[pod] = {"loaded": {name: paths[name] for name in names}, "failed": failed}

    @property
    def routed(self) -> set[str]:
        """Return the adapters that requests are routed to."""
        return set(self.made[ChildKey("ModelRoute", "qwen")]["spec"].get("loraAdapters", []))

    @property
    def listed(self) -> set[str]:
        """Return the adapters that engines are to load."""
        return set(listed(self.made[ChildKey("ConfigMap", "qwen-l4")]))

    def reason(self, condition: str) -> tuple[str, str]:
        """Return reason and message of a condition."""
        found = {item["type"]: item for item in self.model["status"]["conditions"]}[condition]
        return found["reason"], found["message"]

    # What the reconciler looks at.

    def models(self, namespace: str) -> Sequence[Json]:
        """Return the one Model."""
        return [copy.deepcopy(self.model)]

    def children(self, model: tuple[str, str], asked: Collection[ChildKey]) -> Mapping[ChildKey, Json]:
        """Return all that was made."""
        return self.made

    def pods(self, model: tuple[str, str]) -> Sequence[Json]:
        """Return a ready pod for each page."""
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        return [
            {
                "metadata": {"name": name, "uid": name, "labels": {"stowplan.dev/backend": "l4"}},
                "spec": {"containers": [{"name": "adapters", "ports": [{"containerPort": 8100}]}]},
                "status": {"phase": "Running", "conditions": [ready]},
            }
            for name in self.pages
        ]

    def upstream(self) -> str:
        """Return that no other controller is there."""
        return ""

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return what a loader tells."""
        page = self.pages[pod["metadata"]["name"]]
        if not page:
            raise UnreadableMetricsError("no answer: TimeoutError: ")
        return json.dumps(page)

    # What it writes.

    async def get(self, resource: Resource, name: str, **options: Any) -> Json:
        """Find nothing that somebody else made."""
        raise NotFound(f"{resource.plural} {name} not found")

    async def apply(self, resource: Resource, body: Json, **options: Any) -> Json:
        """Store an object, or the status of the Model."""
        if options.get("subresource") == "status":
            self.model["status"] = body["status"]
            return self.model
        live = copy.deepcopy(body)
        live["status"] = {"availableReplicas": 2, "replicas": 2, "updatedReplicas": 2}
        self.made[key_of(live)] = live
        self.applied.append(f"{resource.kind} {live['metadata']['name']}")
        return live


@pytest.fixture
async def namespace() -> Namespace:
    """Return a Model with one adapter, which both of its engines have."""
    made = Namespace()
    await made.ask_for("law")
    for pod in ("a", "b"):
        made.pages[pod] = {}
        made.load(pod, "law")
    assert await made.settle()
    return made


async def test_requests_are_sent_to_an_adapter_when_all_engines_have_it(namespace: Namespace) -> None:
    """The list is there before; the pods are left alone."""
    namespace.applied.clear()
    await namespace.ask_for("law", "tax")
    assert (namespace.listed, namespace.routed) == ({"law", "tax"}, {"law"})
    assert namespace.reason("Updating") == (
        "ChangeWaits",
        "the change waits for adapter tax to be loaded in 2 of 2 pods of l4",
    )

    namespace.load("a", "law", "tax")
    assert not await namespace.settle()
    assert namespace.routed == {"law"}
    namespace.load("b", "law", "tax")
    assert await namespace.settle()
    assert namespace.routed == {"law", "tax"}
    assert namespace.reason("Updating")[0] == "NothingChanges"
    assert namespace.applied == ["ConfigMap qwen-l4", "ModelRoute qwen"]


async def test_an_adapter_that_goes_leaves_the_route_before_the_engines(namespace: Namespace) -> None:
    """Its route is changed while the list still has it."""
    await namespace.ask_for("law", "tax")
    for pod in ("a", "b"):
        namespace.load(pod, "law", "tax")
    await namespace.settle()
    namespace.applied.clear()

    await namespace.ask_for("tax")
    assert namespace.applied == ["ModelRoute qwen", "ConfigMap qwen-l4"]
    assert (namespace.listed, namespace.routed) == ({"tax"}, {"tax"})


async def test_an_adapter_that_fails_is_named_and_takes_nothing_along(namespace: Namespace) -> None:
    """It is asked for again; what is routed stays where nothing is known."""
    await namespace.ask_for("law", "tax")
    for pod in ("a", "b"):
        namespace.load(pod, "law", tax="404")
    assert not await namespace.settle()
    assert namespace.routed == {"law"}
    assert namespace.reason("Failed") == (
        "AdaptersFail",
        "adapter tax is not loaded in pod a: 404; adapter tax is not loaded in pod b: 404",
    )
    assert namespace.reason("Active")[0] == "ModelAvailable"

    namespace.pages["a"] = {}
    await namespace.settle()
    assert namespace.routed == {"law"}
    assert (
        "container adapters of pod a does not say what is loaded: no answer" in namespace.reason("Failed")[1]
    )
