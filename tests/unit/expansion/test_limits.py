"""Models that exceed limits of their objects: the rest is created, and a note names what is missing."""

from __future__ import annotations

import pytest
from support.models import POLICY, adapters, backend, errors_of, model, one, worker

from apiserver.schema.json import Json
from controller.expansion.expansion import expand

CANARY = backend("canary", routeWeight=0, loraAdapters=adapters("law"))

UNROUTED = {
    "an adapter that only a backend without weight has": (
        [backend("stable"), CANARY],
        ["spec.backends[1].loraAdapters: requests for law are not served: routeWeight of"],
        [["qwen-stable", "qwen-canary"]],
    ),
    "an adapter that a backend with weight also has": (
        [backend("stable", loraAdapters=adapters("law")), CANARY],
        [],
        [["qwen-stable", "qwen-canary"]],
    ),
    "no backend with weight": (
        [CANARY],
        ["spec.backends: there is no ModelRoute: no created backend has a routeWeight"],
        [],
    ),
    "more backends than targets allowed in a rule": (
        [CANARY | {"loraAdapters": []}, *(backend(f"b{place:02}") for place in range(17))],
        ["spec.backends[17]: gets no requests: a rule of a ModelRoute leads to 16 backends"],
        [[f"qwen-b{place:02}" for place in range(16)]],
    ),
}


@pytest.mark.parametrize(("backends", "notes", "targets"), UNROUTED.values(), ids=UNROUTED.keys())
def test_adapters_and_backends_without_route_cause_a_note(
    backends: list[Json], notes: list[str], targets: list[list[str]]
) -> None:
    """The other routes stay valid, because a ModelRoute with one invalid rule is rejected as a whole."""
    expansion = expand(model(*backends))
    routes = [item for item in expansion.objects if item["kind"] == "ModelRoute"]

    assert [errors_of(item) for item in routes] == [[] for _ in routes]
    assert [
        [target["modelServerName"] for target in rule["targetModels"]]
        for item in routes
        for rule in item["spec"]["rules"]
    ] == targets
    assert len(expansion.notes) == len(notes)
    assert all(str(note).startswith(text) for note, text in zip(expansion.notes, notes, strict=True))
    assert expansion.is_whole


@pytest.mark.parametrize("policy", [{}, {"autoscalingPolicy": POLICY}])
def test_replicas_are_limited_to_the_maximum_of_a_binding(policy: Json) -> None:
    """A binding with more would be rejected; a note reports the limit."""
    most = {"minReplicas": 1, "maxReplicas": 500_000, "workers": [worker(replicas=10)]}
    own = {"scalingCost": 1} if policy else {"autoscalingPolicy": POLICY}
    expansion = expand(model(backend(**most, **own), **policy))

    assert [error for item in expansion.objects for error in errors_of(item)] == []
    assert one(expansion.objects, "HorizontalPodAutoscaler")["spec"]["maxReplicas"] == 1_000_000
    assert [str(note) for note in expansion.notes] == [
        "spec.backends[0].workers[0].replicas: ends at 1000000 engines:"
        " maxReplicas of the backend times this is more"
    ]


@pytest.mark.parametrize("names", [(), ("law",)])
def test_a_body_match_of_the_model_applies_only_if_no_rule_matches_the_body(names: tuple[str, ...]) -> None:
    """Rules for adapters that not all backends have match the body, which causes a note."""
    match = {"body": {"model": "other"}, "headers": {"team": {"exact": "a"}}}
    expansion = expand(model(backend("a", loraAdapters=adapters(*names)), backend("b"), modelMatch=match))
    matches = [rule["modelMatch"] for rule in one(expansion.objects, "ModelRoute")["spec"]["rules"]]

    assert all(item["headers"] == match["headers"] for item in matches)
    assert [item["body"]["model"] for item in matches] == (["qwen", "law"] if names else ["other"])
    assert [note.path for note in expansion.notes] == (["spec.modelMatch.body"] if names else [])
