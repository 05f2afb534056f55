"""Status of a ModelRoute: whether its rules lead to serving pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apiserver.kinds.identity import seniority
from apiserver.kinds.kthena.modelroute import DEFAULT_WEIGHT
from apiserver.schema.json import Json
from controller.traffic.conditions import Finding, Found, TrafficCondition, TrafficReason, acceptance
from controller.traffic.endpoints import Endpoints, server_endpoints


def route_found(
    route: Json, *, servers: Mapping[str, Json], pods: Sequence[Json], routes: Sequence[Json]
) -> Found:
    """Return the status of a ModelRoute.

    `servers` are the ModelServers of its namespace by name, `pods` and `routes` those of its namespace.
    """
    found = {name: server_endpoints(servers[name], pods) for name in targets_of(route) if name in servers}
    ready = frozenset[str]().union(*(item.ready for item in found.values()))
    return Found(
        findings={
            TrafficCondition.ACCEPTED: _acceptance(route, routes),
            TrafficCondition.RESOLVED_REFS: _resolution(route, servers),
            TrafficCondition.READY: _readiness(route, found),
        },
        members={
            "readyEndpoints": len(ready),
            "targets": [_target(name, found.get(name)) for name in targets_of(route)],
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


def _acceptance(route: Json, routes: Sequence[Json]) -> Finding:
    finding = acceptance(route)
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


def _readiness(route: Json, found: Mapping[str, Endpoints]) -> Finding:
    """Return whether the requests of every rule find a ready endpoint."""
    rules = (route.get("spec") or {}).get("rules") or []
    failing = [text for position, rule in enumerate(rules) if (text := _why_failing(position, rule, found))]
    ready = any(_is_ready(found.get(name)) for name in targets_of(route))
    if not ready:
        text = "; ".join(failing) or "spec.rules: empty: every request is answered with 404"
        return False, TrafficReason.NO_ENDPOINTS, text
    if failing:
        return False, TrafficReason.TARGETS_NOT_READY, "; ".join(failing)
    return True, TrafficReason.ENDPOINTS_READY, "every target of every rule has ready endpoints"


def _why_failing(position: int, rule: Json, found: Mapping[str, Endpoints]) -> str:
    """Return the share of a rule's requests that find no endpoint, or an empty string."""
    weights: dict[str, int] = {}
    for target in rule.get("targetModels") or []:
        name = str(target.get("modelServerName") or "a target without modelServerName")
        weights[name] = weights.get(name, 0) + int(target.get("weight", DEFAULT_WEIGHT))
    whole = sum(weights.values())
    failing = [name for name, weight in weights.items() if weight and not _is_ready(found.get(name))]
    if not failing or not whole:
        return ""
    share = round(100 * sum(weights[name] for name in failing) / whole)
    reasons = "; ".join(f"{name}: {_why_none(found.get(name))}" for name in failing)
    return f"spec.rules[{position}]: {share} % of requests find no endpoint: {reasons}"


def _target(name: str, found: Endpoints | None) -> Json:
    said: Json = {"modelServerName": name, "readyEndpoints": 0 if found is None else len(found.ready)}
    return said if _is_ready(found) else {**said, "message": _why_none(found)}


def _is_ready(found: Endpoints | None) -> bool:
    return found is not None and found.readiness[0] is True


def _why_none(found: Endpoints | None) -> str:
    return "the ModelServer does not exist" if found is None else found.readiness[2]
