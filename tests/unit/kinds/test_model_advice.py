"""What is legal in a Model, but hardly meant."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.kthena.modeladvice import model_advice
from apiserver.schema.json import Json

WORKER = {"image": "vllm:1"}
BACKEND = {
    "name": "l4",
    "type": "vLLM",
    "modelURI": "hf://meta/llama",
    "minReplicas": 1,
    "maxReplicas": 1,
    "workers": [WORKER],
}
POLICY = {"metrics": [{"metricName": "waiting", "targetValue": 4}]}
FIRST = "spec.backends[0]"


def backend(**members: Any) -> Json:
    """Return a model of one backend with some members changed."""
    return {"backends": [BACKEND | members]}


def worker(**members: Any) -> Json:
    """Return a model of one worker with some members changed."""
    return backend(workers=[WORKER | members])


def config(value: Json, **members: Any) -> Json:
    """Return a worker with a config."""
    return WORKER | {"config": value} | members


def transfer(connector: str, role: str) -> Json:
    """Return a config that says how the cache is handed over."""
    return {"kv-transfer-config": f'{{"kv_connector": "{connector}", "kv_role": "{role}"}}'}


SILENT = {
    "a sound backend": backend(),
    "one weight above zero": {
        "backends": [BACKEND | {"routeWeight": 0}, BACKEND | {"name": "b", "routeWeight": 1}]
    },
    "a bucket with its endpoint": backend(modelURI="s3://b/m", env=[{"name": "ENDPOINT", "value": "x"}]),
    "a bucket whose endpoint may come from a source": backend(
        modelURI="s3://b/m", envFrom=[{"secretRef": {"name": "s"}}]
    ),
    "a volume on a volume": backend(modelURI="pvc://c/m", cacheURI="pvc://c"),
    "a port as number or text": backend(workers=[config({"port": 8000}), config({"port": "8000"})]),
    "roles that fit": backend(
        workers=[
            config(transfer("Nixl", "kv_producer"), type="prefill"),
            config(transfer("Nixl", "kv_both"), type="decode"),
        ]
    ),
    "a transfer as an object": worker(
        type="decode", config={"kv_transfer_config": {"kv_connector": "N", "kv_role": "kv_consumer"}}
    ),
}

SPOKEN = {
    "no weight at all": (
        backend(routeWeight=0),
        ["spec.backends: every routeWeight is 0, so no backend gets requests"],
    ),
    "an adapter without requests": (
        {
            "backends": [
                BACKEND,
                BACKEND
                | {
                    "name": "b",
                    "routeWeight": 0,
                    "loraAdapters": [{"name": "law", "artifactURL": "hf://a"}],
                },
            ]
        },
        ["spec.backends: no requests for adapter law: routeWeight is 0 where it is"],
    ),
    "more engines than a binding takes": (
        backend(maxReplicas=1000, workers=[{"image": "a", "replicas": 1001}]),
        [f"{FIRST}.workers[0].replicas: limited to 1000000 engines at maxReplicas"],
    ),
    "more backends than a route takes": (
        {"backends": [BACKEND | {"name": f"b{i}"} for i in range(17)]},
        ["spec.backends: a ModelRoute routes requests to at most 16 of 17 backends"],
    ),
    "a long name": (
        backend(name="b" * 46, maxReplicas=10),
        [
            f"{FIRST}.name: Kthena's own controller derives pod names with 65 characters from it; at most 63"
            " are allowed"
        ],
    ),
    "a bucket without an endpoint": (
        backend(modelURI="s3://b/m"),
        [f"{FIRST}.env: Kthena's own controller reads s3:// only with the variable ENDPOINT"],
    ),
    "an adapter from a bucket without an endpoint": (
        backend(loraAdapters=[{"name": "a", "artifactURL": "s3://b/a"}]),
        [f"{FIRST}.env: Kthena's own controller reads s3:// only with the variable ENDPOINT"],
    ),
    "the disk of the node": (
        backend(cacheURI="hostpath:///models"),
        [f"{FIRST}.cacheURI: hostpath:// reads and writes the disk of every node that runs the model"],
    ),
    "a volume that nothing mounts": (
        backend(modelURI="pvc://c/m"),
        [f"{FIRST}.modelURI: Kthena's own controller mounts pvc:// only where cacheURI is one, too"],
    ),
    "a backend that is free": (
        backend(scalingCost=0) | {"autoscalingPolicy": POLICY},
        [f"{FIRST}.scalingCost: 0 counts as free, so this backend is scaled first"],
    ),
    "nothing to run": (
        backend(workers=[{}]),
        [f"{FIRST}.workers[0].image: not set, so there is nothing to run"],
    ),
    "no workers, no pods": (
        worker(replicas=0, pods=0),
        [
            f"{FIRST}.workers[0].replicas: 0, so the backend cannot serve",
            f"{FIRST}.workers[0].pods: 0 counts as 1",
        ],
    ),
    "claims that no pod has": (
        worker(resources={"claims": [{"name": "gpu"}]}),
        [
            f"{FIRST}.workers[0].resources.claims: pods of a model have no resource claims, so they are"
            " refused"
        ],
    ),
    "a config that is a list": (
        worker(config=["--port=1"]),
        [f"{FIRST}.workers[0].config: not an object with the arguments of the engine, so it has no effect"],
    ),
    "a port in words": (
        worker(config={"port": "http"}),
        [f"{FIRST}.workers[0].config.port: not a number"],
    ),
    "a port beyond all": (
        worker(config={"port": 65536}),
        [f"{FIRST}.workers[0].config.port: not between 1 and 65535"],
    ),
    "two ports": (
        backend(workers=[config({"port": 8000}), config({"port": 8001})]),
        [f"{FIRST}.workers: engines listen on different ports: 8000, 8001"],
    ),
    "a transfer that is no JSON": (
        worker(config={"kv-transfer-config": "nixl"}),
        [f"{FIRST}.workers[0].config.kv-transfer-config: not a JSON object with a kv_connector"],
    ),
    "a transfer too deep to be read": (
        worker(config={"kv-transfer-config": "[" * 200_000}),
        [f"{FIRST}.workers[0].config.kv-transfer-config: not a JSON object with a kv_connector"],
    ),
    "roles the wrong way round": (
        backend(workers=[config(transfer("N", "kv_consumer"), type="prefill")]),
        [
            f"{FIRST}.workers[0].config.kv-transfer-config: kv_role of a prefill worker is kv_producer or"
            " kv_both"
        ],
    ),
    "two connectors": (
        backend(workers=[config(transfer("A", "kv_both")), config(transfer("B", "kv_both"))]),
        [f"{FIRST}.workers: kv_connector differs: A, B"],
    ),
    "a policy of the model that is odd": (
        backend(scalingCost=1) | {"autoscalingPolicy": POLICY | {"tolerancePercent": 100}},
        ["spec.autoscalingPolicy.tolerancePercent: at 100, nothing is scaled down except to 0"],
    ),
    "a policy of a backend that is odd": (
        backend(autoscalingPolicy=POLICY | {"tolerancePercent": 100}),
        [f"{FIRST}.autoscalingPolicy.tolerancePercent: at 100, nothing is scaled down except to 0"],
    ),
}


def advice(spec: Json) -> list[str]:
    """Return the warnings about a model."""
    return model_advice({"metadata": {"name": "llama"}, "spec": copy.deepcopy(spec)})


@pytest.mark.parametrize("spec", SILENT.values(), ids=SILENT.keys())
def test_nothing_is_said_of_what_is_sound(spec: Json) -> None:
    """No warning."""
    assert advice(spec) == []


@pytest.mark.parametrize(("spec", "want"), SPOKEN.values(), ids=SPOKEN.keys())
def test_what_is_hardly_meant_is_said(spec: Json, want: list[str]) -> None:
    """One sentence each, short enough for a warning, beginning with the field."""
    assert advice(spec) == want
    assert all(len(text) <= 120 for text in want)


def test_a_model_that_is_not_named_yet_has_short_names() -> None:
    """An object whose name the server will make up has none to judge."""
    assert model_advice({"metadata": {"generateName": "llama-"}, "spec": backend()}) == []
