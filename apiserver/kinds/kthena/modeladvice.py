"""Warnings about a valid Model that is probably a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from apiserver.kinds.kthena.autoscalingpolicy_advice import policy_advice
from apiserver.kinds.kthena.autoscalingpolicybinding import MOST_TARGET_REPLICAS
from apiserver.kinds.kthena.modelbackend import DEFAULT_ROUTE_WEIGHT
from apiserver.kinds.kthena.modelconfigadvice import config_advice
from apiserver.kinds.kthena.modelroute import MOST_TARGETS
from apiserver.schema.json import Json

_LONGEST_LABEL: Final = 63


def model_advice(value: Json) -> list[str]:
    """Return warnings about a valid model, those on the whole model first."""
    spec = value["spec"]
    found = list(_whole(spec))
    if "autoscalingPolicy" in spec:
        found += policy_advice(spec["autoscalingPolicy"], ("spec", "autoscalingPolicy"))
    for position, backend in enumerate(spec["backends"]):
        where = f"spec.backends[{position}]"
        found += _names(where, backend, str(value.get("metadata", {}).get("name", "")))
        found += _sources(where, backend)
        found += _cost(where, backend, spec)
        found += _bounds(where, backend)
        found += _workers(where, backend)
        if "autoscalingPolicy" in backend:
            path = ("spec", "backends", position, "autoscalingPolicy")
            found += policy_advice(backend["autoscalingPolicy"], path)
    return found


def _whole(spec: Json) -> Iterator[str]:
    backends = spec["backends"]
    if all(backend.get("routeWeight") == 0 for backend in backends):
        yield "spec.backends: every routeWeight is 0, so no backend gets requests"
    weighed = [backend for backend in backends if backend.get("routeWeight", DEFAULT_ROUTE_WEIGHT)]
    if len(weighed) > MOST_TARGETS:
        yield (
            f"spec.backends: a ModelRoute routes requests to at most {MOST_TARGETS} of {len(weighed)}"
            " backends"
        )
    if weighed and (lost := sorted(_adapters(backends) - _adapters(weighed))):
        yield f"spec.backends: no requests for adapter {lost[0]:.40}: routeWeight is 0 where it is"


def _adapters(backends: Iterable[Json]) -> set[str]:
    return {adapter["name"] for backend in backends for adapter in backend.get("loraAdapters", [])}


def _names(where: str, backend: Json, model: str) -> Iterator[str]:
    """Check the longest pod name that Kthena's controller would create, which is also a label value."""
    tails = [
        f"-{worker.get('type', 'server')}-{_last(worker, 'replicas')}-{_last(worker, 'pods')}"
        for worker in backend["workers"]
    ]
    longest = len(f"{model}-{backend['name']}-{backend['maxReplicas'] - 1}") + max(map(len, tails))
    if longest > _LONGEST_LABEL:
        yield (
            f"{where}.name: Kthena's own controller derives pod names with {longest} characters from it;"
            f" at most {_LONGEST_LABEL} are allowed"
        )


def _last(worker: Json, name: str) -> int:
    return max(int(worker.get(name, 1)) - 1, 0)


def _sources(where: str, backend: Json) -> Iterator[str]:
    source, cache = backend["modelURI"], backend.get("cacheURI", "")
    sources = [source, *[adapter["artifactURL"] for adapter in backend.get("loraAdapters", ())]]
    if any(uri.startswith("s3://") for uri in sources) and not _may_set(backend, "ENDPOINT"):
        yield f"{where}.env: Kthena's own controller reads s3:// only with the variable ENDPOINT"
    if cache.startswith("hostpath://"):
        yield f"{where}.cacheURI: hostpath:// reads and writes the disk of every node that runs the model"
    if source.startswith("pvc://") and not cache.startswith("pvc://"):
        yield f"{where}.modelURI: Kthena's own controller mounts pvc:// only where cacheURI is one, too"


def _may_set(backend: Json, variable: str) -> bool:
    return bool(backend.get("envFrom")) or variable in {each["name"] for each in backend.get("env", ())}


def _cost(where: str, backend: Json, spec: Json) -> Iterator[str]:
    if "autoscalingPolicy" in spec and backend.get("scalingCost") == 0:
        yield f"{where}.scalingCost: 0 counts as free, so this backend is scaled first"


def _bounds(where: str, backend: Json) -> Iterator[str]:
    for position, worker in enumerate(backend["workers"]):
        if backend["maxReplicas"] * worker.get("replicas", 1) > MOST_TARGET_REPLICAS:
            here = f"{where}.workers[{position}].replicas"
            yield f"{here}: limited to {MOST_TARGET_REPLICAS} engines at maxReplicas"


def _workers(where: str, backend: Json) -> Iterator[str]:
    for position, worker in enumerate(backend["workers"]):
        here = f"{where}.workers[{position}]"
        if not worker.get("image"):
            yield f"{here}.image: not set, so there is nothing to run"
        if worker.get("replicas") == 0:
            yield f"{here}.replicas: 0, so the backend cannot serve"
        if worker.get("pods") == 0:
            yield f"{here}.pods: 0 counts as 1"
        if worker.get("resources", {}).get("claims"):
            yield f"{here}.resources.claims: pods of a model have no resource claims, so they are refused"
    yield from config_advice(where, backend["workers"])
