"""The next steps for a Model: their order, and what each waits for."""

from __future__ import annotations

import copy
from dataclasses import replace

from support.models import POLICY, backend, model

from apiserver.schema.json import Json
from controller.expansion.expansion import Expansion, expand
from controller.expansion.standing import ChildKey, Standing, Steps, fingerprint, key_of, steps

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

    def standing(self) -> Standing:
        """Return the current state."""
        return Standing(children=copy.deepcopy(self.children), applied=self.applied)

    def act(self, value: Json) -> Steps:
        """Carry out the next steps for a Model."""
        found = steps(value, expand(value), self.standing())
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
    [item] = steps(edited, expand(edited), namespace.standing()).apply
    assert item["spec"]["replicas"] == 3
    assert item["metadata"]["resourceVersion"] == "1"


def test_a_fixed_number_of_replicas_is_set_by_the_model() -> None:
    """No autoscaler changes it."""
    namespace = Namespace()
    namespace.act(owned(backend()))
    edited = owned(backend(minReplicas=5, maxReplicas=5))

    [item] = steps(edited, expand(edited), namespace.standing()).apply
    assert item["spec"]["replicas"] == 5
    assert "resourceVersion" not in item["metadata"]


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
    assert not steps(broken, invalid, namespace.standing()).delete


def test_objects_of_another_owner_are_not_changed() -> None:
    """They are neither applied nor deleted."""
    namespace = Namespace()
    namespace.act(owned(backend("a")))
    other = owned(backend("a"))
    other["metadata"]["uid"] = "v"

    assert steps(other, expand(other), namespace.standing()) == Steps(apply=(), delete=(), awaited=())
    foreign = {ChildKey("Service", "qwen-a"): {"metadata": {"name": "qwen-a"}}}
    kinds = {item["kind"] for item in steps(other, expand(other), Standing(children=foreign)).apply}
    assert kinds == {"Deployment", "ModelServer", "ModelRoute"}
