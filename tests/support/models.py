"""Models for tests: as they are after defaulting, and everything wrong with what they become."""

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
    """Return a backend of one server worker that always has two replicas."""
    return {
        "name": name,
        "type": "vLLM",
        "modelURI": "hf://Qwen/Qwen2.5-0.5B-Instruct",
        "minReplicas": 2,
        "maxReplicas": 2,
        "workers": [worker()],
    } | members


def adapters(*names: str) -> list[Json]:
    """Return adapters of some names."""
    return [{"name": name, "artifactURL": f"hf://example/{name}"} for name in names]


def loading_backend(*names: str, of: str = "l4", **members: Any) -> Json:
    """Return a backend with adapters of some names that its engines load while they run."""
    allowed = [{"name": "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "value": "True"}]
    return backend(of, **{"env": allowed, "loraAdapters": adapters(*names), **members})


def split(name: str = "split", /, **members: Any) -> Json:
    """Return a backend with prefill and decode apart."""
    workers = [worker(type="prefill", replicas=3), worker(type="decode", replicas=2)]
    return backend(name, **{"type": "vLLMDisaggregated", "workers": workers, **members})


def model(*backends: Json, name: str = "qwen", metadata: Json | None = None, **members: Any) -> Json:
    """Return a Model with its defaults. Raises AssertionError where it is invalid."""
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
    """Return what is wrong with an object, and fill in its defaults; nothing of kinds that are not ours."""
    found = find_version(value["apiVersion"], value["kind"])
    if found is None:
        return []
    return [str(error) for error in complete_and_judge(*found, value).errors]


def one(objects: tuple[Json, ...], kind: str, name: str = "") -> Json:
    """Return the only object of a kind, or that of a name."""
    found = [item for item in objects if item["kind"] == kind and name in ("", item["metadata"]["name"])]
    assert len(found) == 1, [item["metadata"]["name"] for item in objects if item["kind"] == kind]
    return found[0]


def engine_of(workload: Json) -> Json:
    """Return the container of the engine of a Deployment."""
    container: Json = workload["spec"]["template"]["spec"]["containers"][0]
    return container
