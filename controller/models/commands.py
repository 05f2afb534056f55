"""Command lines of engines, and what keeps their pods in order: probes, and the wait before they stop.

Sources: the command-line references of vLLM and SGLang; for engines that span nodes, their documentation of
LeaderWorkerSets, which sets the variables `LWS_*` in each pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.schema.json import Json, JsonValue
from controller.models.parts import SGLANG, VLLM, Part, engine_name
from controller.models.weights import Weights

_OURS: Final = frozenset({"model", "model-path"})
"""Arguments that the Model decides elsewhere."""

_RAY_PORT: Final = 6379
_RENDEZVOUS_PORT: Final = 5000
_DIVIDING: Final = frozenset(
    {
        "tensor-parallel-size",
        "pipeline-parallel-size",
        "data-parallel-size",
        "tp-size",
        "tp",
        "pp-size",
        "dp-size",
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
"""Waits until no request is in work: after some seconds, in which the endpoint vanishes from all routers."""

_WAIT_FOR_NODES: Final = """\
import os, time, ray
ray.init("auto", log_to_driver=False)
while sum(node["Alive"] for node in ray.nodes()) < int(os.environ["LWS_GROUP_SIZE"]):
    time.sleep(2)
"""

_SETTLE_SECONDS: Final = "5"
"""How long requests may still arrive after a pod began to stop."""

DRAIN_SECONDS: Final = 300
"""How long requests in work may take when a pod stops."""


def leader_command(part: Part, weights: Weights) -> list[str]:
    """Return the command of the pod that answers requests."""
    command = [*_PROGRAMS[part.engine], *_arguments(part, weights)]
    if part.pods == 1:
        return command
    if part.engine == SGLANG:
        return [*command, *_sglang_nodes()]
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
    """Return the probes of the engine. It may take an hour to load its weights."""
    health = {"httpGet": {"path": "/health", "port": part.port}, "timeoutSeconds": 5}
    return {
        "startupProbe": {**health, "periodSeconds": 5, "failureThreshold": 720},
        "readinessProbe": {**health, "periodSeconds": 5},
        "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 6},
    }


def lifecycle(part: Part) -> Json:
    """Return the wait before an engine stops."""
    url = f"http://127.0.0.1:{part.port}{part.metrics_path}"
    return {"preStop": {"exec": {"command": ["python3", "-c", _DRAIN, url, _SETTLE_SECONDS]}}}


def ignored_settings(part: Part) -> Iterator[str]:
    """Yield the members of a config that are decided elsewhere."""
    return (name for name in part.config if name.replace("_", "-") in _OURS)


def accelerators_per_pod(part: Part) -> int:
    """Return how many accelerators one pod asks for, as extended resources."""
    resources = part.worker.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    counts = [
        str(count)
        for name, count in asked.items()
        if "/" in name and any(word in name.rpartition("/")[2].lower() for word in _ACCELERATORS)
    ]
    return sum(int(text) for text in counts if text.isascii() and text.isdigit())


def _arguments(part: Part, weights: Weights) -> list[str]:
    name = engine_name(part.model, part.backend)
    config = {key.replace("_", "-"): value for key, value in part.config.items()}
    defaults: Json = {"served-model-name": name, "port": part.port, **_parallel(part, config)}
    if part.engine == SGLANG:
        defaults |= {"host": "0.0.0.0", "enable-metrics": ""}  # noqa: S104 (in a pod: others must reach it)
    if part.loads_adapters:
        defaults["enable-lora"] = ""
    elif weights.adapter_paths:
        listed: JsonValue = [f"{name}={path}" for name, path in sorted(weights.adapter_paths.items())]
        is_sglang = part.engine == SGLANG
        defaults |= {"lora-paths": listed} if is_sglang else {"enable-lora": "", "lora-modules": listed}
    asked = {key: value for key, value in config.items() if key not in _OURS}
    words = [_MODEL_FLAG[part.engine], weights.model_path]
    for key, value in sorted({**defaults, **asked}.items()):
        words += _words(f"--{key}", value, negates=part.engine == VLLM)
    return words


def _parallel(part: Part, config: Json) -> Json:
    """Return how an engine that spans nodes is divided, unless its config says so."""
    if part.pods == 1 or _DIVIDING & config.keys():
        return {}
    per_pod = accelerators_per_pod(part) or 1
    if part.engine == SGLANG:
        return {"tp-size": per_pod * part.pods}
    return {"tensor-parallel-size": per_pod, "pipeline-parallel-size": part.pods}


def _words(flag: str, value: JsonValue, *, negates: bool) -> list[str]:
    """Return one argument; an empty text and `true` are a flag without a value."""
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


def _sglang_nodes() -> list[str]:
    return [
        "--dist-init-addr",
        f"$(LWS_LEADER_ADDRESS):{_RENDEZVOUS_PORT}",
        "--nnodes",
        "$(LWS_GROUP_SIZE)",
        "--node-rank",
        "$(LWS_WORKER_INDEX)",
    ]


_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    VLLM: ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    SGLANG: ("python3", "-m", "sglang.launch_server"),
}
_MODEL_FLAG: Final = {VLLM: "--model", SGLANG: "--model-path"}
