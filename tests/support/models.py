"""Models for tests, with their defaults, and validation of the objects made for them."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json

GPU = "nvidia.com/gpu"
POLICY = {"metrics": [{"metricName": "vllm:num_requests_waiting", "targetValue": 8}]}


def worker(**members: Any) -> Json:
    """Return a worker with an image."""
    return {"image": "vllm/vllm-openai:v0.10.1", "resources": {"limits": {GPU: 1}}, **members}


def backend(name: str = "l4", /, **members: Any) -> Json:
    """Return a backend with one server worker and always two replicas."""
    return {
        "name": name,
        "type": "vLLM",
        "modelURI": "hf://Qwen/Qwen2.5-0.5B-Instruct",
        "minReplicas": 2,
        "maxReplicas": 2,
        "workers": [worker()],
    } | members


def adapters(*names: str) -> list[Json]:
    """Return adapters with the given names."""
    return [{"name": name, "artifactURL": f"hf://example/{name}"} for name in names]


def loading_backend(*names: str, of: str = "l4", **members: Any) -> Json:
    """Return a backend with adapters that its engines load at run time."""
    allowed = [{"name": "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "value": "True"}]
    return backend(of, **{"env": allowed, "loraAdapters": adapters(*names), **members})


def split(name: str = "split", /, **members: Any) -> Json:
    """Return a disaggregated backend."""
    workers = [worker(type="prefill", replicas=3), worker(type="decode", replicas=2)]
    return backend(name, **{"type": "vLLMDisaggregated", "workers": workers, **members})


def model(*backends: Json, name: str = "qwen", metadata: Json | None = None, **members: Any) -> Json:
    """Return a Model with its defaults. Raises AssertionError if it is invalid."""
    value = copy.deepcopy(
        {
            "apiVersion": "registry.volcano.sh/v1alpha1",
            "kind": "Model",
            "metadata": {"name": name, **(metadata or {})},
            "spec": {"backends": list(backends) or [backend()], **members},
        }
    )
    assert errors_of(value) == []
    return value


def errors_of(value: Json) -> list[str]:
    """Return the errors of an object, and fill in its defaults; nothing for kinds of other projects."""
    found = find_version(value["apiVersion"], value["kind"])
    if found is None:
        return []
    return [str(error) for error in complete_and_judge(*found, value).errors]


def one(objects: tuple[Json, ...], kind: str, name: str = "") -> Json:
    """Return the only object of a kind, or the one with a name."""
    found = [item for item in objects if item["kind"] == kind and name in ("", item["metadata"]["name"])]
    assert len(found) == 1, [item["metadata"]["name"] for item in objects if item["kind"] == kind]
    return found[0]


def engine_of(workload: Json) -> Json:
    """Return the engine container of a Deployment."""
    container: Json = workload["spec"]["template"]["spec"]["containers"][0]
    return container
