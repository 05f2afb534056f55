"""What is still to be done for a Model: in which order, and what waits for what."""

from __future__ import annotations

import copy
from dataclasses import replace

from support.models import POLICY, backend, model

from apiserver.schema.json import Json
from controller.models.applied import fingerprint
from controller.models.expansion import Expansion, expand
from controller.models.standing import ChildKey, Standing, Steps, key_of, steps

SCALED = {"minReplicas": 1, "maxReplicas": 4, "autoscalingPolicy": POLICY}


def owned(*backends: Json) -> Json:
    """Return a Model that is in a cluster."""
    return model(*backends, metadata={"uid": "u", "namespace": "chat"})


class Namespace:
    """Does what is to be done, as an API server would."""

    def __init__(self) -> None:
        self.children: dict[ChildKey, Json] = {}
        self.applied: dict[ChildKey, str] = {}
        self.done: list[str] = []

    def standing(self) -> Standing:
        """Return what there is."""
        return Standing(children=copy.deepcopy(self.children), applied=self.applied)

    def act(self, value: Json) -> Steps:
        """Do the next steps for a Model."""
        found = steps(value, expand(value), self.standing())
        for item in found.apply:
            self._apply(item)
        for item in found.delete:
            self.done.append(f"delete {item['kind']} {item['metadata']['name']}")
            del self.children[key_of(item)]
        return found

    def serve(self, *names: str) -> None:
        """Have all replicas of some workloads available."""
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


def test_everything_is_made_once() -> None:
    """What runs before what sends requests to it; then nothing is left to do."""
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


def test_what_another_one_scales_keeps_its_replicas() -> None:
    """With the version that was seen, so that a number that changes meanwhile is not lost."""
    namespace = Namespace()
    namespace.act(owned(backend(**SCALED)))
    key = ChildKey("Deployment", "qwen-l4")
    namespace.children[key]["spec"]["replicas"] = 3

    edited = owned(backend(**SCALED, cacheURI="pvc://models"))
    [item] = steps(edited, expand(edited), namespace.standing()).apply
    assert item["spec"]["replicas"] == 3
    assert item["metadata"]["resourceVersion"] == "1"


def test_a_fixed_number_of_replicas_is_that_of_the_model() -> None:
    """Nobody else decides it."""
    namespace = Namespace()
    namespace.act(owned(backend()))
    edited = owned(backend(minReplicas=5, maxReplicas=5))

    [item] = steps(edited, expand(edited), namespace.standing()).apply
    assert item["spec"]["replicas"] == 5
    assert "resourceVersion" not in item["metadata"]


def test_a_renamed_backend_goes_when_the_new_one_serves() -> None:
    """First the new one, then the route, then the end of the old one."""
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


def test_a_backend_that_is_taken_out_goes_when_the_others_serve() -> None:
    """As long as one of them does not, it may be all that serves."""
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


def test_nothing_goes_of_a_model_that_cannot_be_made_whole() -> None:
    """An edit that takes an image away must not take the backend away, nor its requests and its replicas."""
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


def test_what_is_of_another_one_is_left_alone() -> None:
    """Neither applied nor deleted."""
    namespace = Namespace()
    namespace.act(owned(backend("a")))
    other = owned(backend("a"))
    other["metadata"]["uid"] = "v"

    assert steps(other, expand(other), namespace.standing()) == Steps(apply=(), delete=(), awaited=())
    foreign = {ChildKey("Service", "qwen-a"): {"metadata": {"name": "qwen-a"}}}
    kinds = {item["kind"] for item in steps(other, expand(other), Standing(children=foreign)).apply}
    assert kinds == {"Deployment", "ModelServer", "ModelRoute"}
