"""Names that are derived from those of a Model, and warnings about Models."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest
from support.models import backend as some_backend
from support.models import split

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.kthena.models import MODEL, model_advice
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
    """Return a config for the transfer of the KV cache."""
    return {"kv-transfer-config": f'{{"kv_connector": "{connector}", "kv_role": "{role}"}}'}


SILENT = {
    "a usual backend": backend(),
    "one weight above zero": {
        "backends": [BACKEND | {"routeWeight": 0}, BACKEND | {"name": "b", "routeWeight": 1}]
    },
    "a bucket with its endpoint": backend(modelURI="s3://b/m", env=[{"name": "ENDPOINT", "value": "x"}]),
    "a bucket whose endpoint may come from a source": backend(
        modelURI="s3://b/m", envFrom=[{"secretRef": {"name": "s"}}]
    ),
    "a model and its cache on volumes": backend(modelURI="pvc://c/m", cacheURI="pvc://c"),
    "a port as number or text": backend(workers=[config({"port": 8000}), config({"port": "8000"})]),
    "roles that match the workers": backend(
        workers=[
            config(transfer("Nixl", "kv_producer"), type="prefill"),
            config(transfer("Nixl", "kv_both"), type="decode"),
        ]
    ),
    "a transfer config as an object": worker(
        type="decode", config={"kv_transfer_config": {"kv_connector": "N", "kv_role": "kv_consumer"}}
    ),
}

SPOKEN = {
    "route weights of 0 only": (
        backend(routeWeight=0),
        ["spec.backends: every routeWeight is 0, so no backend gets requests"],
    ),
    "an adapter without requests": (
        {
            "backends": [
                BACKEND,
                BACKEND
                | {"name": "b", "routeWeight": 0, "loraAdapters": [{"name": "law", "artifactURL": "hf://a"}]},
            ]
        },
        ["spec.backends: no requests for adapter law: routeWeight is 0 where it is"],
    ),
    "more engines than a binding allows": (
        backend(maxReplicas=1000, workers=[{"image": "a", "replicas": 1001}]),
        [f"{FIRST}.workers[0].replicas: limited to 1000000 engines at maxReplicas"],
    ),
    "more backends than a route allows": (
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
    "a backend with a cost of 0": (
        backend(scalingCost=0) | {"autoscalingPolicy": POLICY},
        [f"{FIRST}.scalingCost: 0 counts as free, so this backend is scaled first"],
    ),
    "no image": (backend(workers=[{}]), [f"{FIRST}.workers[0].image: not set, so there is nothing to run"]),
    "zero replicas and zero pods": (
        worker(replicas=0, pods=0),
        [
            f"{FIRST}.workers[0].replicas: 0, so the backend cannot serve",
            f"{FIRST}.workers[0].pods: 0 counts as 1",
        ],
    ),
    "resource claims": (
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
    "a port that is text": (
        worker(config={"port": "http"}),
        [f"{FIRST}.workers[0].config.port: not a number"],
    ),
    "a port above the maximum": (
        worker(config={"port": 65536}),
        [f"{FIRST}.workers[0].config.port: not between 1 and 65535"],
    ),
    "two ports": (
        backend(workers=[config({"port": 8000}), config({"port": 8001})]),
        [f"{FIRST}.workers: engines listen on different ports: 8000, 8001"],
    ),
    "a transfer config that is not JSON": (
        worker(config={"kv-transfer-config": "nixl"}),
        [f"{FIRST}.workers[0].config.kv-transfer-config: not a JSON object with a kv_connector"],
    ),
    "a transfer config that is nested too deeply": (
        worker(config={"kv-transfer-config": "[" * 200_000}),
        [f"{FIRST}.workers[0].config.kv-transfer-config: not a JSON object with a kv_connector"],
    ),
    "a consumer role for a prefill worker": (
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
    "a policy of the model with full tolerance": (
        backend(scalingCost=1) | {"autoscalingPolicy": POLICY | {"tolerancePercent": 100}},
        ["spec.autoscalingPolicy.tolerancePercent: at 100, nothing is scaled down except to 0"],
    ),
    "a policy of a backend with full tolerance": (
        backend(autoscalingPolicy=POLICY | {"tolerancePercent": 100}),
        [f"{FIRST}.autoscalingPolicy.tolerancePercent: at 100, nothing is scaled down except to 0"],
    ),
}


def advice(spec: Json) -> list[str]:
    """Return the warnings about a model."""
    return model_advice({"metadata": {"name": "llama"}, "spec": copy.deepcopy(spec)})


@pytest.mark.parametrize("spec", SILENT.values(), ids=SILENT.keys())
def test_usual_models_cause_no_warning(spec: Json) -> None:
    """The list of warnings is empty."""
    assert advice(spec) == []


@pytest.mark.parametrize(("spec", "want"), SPOKEN.values(), ids=SPOKEN.keys())
def test_probably_unintended_values_cause_warnings(spec: Json, want: list[str]) -> None:
    """Each warning begins with its field, and has at most 120 characters."""
    assert advice(spec) == want
    assert all(len(text) <= 120 for text in want)


def test_a_generated_name_causes_no_warning_about_its_length() -> None:
    """The API server generates it later, so its length is unknown."""
    assert model_advice({"metadata": {"generateName": "llama-"}, "spec": backend()}) == []


def test_every_pod_name_that_is_too_long_causes_a_warning_and_no_other_does() -> None:
    """Each part of the name counts: the model, the backend, the type, and all numbers up to their limits."""
    counts = (0, 1, 2, 11, 1_000_000)
    parts = product((3, 20, 40), range(1, 60, 3), ("server", "coordinator"), counts[1:], counts, counts)
    for model, name, role, most, replicas, pods in parts:
        last = f"{most - 1}-{role}-{max(replicas - 1, 0)}-{max(pods - 1, 0)}"
        length = len(f"{'m' * model}-{'b' * name}-{last}")
        members = {"name": "b" * name, "maxReplicas": most}
        worker = {"image": "a", "type": role, "replicas": replicas, "pods": pods}
        spec = {"backends": [BACKEND | members | {"workers": [worker]}]}
        found = model_advice({"metadata": {"name": "m" * model}, "spec": spec})

        assert any(f"pod names with {length} characters" in text for text in found) == (length > 63)
        assert sum("pod names" in text for text in found) == (length > 63)


def model(*backends: Json, name: str = "llama") -> Json:
    """Return a Model, valid or not."""
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": name},
        "spec": {"backends": list(backends)},
    }


def spanning(name: str, **members: Any) -> Json:
    """Return a Model with one backend whose engines have two pods each."""
    return model(some_backend(name, workers=[{"pods": 2, **members}]))


def errors_of(value: Json, old: Json | None = None) -> list[str]:
    """Return every error of an object."""
    return [str(error) for error in complete_and_judge(MODEL, MODEL.storage_version, value, old).errors]


ACCEPTED = {
    "the longest name of a Service": model(some_backend("b" * 57)),
    "the longest name of an engine that spans nodes": spanning("b" * 44, replicas=5),
    "backends with similar names but different workloads": model(
        split("a"), some_backend("a-server"), split("a-decode-x")
    ),
    "no name yet": model(some_backend("b" * 57)) | {"metadata": {"generateName": "llama-"}},
}

REFUSED = {
    "the name of a workload of an earlier backend": (
        model(split("a"), some_backend("a-prefill")),
        [
            'spec.backends[1].name: Invalid value: "a-prefill": backend a has a workload'
            " llama-a-prefill as well: rename one of both"
        ],
    ),
    "a workload with the name of an earlier backend": (
        model(some_backend("a-decode"), split("a")),
        [
            'spec.backends[1].name: Invalid value: "a": backend a-decode has a workload'
            " llama-a-decode as well: rename one of both"
        ],
    ),
    "a name of a model that is not valid for a Service": (
        model(some_backend(), name="7b"),
        ['metadata.name: Invalid value: "7b": must begin with a letter: Services are called by it'],
    ),
    "a name of a backend that is too long together with that of the model": (
        model(some_backend("b" * 58)),
        [
            f'{FIRST}.name: Invalid value: "{"b" * 58}": its Service would be named llama-{"b" * 58},'
            " which has 64 characters of at most 63: shorten it, or metadata.name"
        ],
    ),
    "a name of a model that is too long together with that of a workload": (
        model(split("l4"), name="m" * 53),
        [
            f'{FIRST}.name: Invalid value: "l4": its Service would be named {"m" * 53}-l4-prefill,'
            " which has 64 characters of at most 63: shorten it, or metadata.name"
        ],
    ),
    "a name that is too long for a label of the last engine that spans nodes": (
        spanning("b" * 44, replicas=6),
        [
            f'{FIRST}.name: Invalid value: "{"b" * 44}": a label of its pods would be'
            f" llama-{'b' * 44}-11-REVISION,"
            " which has 64 characters of at most 63: shorten it, or metadata.name"
        ],
    ),
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_names_that_fit_are_accepted(value: Json) -> None:
    """There are no errors."""
    assert errors_of(value) == []


@pytest.mark.parametrize(("value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_names_that_are_invalid_for_other_objects_are_rejected(value: Json, want: list[str]) -> None:
    """The message contains the name of the other object."""
    assert errors_of(value) == want


def test_a_stored_name_that_is_too_long_remains_valid() -> None:
    """The object stays editable; new backends must have valid names."""
    long = some_backend("b" * 58)
    old = model(long)

    assert errors_of(model(long | {"routeWeight": 1}), old) == []
    assert len(errors_of(model(long, some_backend("c" * 58)), old)) == 1
