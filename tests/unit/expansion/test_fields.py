"""Every field of a Model affects its objects, or a note says that it has no effect or where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest
from support.models import GPU, POLICY, adapters, backend, errors_of, model, one, split, worker

from apiserver.kinds.kthena.model import ModelSpec
from apiserver.schema.json import Json
from apiserver.schema.model import SchemaNode, node_of
from controller.expansion.expansion import expand

_ELSEWHERE: Final = (
    "spec.autoscalingPolicy",
    "spec.backends.autoscalingPolicy",
    "spec.modelMatch",
    "spec.backends.env",
    "spec.backends.envFrom",
    "spec.backends.workers.resources",
    "spec.backends.workers.affinity",
    "spec.backends.workers.config",
)
"""Values that are copied as a whole."""

Change = tuple[Json, Json]
"""A Model without a field or with another value, and the same Model with the field."""


def with_backend(**members: Any) -> Change:
    """Return a Model with one backend, and the same with some fields of the backend."""
    return model(), model(backend(**members))


def with_worker(**members: Any) -> Change:
    """Return a Model with one worker, and the same with some fields of the worker."""
    return model(), model(backend(workers=[worker(**members)]))


def scaled(**members: Any) -> Json:
    """Return a Model whose policy scales two backends."""
    low = {"minReplicas": 1, "maxReplicas": 3, "scalingCost": 2}
    return model(backend("a", **{**low, **members}), backend("b", **low), autoscalingPolicy=POLICY)


CHANGES: Final[Mapping[str, Callable[[], Change]]] = {
    "spec.name": lambda: (model(), _of(model(), name="qwen-chat")),
    "spec.owner": lambda: (model(), model(owner="the chat team")),
    "spec.costExpansionRatePercent": lambda: (scaled(), _of(scaled(), costExpansionRatePercent=120)),
    "spec.autoscalingPolicy": lambda: (
        scaled(),
        _of(scaled(), autoscalingPolicy={**POLICY, "tolerancePercent": 0}),
    ),
    "spec.modelMatch": lambda: (model(), model(modelMatch={"uri": {"prefix": "/v1"}})),
    "spec.backends.name": lambda: with_backend(name="h100"),
    "spec.backends.type": lambda: with_backend(type="SGLang"),
    "spec.backends.modelURI": lambda: with_backend(modelURI="hf://Qwen/Qwen3-8B"),
    "spec.backends.cacheURI": lambda: with_backend(cacheURI="pvc://models"),
    "spec.backends.envFrom": lambda: with_backend(envFrom=[{"secretRef": {"name": "token"}}]),
    "spec.backends.env": lambda: with_backend(env=[{"name": "HF_ENDPOINT", "value": "http://mirror"}]),
    "spec.backends.minReplicas": lambda: with_backend(minReplicas=3, maxReplicas=3),
    "spec.backends.maxReplicas": lambda: (scaled(), scaled(maxReplicas=5)),
    "spec.backends.scalingCost": lambda: (scaled(), scaled(scalingCost=7)),
    "spec.backends.routeWeight": lambda: with_backend(routeWeight=10),
    "spec.backends.scaleToZeroGracePeriod": lambda: (
        scaled(minReplicas=0),
        scaled(minReplicas=0, scaleToZeroGracePeriod="10m"),
    ),
    "spec.backends.loraAdapters.name": lambda: _adapters({"name": "law"}, {"name": "tax"}),
    "spec.backends.loraAdapters.artifactURL": lambda: _adapters({}, {"artifactURL": "pvc://adapters/law"}),
    "spec.backends.autoscalingPolicy": lambda: with_backend(maxReplicas=4, autoscalingPolicy=POLICY),
    "spec.backends.workers.type": lambda: (model(backend()), model(split("l4"))),
    "spec.backends.workers.image": lambda: with_worker(image="vllm/vllm-openai:v0.11.0"),
    "spec.backends.workers.replicas": lambda: with_worker(replicas=2),
    "spec.backends.workers.pods": lambda: with_worker(pods=2),
    "spec.backends.workers.resources": lambda: with_worker(resources={"limits": {GPU: 2}}),
    "spec.backends.workers.affinity": lambda: with_worker(affinity={"podAntiAffinity": {}}),
    "spec.backends.workers.config": lambda: with_worker(config={"max-model-len": 8192}),
}


def _of(value: Json, **members: Any) -> Json:
    return value | {"spec": value["spec"] | members}


def _adapters(first: Json, second: Json) -> Change:
    base = {"name": "law", "artifactURL": "hf://example/law"}
    return with_backend(loraAdapters=[base | first])[1], with_backend(loraAdapters=[base | second])[1]


def fields(node: SchemaNode, path: str) -> Iterator[str]:
    """Yield the paths of all fields below a node, except those inside values that are copied as a whole."""
    for prop in node.properties:
        here = f"{path}.{prop.name}"
        inner = prop.node.items or prop.node
        if here in _ELSEWHERE or not inner.properties:
            yield here
        else:
            yield from fields(inner, here)


def test_each_field_has_a_case() -> None:
    """A new field of the kind needs an entry in the table above."""
    assert set(fields(node_of(ModelSpec), "spec")) == set(CHANGES)


@pytest.mark.parametrize("field", CHANGES)
def test_the_field_has_an_effect(field: str) -> None:
    """The objects with and without it differ."""
    before, after = CHANGES[field]()

    assert expand(before).objects != expand(after).objects


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"env": [{"name": "RUNTIME_PORT", "value": "8100"}]},
            "spec.backends[0].env[0]: RUNTIME_PORT has no effect: metrics are read from the engine, without a"
            " runtime beside it",
        ),
        (
            {"env": [{"name": "RUNTIME_URL", "value": "http://engine:8000"}]},
            "spec.backends[0].env[0]: only the port of RUNTIME_URL has an effect: the engine is in the pod,"
            " not on engine",
        ),
        (
            {
                "env": [{"name": "RUNTIME_URL", "value": "http://localhost:8001"}],
                "workers": [worker(config={"port": 9000})],
            },
            "spec.backends[0].env[0]: the port of RUNTIME_URL has no effect:"
            " spec.backends[0].workers[0].config says 9000",
        ),
        (
            {"workers": [worker(config={"model": "other"})]},
            "spec.backends[0].workers[0].config[model]: has no effect: modelURI specifies the weights",
        ),
        ({"workers": [worker(pods=0)]}, "spec.backends[0].workers[0].pods: 0 counts as 1"),
        (
            {"workers": [worker(config=["--model"])]},
            "spec.backends[0].workers[0].config: has no effect: it is not an object",
        ),
    ],
)
def test_a_field_without_effect_causes_a_note(changed: Json, said: str) -> None:
    """The backend is still expanded."""
    expansion = expand(model(backend(**changed)))

    assert [str(note) for note in expansion.notes] == [said]
    assert expansion.is_whole
    assert expansion.objects


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"type": "MindIE"},
            "spec.backends[0].type: MindIE is not supported; supported types are vLLM, vLLMDisaggregated,"
            " SGLang",
        ),
        (
            {"workers": [{"pods": 1}]},
            "spec.backends[0].workers[0].image: an engine needs an image: there is none to run",
        ),
        (
            {"workers": [worker(replicas=0)]},
            "spec.backends[0].workers[0].replicas: a replica without this worker cannot serve",
        ),
    ],
)
def test_a_backend_that_cannot_be_expanded_is_omitted(changed: Json, said: str) -> None:
    """The other backends are expanded, and no object refers to the omitted one."""
    expansion = expand(model(backend(**changed), backend("other")))

    assert [str(note) for note in expansion.notes] == [said]
    assert not expansion.is_whole
    assert {item["metadata"]["name"] for item in expansion.objects} == {"qwen-other", "qwen"}


def test_prefill_and_decode_workers_are_not_scaled_by_the_policy_of_the_model() -> None:
    """That policy counts one kind of replica per backend, and these are two."""
    low = {"minReplicas": 1, "maxReplicas": 3, "scalingCost": 2}
    expansion = expand(model(split("s", **low), backend("a", **low), autoscalingPolicy=POLICY))

    assert [str(note) for note in expansion.notes] == [
        "spec.backends[0].type: the policy of the model does not scale prefill and decode workers, since it"
        " counts one kind of replica for each backend: qwen-s keeps minReplicas"
    ]
    scaled_names = [
        item["metadata"]["name"] for item in expansion.objects if item["kind"] == "HorizontalPodAutoscaler"
    ]
    assert scaled_names == ["qwen-a"]


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
@pytest.mark.parametrize(("most_replicas", "is_limited"), [(100_000, False), (100_001, True)])
def test_replicas_are_limited_to_the_maximum_of_a_binding(
    policy: Json, most_replicas: int, is_limited: bool
) -> None:
    """A binding with more would be rejected; a note reports the limit."""
    most = {"minReplicas": 1, "maxReplicas": most_replicas, "workers": [worker(replicas=10)]}
    own = {"scalingCost": 1} if policy else {"autoscalingPolicy": POLICY}
    expansion = expand(model(backend(**most, **own), **policy))

    assert [error for item in expansion.objects for error in errors_of(item)] == []
    assert one(expansion.objects, "HorizontalPodAutoscaler")["spec"]["maxReplicas"] == 1_000_000
    assert [str(note) for note in expansion.notes] == [
        "spec.backends[0].workers[0].replicas: ends at 1000000 engines:"
        " maxReplicas of the backend times this is more"
    ] * is_limited


@pytest.mark.parametrize("names", [(), ("law",)])
def test_a_body_match_of_the_model_applies_only_if_no_rule_matches_the_body(names: tuple[str, ...]) -> None:
    """Rules for adapters that not all backends have match the body, which causes a note."""
    match = {"body": {"model": "other"}, "headers": {"team": {"exact": "a"}}}
    expansion = expand(model(backend("a", loraAdapters=adapters(*names)), backend("b"), modelMatch=match))
    matches = [rule["modelMatch"] for rule in one(expansion.objects, "ModelRoute")["spec"]["rules"]]

    assert all(item["headers"] == match["headers"] for item in matches)
    assert [item["body"]["model"] for item in matches] == (["qwen", "law"] if names else ["other"])
    assert [note.path for note in expansion.notes] == (["spec.modelMatch.body"] if names else [])
