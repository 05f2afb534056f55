"""Status of ModelServers, ModelRoutes and InferenceObjectives.

A ModelRoute's says whether its rules lead to serving pods; an InferenceObjective's names its pool, and the
models that the pool's pods serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.kinds.identity import seniority
from apiserver.kinds.inference.inferenceobjective import POOL_GROUP, POOL_KIND
from apiserver.kinds.kthena.modelroute import DEFAULT_WEIGHT
from apiserver.schema.json import Json
from controller.observe.objectives import POOL_GROUPS, pool_labels
from controller.observe.pods import target_of_pod
from controller.observe.targets import TargetKey
from controller.traffic.endpoints import (
    Endpoints,
    Finding,
    TrafficCondition,
    TrafficReason,
    TrafficStatus,
    acceptance,
    endpoints,
    selectors_of,
    selects,
    server_endpoints,
)


def server_status(server: Json, pods: Sequence[Json], *, is_unread: bool = False) -> TrafficStatus:
    """Return the status of a ModelServer; `pods` are those of its namespace.

    `is_unread` tells whether there is one of the same name in the group of Kthena's releases.
    """
    selected = server_endpoints(server, pods)
    return TrafficStatus(
        findings={
            TrafficCondition.ACCEPTED: acceptance(server, is_unread=is_unread),
            TrafficCondition.RESOLVED_REFS: selected.resolved,
            TrafficCondition.READY: selected.readiness,
        },
        members=selected.counts,
    )


def route_status(
    route: Json,
    *,
    servers: Mapping[str, Json],
    pods: Sequence[Json],
    routes: Sequence[Json],
    is_unread: bool = False,
) -> TrafficStatus:
    """Return the status of a ModelRoute.

    `servers` are the ModelServers of its namespace and group by name, `routes` the ModelRoutes, and `pods`
    those of its namespace. `is_unread` tells whether there is one of the same name in the group of Kthena's
    releases.
    """
    by_server = {name: server_endpoints(servers[name], pods) for name in targets_of(route) if name in servers}
    ready = frozenset[str]().union(*(item.ready for item in by_server.values()))
    return TrafficStatus(
        findings={
            TrafficCondition.ACCEPTED: _acceptance(route, routes, is_unread=is_unread),
            TrafficCondition.RESOLVED_REFS: _resolution(route, servers),
            TrafficCondition.READY: _readiness(route, by_server),
        },
        members={
            "readyEndpoints": len(ready),
            "targets": [_target(name, by_server.get(name)) for name in targets_of(route)],
        },
    )


def targets_of(route: Json) -> tuple[str, ...]:
    """Return the names of a route's ModelServers, without duplicates."""
    return tuple(dict.fromkeys(str(target["modelServerName"]) for _, _, target in _targets(route)))


def names_of(route: Json) -> frozenset[str]:
    """Return the model and adapter names of requests that a route serves."""
    spec = route.get("spec") or {}
    return frozenset({spec.get("modelName"), *(spec.get("loraAdapters") or ())} - {None, ""})


def _targets(route: Json) -> Iterator[tuple[int, int, Json]]:
    for position, rule in enumerate((route.get("spec") or {}).get("rules") or []):
        for rank, target in enumerate(rule.get("targetModels") or []):
            if target.get("modelServerName"):  # definitions of other projects may not require it
                yield position, rank, target


def _acceptance(route: Json, routes: Sequence[Json], *, is_unread: bool) -> Finding:
    finding = acceptance(route, is_unread=is_unread)
    names, age = names_of(route), seniority(route)
    older = (item for item in routes if seniority(item) < age and not names.isdisjoint(names_of(item)))
    if finding[0] and (other := min(older, key=seniority, default=None)):
        text = (
            f"requests for {min(names & names_of(other))!r} may be routed by the older ModelRoute"
            f" {other['metadata']['name']!r}: change the name of one of the two"
        )
        return False, TrafficReason.NAME_TAKEN, text
    return finding


def _resolution(route: Json, servers: Mapping[str, Json]) -> Finding:
    missing: dict[str, str] = {}
    for position, rank, target in _targets(route):
        name = str(target["modelServerName"])
        if name not in servers:
            path = f"spec.rules[{position}].targetModels[{rank}].modelServerName"
            missing.setdefault(name, f"{path}: ModelServer {name!r} does not exist in this namespace")
    if missing:
        return False, TrafficReason.BACKEND_NOT_FOUND, "; ".join(missing.values())
    return True, TrafficReason.RESOLVED, "all ModelServers exist"


def _readiness(route: Json, by_server: Mapping[str, Endpoints]) -> Finding:
    """Return whether the requests of every rule find a ready endpoint."""
    rules = (route.get("spec") or {}).get("rules") or []
    failing = [
        text for position, rule in enumerate(rules) if (text := _why_failing(position, rule, by_server))
    ]
    targets = [target for rule in rules for target in rule.get("targetModels") or []]
    ready = any(_is_ready(by_server.get(name)) for name in targets_of(route)) or any(map(_provider, targets))
    if not ready:
        text = "; ".join(failing) or "spec.rules: empty: every request is answered with 404"
        return False, TrafficReason.NO_ENDPOINTS, text
    if failing:
        return False, TrafficReason.TARGETS_NOT_READY, "; ".join(failing)
    return True, TrafficReason.ENDPOINTS_READY, "every target of every rule has ready endpoints"


def _why_failing(position: int, rule: Json, by_server: Mapping[str, Endpoints]) -> str:
    """Return the share of a rule's requests that find no endpoint, or an empty string."""
    weights: dict[str, int] = {}
    for target in rule.get("targetModels") or []:
        name = str(target.get("modelServerName") or _provider(target) or "a target without modelServerName")
        weights[name] = weights.get(name, 0) + int(target.get("weight", DEFAULT_WEIGHT))
    whole = sum(weights.values())
    providers = frozenset(map(_provider, rule.get("targetModels") or []))
    failing = [
        name
        for name, weight in weights.items()
        if weight and name not in providers and not _is_ready(by_server.get(name))
    ]
    if not failing or not whole:
        return ""
    share = round(100 * sum(weights[name] for name in failing) / whole)
    reasons = "; ".join(f"{name}: {_why_none(by_server.get(name))}" for name in failing)
    return f"spec.rules[{position}]: {share} % of requests find no endpoint: {reasons}"


def _provider(target: Json) -> str:
    """Return a name for a provider that is a target; empty for a ModelServer. Its state is not known here."""
    name = target.get("externalModelProviderName")
    return f"externalModelProvider/{name}" if name else ""


def _target(name: str, selected: Endpoints | None) -> Json:
    target_json: Json = {
        "modelServerName": name,
        "readyEndpoints": 0 if selected is None else len(selected.ready),
    }
    return target_json if _is_ready(selected) else {**target_json, "message": _why_none(selected)}


def _is_ready(selected: Endpoints | None) -> bool:
    return selected is not None and selected.readiness[0] is True


def _why_none(selected: Endpoints | None) -> str:
    return "the ModelServer does not exist" if selected is None else selected.readiness[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolWorld:
    """Related objects in the namespace of an objective."""

    pools: Mapping[str, Mapping[str, Json]]
    """InferencePools by group and name, without groups that are not served."""

    pods: Sequence[Json] = ()
    servers: Sequence[Json] = ()
    """ModelServers."""

    models: Mapping[TargetKey, str] = field(default_factory=dict)
    """The models of scale targets, according to VariantAutoscalings."""


def objective_status(objective: Json, world: PoolWorld) -> TrafficStatus:
    """Return the status of an InferenceObjective."""
    pool = _pool((objective.get("spec") or {}).get("poolRef"), world)
    if isinstance(pool, dict):
        selected = endpoints(pool_labels(pool), world.pods)
        text = f"InferencePool {pool['metadata']['name']!r}: {selected.resolved[2]}{_models(selected, world)}"
        resolved: Finding = (True, TrafficReason.RESOLVED, text)
        ready = selected.readiness
    else:
        resolved = ready = pool
    return TrafficStatus(
        findings={
            TrafficCondition.ACCEPTED: acceptance(objective),
            TrafficCondition.RESOLVED_REFS: resolved,
            TrafficCondition.READY: ready,
        }
    )


def _pool(reference: Json | None, world: PoolWorld) -> Json | Finding:
    """Return the referenced pool, or the finding that there is none."""
    if reference is None:
        return False, TrafficReason.POOL_NOT_FOUND, "spec: not set: the objective names no pool"
    group, kind = reference.get("group", POOL_GROUP), reference.get("kind", POOL_KIND)
    name = str(reference.get("name", ""))
    if kind != POOL_KIND or group not in POOL_GROUPS:
        text = f"spec.poolRef: {kind}.{group or 'core'} is not a pool; specify an {POOL_KIND} of {POOL_GROUP}"
        return False, TrafficReason.INVALID_KIND, text
    if group not in world.pools:
        text = (
            f"{POOL_KIND}s of {group} are not served by this cluster: install that definition, or change"
            " poolRef.group"
        )
        return False, TrafficReason.POOLS_NOT_SERVED, text
    existing = world.pools[group].get(name)
    if existing is not None:
        return existing
    elsewhere = next((other for other in POOL_GROUPS if name in world.pools.get(other, {})), "")
    hint = f"; there is one of that name in {elsewhere}: set poolRef.group" if elsewhere else ""
    text = f"{POOL_KIND} {name!r} of {group} does not exist in this namespace{hint}"
    return False, TrafficReason.POOL_NOT_FOUND, text


def _models(selected: Endpoints, world: PoolWorld) -> str:
    """Return the text about the models that a pool's pods serve, as far as declared."""
    if not selected.pods:
        return ""
    targets = {target_of_pod(pod) for pod in selected.pods}
    models = {world.models[target] for target in targets if target is not None and target in world.models}
    models |= {
        model
        for server in world.servers
        if (model := (server.get("spec") or {}).get("model"))
        and any(selects(labels, pod) for labels in selectors_of(server).values() for pod in selected.pods)
    }
    if not models:
        return "; no VariantAutoscaling or ModelServer specifies which model they serve"
    return f"; they serve {', '.join(map(repr, sorted(models)))}"
