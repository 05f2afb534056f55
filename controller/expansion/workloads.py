"""The workload of a part, its probes, its list of adapters and its Service, with its command lines.

An engine with one pod is a Deployment replica. An engine that spans nodes is a group of a LeaderWorkerSet,
whose leader answers requests. Sources: the command-line references of vLLM and SGLang; for engines that span
nodes, their documentation about LeaderWorkerSets, which set the variables `LWS_*` in each pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.annotations import MODEL_OWNER
from apiserver.schema.json import Json, JsonValue
from controller.expansion.adapters import LOADER, list_data, loader
from controller.expansion.parts import (
    BACKEND_LABEL,
    MANAGED_BY,
    MODEL_LABEL,
    SGLANG,
    VLLM,
    Part,
    backend_name,
    engine_name,
    owned_metadata,
)
from controller.expansion.weights import Weights
from controller.observe.targets import WORKER_INDEX

_OURS: Final = frozenset({"model", "model-path"})
"""Arguments that are set from other fields of the Model."""

_RAY_PORT: Final = 6379
_RENDEZVOUS_PORT: Final = 5000
_DIVIDING: Final = frozenset(
    {
        "tp",
        *(
            f"{name}-size"
            for name in ("tensor-parallel", "pipeline-parallel", "data-parallel", "tp", "pp", "dp")
        ),
    }
)
_ACCELERATORS: Final = ("gpu", "ascend", "tpu", "mlu", "dcu", "xpu", "hpu", "npu")

_DRAIN: Final = """\
import re, sys, time, urllib.request
busy = re.compile(
    r"^(?:vllm:num_requests_(?:running|waiting)|sglang:num_(?:running|queue)_reqs)"
    r"(?:{.*})? +([0-9.e+]+)", re.MULTILINE)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
time.sleep(float(sys.argv[2]))
while True:
    with direct.open(sys.argv[1], timeout=5) as answer:
        if not any(float(value) for value in busy.findall(answer.read().decode())):
            break
    time.sleep(1)
"""
"""Waits until no request is in progress, after some seconds in which routers drop the endpoint."""

_WAIT_FOR_NODES: Final = """\
import os, time, ray
ray.init("auto", log_to_driver=False)
while sum(node["Alive"] for node in ray.nodes()) < int(os.environ["LWS_GROUP_SIZE"]):
    time.sleep(2)
"""

_SETTLE_SECONDS: Final = "5"
"""Time in seconds for which requests may still arrive after a pod began to stop."""

DRAIN_SECONDS: Final = 300
"""Time in seconds for requests in progress to finish when a pod stops."""


def leader_command(part: Part, weights: Weights) -> list[str]:
    """Return the command of the pod that answers requests."""
    command = [*_PROGRAMS[part.engine], *_arguments(part, weights)]
    if part.pods == 1:
        return command
    if part.engine == SGLANG:
        rendezvous = f"$(LWS_LEADER_ADDRESS):{_RENDEZVOUS_PORT}"
        nodes = ["--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)"]
        return [*command, "--dist-init-addr", rendezvous, *nodes]
    script = (
        f"ray start --head --port={_RAY_PORT}\n"
        f"python3 -c '{_WAIT_FOR_NODES}'\n"
        'exec "$@" --distributed-executor-backend ray\n'
    )
    return ["/bin/sh", "-ec", script, "leader", *command]


def worker_command(part: Part, weights: Weights) -> list[str]:
    """Return the command of the other pods of an engine that spans nodes."""
    if part.engine == SGLANG:
        return leader_command(part, weights)
    join = f'ray start --block --address="$LWS_LEADER_ADDRESS:{_RAY_PORT}"'
    return ["/bin/sh", "-c", f"until {join}; do sleep 2; done"]


def probes(part: Part) -> Json:
    """Return the probes of the engine. Loading its weights may take up to an hour."""
    health = {"httpGet": {"path": "/health", "port": part.port}, "timeoutSeconds": 5}
    return {
        "startupProbe": {**health, "periodSeconds": 5, "failureThreshold": 720},
        "readinessProbe": {**health, "periodSeconds": 5},
        "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 6},
    }


def lifecycle(part: Part) -> Json:
    """Return the hook that delays the engine's shutdown until its requests are finished."""
    url = f"http://127.0.0.1:{part.port}{part.metrics_path}"
    return {"preStop": {"exec": {"command": ["python3", "-c", _DRAIN, url, _SETTLE_SECONDS]}}}


def ignored_settings(part: Part) -> Iterator[str]:
    """Yield the arguments in a config that are set from other fields."""
    return (name for name in part.config if name.replace("_", "-") in _OURS)


def accelerators_per_pod(part: Part) -> int:
    """Return the number of accelerators that one pod requests as extended resources."""
    resources = part.worker.get("resources") or {}
    requested = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    counts = [
        str(count)
        for name, count in requested.items()
        if "/" in name and any(word in name.rpartition("/")[2].lower() for word in _ACCELERATORS)
    ]
    return sum(int(text) for text in counts if text.isascii() and text.isdigit())


def _arguments(part: Part, weights: Weights) -> list[str]:
    name = engine_name(part.model, part.backend)
    config = {key.replace("_", "-"): value for key, value in part.config.items()}
    defaults: Json = {"served-model-name": name, "port": part.port, **_parallel(part, config)}
    if part.engine == SGLANG:
        defaults |= {"host": "0.0.0.0", "enable-metrics": ""}  # noqa: S104 (other pods connect to it)
    if part.loads_adapters:
        defaults["enable-lora"] = ""
    elif weights.adapter_paths:
        listed: JsonValue = [f"{name}={path}" for name, path in sorted(weights.adapter_paths.items())]
        is_sglang = part.engine == SGLANG
        defaults |= {"lora-paths": listed} if is_sglang else {"enable-lora": "", "lora-modules": listed}
    requested = {key: value for key, value in config.items() if key not in _OURS}
    words = [_MODEL_FLAG[part.engine], weights.model_path]
    for key, value in sorted({**defaults, **requested}.items()):
        words += _words(f"--{key}", value, negates=part.engine == VLLM)
    return words


def _parallel(part: Part, config: Json) -> Json:
    """Return the parallelism of an engine that spans nodes, unless its config sets it."""
    if part.pods == 1 or _DIVIDING & config.keys():
        return {}
    per_pod = accelerators_per_pod(part) or 1
    if part.engine == SGLANG:
        return {"tp-size": per_pod * part.pods}
    return {"tensor-parallel-size": per_pod, "pipeline-parallel-size": part.pods}


def _words(flag: str, value: JsonValue, *, negates: bool) -> list[str]:
    """Return one argument; an empty string and `true` give a flag without a value."""
    match value:
        case None:
            return []
        case "" | True:
            return [flag]
        case False:
            return [f"--no-{flag.removeprefix('--')}"] if negates else []
        case list() if not any(isinstance(item, dict | list) for item in value):
            return [flag, *map(_text, value)] if value else []
        case _:
            return [flag, _text(value)]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    VLLM: ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    SGLANG: ("python3", "-m", "sglang.launch_server"),
}
_MODEL_FLAG: Final = {VLLM: "--model", SGLANG: "--model-path"}


_PORT_NAME: Final = "http"
_STOP_SECONDS: Final = DRAIN_SECONDS + 30
_SHARED_MEMORY: Final = "shared-memory"


def workload(part: Part, weights: Weights, *, replicas: int) -> Json:
    """Return the Deployment or LeaderWorkerSet of a part."""
    if part.pods > 1:
        spec = _groups(part, weights)
        api_version, kind = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
    else:
        template = _template(part, weights, leader_command(part, weights), answers=True)
        spec = {"selector": {"matchLabels": dict(part.labels)}, "template": template}
        api_version, kind = "apps/v1", "Deployment"
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata(part.model, part.name, part.labels),
        "spec": {"replicas": replicas, **spec},
    }


def service(part: Part) -> Json:
    """Return the Service for the pods of a part that answer requests."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(part.model, part.name, part.labels),
        "spec": {
            "selector": dict(answering_labels(part)),
            "ports": [{"name": _PORT_NAME, "port": part.port, "targetPort": _PORT_NAME}],
        },
    }


def adapter_list(part: Part, weights: Weights) -> Json:
    """Return the ConfigMap with the adapters that a backend's engines load at run time."""
    labels = {label: part.labels[label] for label in (MODEL_LABEL, BACKEND_LABEL)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(part.model, backend_name(part.model, part.backend), labels),
        "data": list_data(weights),
    }


def reference(part: Part) -> Json:
    """Return the reference to the workload of a part, for policies."""
    if part.pods > 1:
        return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": part.name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": part.name}


def answering_labels(part: Part) -> Mapping[str, str]:
    """Return labels of the pods of a part that answer requests; for engines that span nodes, the leaders."""
    return {**part.labels, WORKER_INDEX: "0"} if part.pods > 1 else part.labels


def metadata(model: Json, name: str, labels: Mapping[str, str]) -> Json:
    """Return the metadata of an object made for a Model."""
    members = owned_metadata(model, name, labels)
    if owner := model["spec"].get("owner"):
        members["annotations"] = {MODEL_OWNER: owner}
    return members


def _groups(part: Part, weights: Weights) -> Json:
    leader = _template(part, weights, leader_command(part, weights), answers=True)
    worker = _template(part, weights, worker_command(part, weights), answers=False)
    return {
        # By default, the Service by which the pods of a group find their leader has the name of the set,
        # like the Service for requests. With this policy, there is one for each leader, with its name.
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
        "leaderWorkerTemplate": {
            "size": part.pods,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": leader,
            "workerTemplate": worker,
        },
    }


def _template(part: Part, weights: Weights, command: list[str], *, answers: bool) -> Json:
    spec: Json = {
        "containers": [_engine(part, weights, command, answers=answers)],
        # Engines on several accelerators use it to exchange data, and the default size is 64 MiB.
        "volumes": [*weights.volumes, {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}],
    }
    if part.loads_adapters:
        spec["containers"].append(loader(part, weights))
        config_map = {"name": backend_name(part.model, part.backend)}
        spec["volumes"].append({"name": LOADER, "configMap": config_map})
    if weights.fetchers:
        spec["initContainers"] = list(weights.fetchers)
    if affinity := part.worker.get("affinity"):
        spec["affinity"] = affinity
    if answers:
        spec["terminationGracePeriodSeconds"] = _STOP_SECONDS
    return {"metadata": {"labels": {**MANAGED_BY, **part.labels, **part.engine_labels}}, "spec": spec}


def _engine(part: Part, weights: Weights, command: list[str], *, answers: bool) -> Json:
    container: Json = {
        "name": "engine",
        "image": part.worker["image"],
        "command": command,
        "volumeMounts": [*weights.mounts, {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"}],  # noqa: S108
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **part.environment,
    }
    if resources := part.worker.get("resources"):
        container["resources"] = resources
    if answers:
        port = {"name": _PORT_NAME, "containerPort": part.port}
        container |= {"ports": [port], **probes(part), "lifecycle": lifecycle(part)}
    return container
