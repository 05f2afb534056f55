"""The next steps for a Model: their order, what each waits for, and what is kept of existing objects."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from support.models import POLICY, backend, loading_backend, model, one, split

from apiserver.schema.json import Json
from controller.expansion.adapters import listed_adapters
from controller.expansion.expansion import Expansion, expand
from controller.expansion.steps import (
    ChildKey,
    ExistingObjects,
    Steps,
    digest_object,
    fingerprint,
    key_of,
    steps,
)

SCALED = {"minReplicas": 1, "maxReplicas": 4, "autoscalingPolicy": POLICY}


def owned(*backends: Json) -> Json:
    """Return a Model that is stored in a cluster."""
    return model(*backends, metadata={"uid": "u", "namespace": "chat"})


class Namespace:
    """Carries out steps as an API server would."""

    def __init__(self) -> None:
        self.children: dict[ChildKey, Json] = {}
        self.applied: dict[ChildKey, str] = {}
        self.done: list[str] = []

    def existing(self) -> ExistingObjects:
        """Return the current state."""
        return ExistingObjects(children=copy.deepcopy(self.children), applied=self.applied)

    def act(self, value: Json) -> Steps:
        """Carry out the next steps for a Model."""
        found = steps(value, expand(value), self.existing())
        for item in found.apply:
            self._apply(item)
        for item in found.delete:
            self.done.append(f"delete {item['kind']} {item['metadata']['name']}")
            del self.children[key_of(item)]
        return found

    def serve(self, *names: str) -> None:
        """Make all replicas of some workloads available."""
        for name in names:
            item = self.children[ChildKey("Deployment", name)]
            item["status"] = {"availableReplicas": item["spec"]["replicas"]}

    def _apply(self, item: Json) -> None:
        live = self.children.get(key_of(item), {"status": {}, "metadata": {}})
        version = int(live["metadata"].get("resourceVersion", 0)) + 1
        metadata = {**item["metadata"], "resourceVersion": str(version), "uid": item["metadata"]["name"]}
        self.done.append(f"apply {item['kind']} {item['metadata']['name']}")
        self.children[key_of(item)] = {**item, "metadata": metadata, "status": live["status"]}
        self.applied[key_of(item)] = fingerprint(item, self.children[key_of(item)])


def test_each_object_is_created_once() -> None:
    """A workload comes before the objects that send requests to it; then no steps are left."""
    namespace = Namespace()
    value = owned(backend(**SCALED))

    namespace.act(value)
    assert [text.split()[1] for text in namespace.done] == [
        "Deployment",
        "Service",
        "ModelServer",
        "ModelRoute",
        "AutoscalingPolicy",
        "AutoscalingPolicyBinding",
        "HorizontalPodAutoscaler",
    ]
    assert namespace.act(value) == Steps(apply=(), delete=(), awaited=())


def test_a_scaled_workload_keeps_its_replicas() -> None:
    """The resource version is included, so that a concurrent change of the number is not overwritten."""
    namespace = Namespace()
    namespace.act(owned(backend(**SCALED)))
    key = ChildKey("Deployment", "qwen-l4")
    namespace.children[key]["spec"]["replicas"] = 3

    edited = owned(backend(**SCALED, cacheURI="pvc://models"))
    [item] = steps(edited, expand(edited), namespace.existing()).apply
    assert item["spec"]["replicas"] == 3
    assert item["metadata"]["resourceVersion"] == "1"


def test_a_renamed_backend_is_deleted_when_the_new_one_is_ready() -> None:
    """The new backend is created first, then the route is changed, then the old one is deleted."""
    namespace = Namespace()
    namespace.act(owned(backend("old")))
    namespace.serve("qwen-old")
    renamed = owned(backend("new"))

    assert namespace.act(renamed).awaited == ("qwen-new to be ready before it gets requests",)
    namespace.done.clear()
    assert not namespace.act(renamed).apply
    namespace.serve("qwen-new")
    assert namespace.act(renamed).awaited == (
        "all objects of the Model to be created before qwen-old is deleted",
    )
    assert namespace.done == ["apply ModelRoute qwen"]
    namespace.act(renamed)
    assert namespace.done[1:] == [
        "delete ModelServer qwen-old",
        "delete Service qwen-old",
        "delete Deployment qwen-old",
    ]


def test_a_removed_backend_is_deleted_when_the_others_are_ready() -> None:
    """Before that, it may be the only one that serves."""
    namespace = Namespace()
    namespace.act(owned(backend("a"), backend("b")))
    namespace.serve("qwen-b")
    value = owned(backend("a"))
    namespace.act(value)

    waiting = namespace.act(value)
    assert waiting.awaited == ("qwen-a to be ready before qwen-b is deleted",)
    assert not waiting.delete
    namespace.serve("qwen-a")
    assert {item["metadata"]["name"] for item in namespace.act(value).delete} == {"qwen-b"}


def test_nothing_is_deleted_while_a_backend_of_the_model_cannot_be_expanded() -> None:
    """An edit that removes an image must not remove the backend, its requests or its replicas."""
    namespace = Namespace()
    costs = {"scalingCost": 1, "minReplicas": 1, "maxReplicas": 3}
    value = model(
        backend("a", **costs),
        backend("b", **costs),
        metadata={"uid": "u", "namespace": "chat"},
        autoscalingPolicy=POLICY,
    )
    namespace.act(value)
    namespace.serve("qwen-a", "qwen-b")
    namespace.done.clear()
    broken = copy.deepcopy(value)
    del broken["spec"]["backends"][1]["workers"][0]["image"]

    for _ in range(3):
        assert not namespace.act(broken).delete
    assert namespace.done == []
    invalid = Expansion(objects=(), notes=replace(expand(broken)).notes)
    assert not steps(broken, invalid, namespace.existing()).delete


MODEL = model(
    loading_backend("law", "tax") | SCALED,
    split("split"),
    metadata={"namespace": "chat", "uid": "u1", "annotations": {"stowplan.dev/parent-refs": "a"}},
    owner="team",
)
OBJECTS = [{**item, "status": {"availableReplicas": 1}} for item in expand(MODEL).objects]


def test_the_next_steps_for_reduced_objects_are_the_same() -> None:
    """Some are superfluous, some have lost a part of their content."""
    changed = model(
        loading_backend("law"), name="qwen", metadata={"namespace": "chat", "uid": "u1"}, owner="team"
    )
    whole = {key_of(item): copy.deepcopy(item) for item in OBJECTS}
    for item in whole.values():
        item["metadata"]["resourceVersion"] = "1"
    expansion = expand(changed)
    reduced = {key: digest_object(item) for key, item in whole.items()}

    first, second = (steps(changed, expansion, ExistingObjects(children=some)) for some in (whole, reduced))
    assert (first.apply, first.awaited) == (second.apply, second.awaited)
    assert first.awaited != ()
    assert listed_adapters(one(first.apply, "ConfigMap")).keys() == {"law", "tax"}


@pytest.mark.parametrize("value", OBJECTS, ids=lambda item: f"{item['kind']} {item['metadata']['name']}")
def test_every_change_of_content_is_visible(value: Json) -> None:
    """A digest replaces what is not kept."""
    members = [(name, key) for name in ("spec", "data") for key in value.get(name) or {}]
    assert members
    for name, key in members:
        changed = {**value, name: {**value[name], key: "changed"}}
        assert digest_object(changed) != digest_object(value), key
