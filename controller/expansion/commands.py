"""Command lines of engines, and their probes and shutdown hook.

Sources: the command-line references of vLLM and SGLang; for engines that span nodes, their documentation
about LeaderWorkerSets, which set the variables `LWS_*` in each pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.schema.json import Json, JsonValue
from controller.expansion.parts import SGLANG, VLLM, Part, engine_name
from controller.expansion.weights import Weights

_OURS: Final = frozenset({"model", "model-path"})
"""Arguments that are set from other fields of the Model."""

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
        defaults |= {"host": "0.0.0.0", "enable-metrics": ""}  # noqa: S104 (other pods connect to it)
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
