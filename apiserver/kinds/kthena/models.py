"""The kind Model: names, printer columns, object defaults, and warnings about probable mistakes.

Defaults that depend on other fields are filled in by the webhook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from apiserver.kinds.kthena.autoscalingpolicy import behavior_fill, policy_advice
from apiserver.kinds.kthena.autoscalingpolicybinding import MOST_TARGET_REPLICAS
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.kinds.kthena.model import Model
from apiserver.kinds.kthena.modelroute import MOST_TARGETS
from apiserver.kinds.meta import AGE, READY, condition
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Column, ComputedDefault, Kind, Version

# The config has no schema, since engines differ and gain settings with every release. So there are only
# warnings about settings with an unambiguous meaning: the port, and the transfer of the KV cache.
_ROLES: Final = {"prefill": ("kv_producer", "kv_both"), "decode": ("kv_consumer", "kv_both")}
_DASHED: Final = "kv-transfer-config"
_UNDERSCORED: Final = "kv_transfer_config"
_HIGHEST_PORT: Final = 65535


def config_advice(where: str, workers: list[Json]) -> Iterator[str]:
    """Yield warnings about the worker configs of one backend, whose path is `where`."""
    ports: set[int] = set()
    connectors: set[str] = set()
    for position, worker in enumerate(workers):
        config = worker.get("config")
        if config is None:
            continue
        if not isinstance(config, dict):
            here = f"{where}.workers[{position}].config"
            yield f"{here}: not an object with the arguments of the engine, so it has no effect"
            continue
        if config.get("port") is not None and (wrong := _port(config["port"], ports)):
            yield f"{where}.workers[{position}].config.port: {wrong}"
        if _DASHED not in config and _UNDERSCORED not in config:
            continue
        name = _DASHED if _DASHED in config else _UNDERSCORED
        if wrong := _transfer(config[name], str(worker.get("type")), connectors):
            yield f"{where}.workers[{position}].config.{name}: {wrong}"
    if len(ports) > 1:
        yield f"{where}.workers: engines listen on different ports: {', '.join(map(str, sorted(ports)))}"
    if len(connectors) > 1:
        yield f"{where}.workers: kv_connector differs: {', '.join(sorted(connectors))[:60]}"


def _port(port: JsonValue, ports: set[int]) -> str:
    """Return why a port is wrong; add a valid one to the others."""
    if isinstance(port, bool) or not str(port).isascii() or not str(port).isdigit():
        return "not a number"
    if not 1 <= int(str(port)[:6]) <= _HIGHEST_PORT:
        return f"not between 1 and {_HIGHEST_PORT}"
    ports.add(int(port))
    return ""


def _transfer(value: JsonValue, worker_type: str, connectors: set[str]) -> str:
    """Return why a transfer is wrong; add its connector to the others."""
    transfer = transfer_of(value)
    if not isinstance(transfer, dict) or not isinstance(transfer.get("kv_connector"), str):
        return "not a JSON object with a kv_connector"
    connectors.add(transfer["kv_connector"])
    allowed = _ROLES.get(worker_type)
    if allowed and transfer.get("kv_role") not in allowed:
        return f"kv_role of a {worker_type} worker is {' or '.join(allowed)}"
    return ""


def transfer_of(value: JsonValue) -> JsonValue:
    """Return the KV transfer config, given as an object or as JSON text; None if the text is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None


GRACE_PERIOD: Final = "30s"
"""The default idle time before the last replica is removed, if a policy of the model scales the backends."""

EXPANSION_RATE_PERCENT: Final = 200
"""The default expansion rate in percent, if a policy of the model scales the backends."""


def model_fill(value: Json) -> list[ComputedDefault]:
    """Return the defaults that a policy of the model implies, and the scaling behavior of every policy."""
    spec = value.get("spec", {})
    backends = spec.get("backends", ())
    filled: list[ComputedDefault] = []
    if "autoscalingPolicy" in spec:
        filled += _with_policy(spec, backends)
        filled += behavior_fill(spec["autoscalingPolicy"], ("spec", "autoscalingPolicy"))
    for position, backend in enumerate(backends):
        if "autoscalingPolicy" in backend:
            where = ("spec", "backends", position, "autoscalingPolicy")
            filled += behavior_fill(backend["autoscalingPolicy"], where)
    return filled


def _with_policy(spec: Json, backends: list[Json]) -> Iterator[ComputedDefault]:
    for position, backend in enumerate(backends):
        if "scaleToZeroGracePeriod" not in backend:
            yield ComputedDefault(
                path=("spec", "backends", position, "scaleToZeroGracePeriod"),
                value=GRACE_PERIOD,
                warning=f"spec.backends[{position}].scaleToZeroGracePeriod: filled in with {GRACE_PERIOD}",
            )
    if "costExpansionRatePercent" not in spec:
        yield ComputedDefault(
            path=("spec", "costExpansionRatePercent"),
            value=EXPANSION_RATE_PERCENT,
            warning=f"spec.costExpansionRatePercent: filled in with {EXPANSION_RATE_PERCENT}",
        )


_LONGEST_LABEL: Final = 63
_LONGEST_ENDING: Final = len("--999999-coordinator-999999-999999")
"""The maximum number of characters that pod names have in addition to the names of model and backend."""


def model_advice(value: Json) -> list[str]:
    """Return warnings about a valid model, those on the whole model first."""
    spec = value["spec"]
    model = str(value.get("metadata", {}).get("name", ""))
    warnings, is_costed = list(_whole(spec["backends"])), "autoscalingPolicy" in spec
    if is_costed:
        warnings += policy_advice(spec["autoscalingPolicy"], ("spec", "autoscalingPolicy"))
    for position, backend in enumerate(spec["backends"]):
        where = f"spec.backends[{position}]"
        warnings += _backend(where, backend, model, is_costed=is_costed)
        warnings += _workers(where, backend)
        if "autoscalingPolicy" in backend:
            path = ("spec", "backends", position, "autoscalingPolicy")
            warnings += policy_advice(backend["autoscalingPolicy"], path)
    return warnings


def _whole(backends: list[Json]) -> Iterator[str]:
    weighed = [backend for backend in backends if backend.get("routeWeight") != 0]
    if not weighed:
        yield "spec.backends: every routeWeight is 0, so no backend gets requests"
    elif len(weighed) > MOST_TARGETS:
        yield (
            f"spec.backends: a ModelRoute routes requests to at most {MOST_TARGETS} of {len(weighed)}"
            " backends"
        )
    if 0 < len(weighed) < len(backends) and (lost := sorted(_adapters(backends) - _adapters(weighed))):
        yield f"spec.backends: no requests for adapter {lost[0]:.40}: routeWeight is 0 where it is"


def _adapters(backends: Iterable[Json]) -> set[str]:
    return {adapter["name"] for backend in backends for adapter in backend.get("loraAdapters", [])}


def _backend(where: str, backend: Json, model: str, *, is_costed: bool) -> Iterator[str]:
    is_short = len(model) + len(backend["name"]) + _LONGEST_ENDING <= _LONGEST_LABEL
    if not is_short and (longest := _longest_pod_name(model, backend)) > _LONGEST_LABEL:
        yield (
            f"{where}.name: Kthena's own controller derives pod names with {longest} characters from it;"
            f" at most {_LONGEST_LABEL} are allowed"
        )
    source, cache = backend["modelURI"], backend.get("cacheURI", "")
    if (source.startswith("s3://") or _has_adapter_in_bucket(backend)) and not _may_set(backend, "ENDPOINT"):
        yield f"{where}.env: Kthena's own controller reads s3:// only with the variable ENDPOINT"
    if cache.startswith("hostpath://"):
        yield f"{where}.cacheURI: hostpath:// reads and writes the disk of every node that runs the model"
    if source.startswith("pvc://") and not cache.startswith("pvc://"):
        yield f"{where}.modelURI: Kthena's own controller mounts pvc:// only where cacheURI is one, too"
    if is_costed and backend.get("scalingCost") == 0:
        yield f"{where}.scalingCost: 0 counts as free, so this backend is scaled first"


def _longest_pod_name(model: str, backend: Json) -> int:
    """Return the length of the longest pod name that Kthena's controller would create.

    The name is also a label value.
    """
    tails = [
        f"-{worker.get('type', 'server')}-{(int(worker.get('replicas', 1)) or 1) - 1}"
        f"-{(int(worker.get('pods', 1)) or 1) - 1}"
        for worker in backend["workers"]
    ]
    return len(f"{model}-{backend['name']}-{int(backend['maxReplicas']) - 1}") + max(map(len, tails))


def _has_adapter_in_bucket(backend: Json) -> bool:
    return any(adapter["artifactURL"].startswith("s3://") for adapter in backend.get("loraAdapters", ()))


def _may_set(backend: Json, variable: str) -> bool:
    return bool(backend.get("envFrom")) or variable in [each["name"] for each in backend.get("env", ())]


def _workers(where: str, backend: Json) -> list[str]:
    """Return warnings about the workers of a backend, those on the number of engines first."""
    limited: list[str] = []
    further: list[str] = []
    workers, most = backend["workers"], backend["maxReplicas"]
    for position, worker in enumerate(workers):
        replicas = worker.get("replicas", 1)
        if most * replicas > MOST_TARGET_REPLICAS:
            here = f"{where}.workers[{position}].replicas"
            limited.append(f"{here}: limited to {MOST_TARGET_REPLICAS} engines at maxReplicas")
        if not worker.get("image"):
            further.append(f"{where}.workers[{position}].image: not set, so there is nothing to run")
        if replicas == 0:
            further.append(f"{where}.workers[{position}].replicas: 0, so the backend cannot serve")
        if worker.get("pods") == 0:
            further.append(f"{where}.workers[{position}].pods: 0 counts as 1")
        if "resources" in worker and worker["resources"].get("claims"):
            here = f"{where}.workers[{position}].resources.claims"
            further.append(f"{here}: pods of a model have no resource claims, so they are refused")
    return [*limited, *further, *config_advice(where, workers)]


MODEL: Final = Kind(
    group=REGISTRY,
    kind="Model",
    plural="models",
    short_names=("mdl",),
    categories=("stowplan",),
    versions=(
        Version(
            name="v1alpha1",
            declaration=Model,
            is_storage=True,
            columns=(
                Column("Engine", "string", ".spec.backends[0].type", "Engine of the first backend."),
                Column(
                    "Source",
                    "string",
                    ".spec.backends[0].modelURI",
                    "Source of the model of the first backend.",
                ),
                Column("Replicas", "integer", ".status.replicas", "Current replicas of all backends."),
                *READY,
                AGE,
                Column("Owner", "string", ".spec.owner", "Owner of the model.", priority=1),
                condition(
                    "Ready", "Message", member="message", description="Reason, in one sentence.", priority=1
                ),
            ),
            fill=(model_fill,),
            advise=(model_advice,),
        ),
    ),
)
