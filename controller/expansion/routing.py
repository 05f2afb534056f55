"""Routing of requests to a Model: a ModelServer for each backend, and a ModelRoute for the model's name.

A ModelRoute has at most ten adapters; further adapters get additional ModelRoutes. A rule has at most 16
backends, and at least one with a weight, because the whole ModelRoute would be rejected otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from apiserver.kinds.annotations import ROUTE_ORDERS
from apiserver.kinds.kthena.groups import NETWORKING, SERVING
from apiserver.kinds.kthena.modelbackend import DEFAULT_ROUTE_WEIGHT
from apiserver.kinds.kthena.modelroute import MOST_ADAPTERS, MOST_TARGETS
from apiserver.kinds.kthena.models import transfer_of
from apiserver.schema.json import Json
from controller.expansion.parts import (
    BACKEND_LABEL,
    ENGINES,
    GROUP_LABEL,
    MODEL_LABEL,
    ROLE_LABEL,
    Part,
    backend_name,
    engine_name,
    served_name,
)
from controller.expansion.workloads import answering_labels, metadata

AUTO: Final = "auto"
"""The setting that leaves the choice of the routing group to `routing_group`."""

_CONNECTORS: Final = {
    "MooncakeConnectorV1": "mooncake",
    "MooncakeConnector": "mooncake",
    "LMCacheConnectorV1": "lmcache",
    "LMCacheConnector": "lmcache",
    "NixlConnector": "nixl",
}
"""Transfer mechanisms of the KV cache, by vLLM's names."""


def routing_group(setting: str, served: Collection[str]) -> str:
    """Return the API group in which ModelServers and ModelRoutes are written.

    `served` are those that the cluster serves and the controller may read. If nothing is set, the group of
    Kthena's releases comes first, because their router reads no other.
    """
    if setting != AUTO:
        return setting
    return SERVING if SERVING in served else NETWORKING


def model_server(parts: Sequence[Part], group: str) -> Json:
    """Return the ModelServer of the parts of one backend. It selects only pods of this backend."""
    first = parts[0]
    spec: Json = {
        "model": engine_name(first.model, first.backend),
        "inferenceEngine": ENGINES[first.backend["type"]],
        "workloadSelector": _selector(parts),
        "workloadPort": {"port": first.port, "protocol": "http"},
    }
    if first.is_disaggregated:
        spec["kvConnector"] = {"type": _connector(parts)}
    name = backend_name(first.model, first.backend)
    labels = {label: first.labels[label] for label in (MODEL_LABEL, BACKEND_LABEL)}
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ModelServer",
        "metadata": metadata(first.model, name, {**labels, **first.engine_labels}),
        "spec": spec,
    }


def model_routes(
    model: Json, backends: Sequence[Json], group: str, resting: Collection[str] = frozenset()
) -> Iterator[Json]:
    """Yield the ModelRoutes to those backends that can be created: one, unless there are many adapters.

    There is none if no backend gets requests. `resting` backends have no endpoints.
    """
    if not any(map(weight_of, backends)):
        return
    without = {backend_name(model, {"name": name}) for name in resting}
    having = _backends_by_adapter(backends)
    weighed = frozenset[str]().union(*(_adapters_of(item) for item in backends if weight_of(item)))
    adapters = [name for name in having if name in weighed]
    chunks = [adapters[start : start + MOST_ADAPTERS] for start in range(0, len(adapters), MOST_ADAPTERS)]
    for position, chunk in enumerate(chunks or [[]]):
        suffix = f"-adapters-{position + 1}" if position else ""
        rules = _rules(model, backends, {name: having[name] for name in chunk}, has_model=not position)
        spec: Json = {"rules": [with_endpoints(rule, without) for rule in rules]}
        if not position:
            spec["modelName"] = served_name(model)
        if chunk:
            spec["loraAdapters"] = chunk
        name = str(model["metadata"]["name"])
        own_metadata = metadata(model, f"{name}{suffix}", {MODEL_LABEL: name})
        own = model["metadata"].get("annotations") or {}
        if orders := {key: own[key] for key in ROUTE_ORDERS if key in own}:
            own_metadata["annotations"] = {**own_metadata.get("annotations", {}), **orders}
        yield {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "ModelRoute",
            "metadata": own_metadata,
            "spec": spec,
        }


def with_endpoints(rule: Json, without: Collection[str]) -> Json:
    """Return a rule whose weights are on servers with endpoints, unless none of its servers has any.

    `without` are the names of ModelServers that have none. A share of requests with no endpoint would fail.
    """
    targets = rule["targetModels"]
    if not any(item["weight"] for item in targets if item["modelServerName"] not in without):
        return rule
    weighed = [item | {"weight": 0} if item["modelServerName"] in without else item for item in targets]
    return rule | {"targetModels": weighed}


def backends_without_requests(backends: Sequence[Json]) -> Iterator[tuple[Json, str]]:
    """Yield what unexpectedly gets no requests: pairs of a backend and one of its adapters or ""."""
    targets = [backend["name"] for backend in _targets(backends)]
    weighed = frozenset[str]().union(*(_adapters_of(item) for item in backends if weight_of(item)))
    for backend in backends:
        if weight_of(backend) and backend["name"] not in targets:
            yield backend, ""
        yield from ((backend, name) for name in sorted(_adapters_of(backend) - weighed))


def _rules(
    model: Json, backends: Sequence[Json], having: Mapping[str, Sequence[Json]], *, has_model: bool
) -> list[Json]:
    """Return one rule if every backend has all adapters, else one rule for each name.

    `having` are the backends of each adapter.
    """
    if all(len(some) == len(backends) for some in having.values()):
        return [_rule(model, "default", "", backends)]
    rules = [_rule(model, "default", served_name(model), backends)] if has_model else []
    return rules + [_rule(model, adapter, adapter, some) for adapter, some in having.items()]


def _rule(model: Json, name: str, requested: str, backends: Sequence[Json]) -> Json:
    match: Json = dict(model["spec"].get("modelMatch") or {})
    if requested:
        match["body"] = {"model": requested}
    targets = [
        {"modelServerName": backend_name(model, backend), "weight": weight_of(backend)}
        for backend in _targets(backends)
    ]
    return {"name": name, "targetModels": targets} | ({"modelMatch": match} if match else {})


def _targets(backends: Sequence[Json]) -> Sequence[Json]:
    """Return the targets of a rule; if there are too many backends, the first ones with a weight."""
    if len(backends) <= MOST_TARGETS:
        return backends
    return [*filter(weight_of, backends)][:MOST_TARGETS]


def weight_of(backend: Json) -> int:
    """Return the weight of a backend in routing; 0 for no requests."""
    return int(backend.get("routeWeight", DEFAULT_ROUTE_WEIGHT))


def _backends_by_adapter(backends: Sequence[Json]) -> Mapping[str, Sequence[Json]]:
    """Return the backends of each adapter, by name in alphabetical order."""
    backends_of: dict[str, list[Json]] = {}
    for backend in backends:
        for name in _adapters_of(backend):
            backends_of.setdefault(name, []).append(backend)
    return dict(sorted(backends_of.items()))


def _adapters_of(backend: Json) -> frozenset[str]:
    return frozenset(item["name"] for item in backend.get("loraAdapters", []))


def _selector(parts: Sequence[Part]) -> Json:
    labels = [answering_labels(part) for part in parts]
    shared = dict(set(labels[0].items()).intersection(*(set(item.items()) for item in labels)))
    if not parts[0].is_disaggregated:
        return {"matchLabels": dict(sorted(shared.items()))}
    roles: Mapping[str, Mapping[str, str]] = {
        part.role: {name: text for name, text in own.items() if shared.get(name) != text}
        for part, own in zip(parts, labels, strict=True)
    }
    return {
        "matchLabels": {name: text for name, text in sorted(shared.items()) if name != ROLE_LABEL},
        "pdGroup": {
            "groupKey": GROUP_LABEL,
            "prefillLabels": dict(roles["prefill"]),
            "decodeLabels": dict(roles["decode"]),
        },
    }


def _connector(parts: Sequence[Part]) -> str:
    for part in parts:
        transfer = transfer_of(part.setting("kv-transfer-config"))
        if isinstance(transfer, dict) and (known := _CONNECTORS.get(str(transfer.get("kv_connector")))):
            return known
    return "http"
