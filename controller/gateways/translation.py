"""The translation of a ModelRoute into objects for Gateways, with notes about its limits: a pure function.

Equal routes and servers give equal objects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.schema.json import Json
from controller.expansion.parts import Note, owned_metadata
from controller.expansion.routing import with_endpoints
from controller.gateways.inputs import API_VERSIONS, HTTP_ROUTES, InstalledDefinitions
from controller.gateways.matching import (
    MODEL_HEADER,
    MOST_MATCHES,
    MOST_MATCHES_IN_ROUTE,
    Comparison,
    Match,
    Text,
    can_be_header,
    in_order,
    match_of,
    match_without_model,
)
from controller.gateways.parts import (
    backend_references,
    numbered_name,
    objectives,
    pool_of,
    rewrites,
    traffic_fields,
)

_RULE_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """The objects for a ModelRoute."""

    pools: Mapping[str, Json]
    """Pools of the ModelServers that it targets, by name, without those that cannot be made."""

    objects: tuple[Json, ...]
    """Objects owned by the route alone."""

    notes: tuple[Note, ...]
    """What Gateways cannot express, or what prevents the translation of a part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """A rule that is translated at least in part."""

    position: int
    body: Json
    """The HTTPRoute's rule, without its matches."""

    match: Match
    model: str
    """The model that its requests name; empty for all names of the route."""


def translate(
    route: Json,
    servers: Mapping[str, Json],
    parents: Sequence[Json],
    installed: InstalledDefinitions,
    without: Collection[str] = frozenset(),
) -> Translation:
    """Return the translation of a valid ModelRoute with its defaults for some Gateways.

    `servers` are the valid ModelServers of its namespace with their defaults, by name; `parents` are
    references to the Gateways. Pools of the servers `without` endpoints get no weight while others of the
    rule have some.
    """
    notes: list[Note] = [*_unreachable(route["spec"])]
    rules_to_servers = map(_to_servers, route["spec"]["rules"])
    spec = route["spec"] | {"rules": [with_endpoints(rule, without) for rule in rules_to_servers]}
    targets = dict.fromkeys(
        target["modelServerName"] for rule in spec["rules"] for target in rule["targetModels"]
    )
    there = {name: servers[name] for name in targets if name in servers}
    if "rateLimit" in spec:
        notes.append(Note(path="spec.rateLimit", text="a Gateway does not count tokens: nothing is limited"))
    notes += _missing_servers(spec, servers)
    pools: dict[str, Json] = {}
    for name, server in there.items():
        pool, lost = pool_of(server)
        notes += [replace(note, path=f"ModelServer {name}: {note.path}") for note in lost]
        if pool is not None:
            pools[name] = pool
    rules, lost = _rules(spec, there, installed)
    notes += lost
    routes, lost = _http_routes(route, rules, parents)
    notes += lost
    prioritised, lost = objectives(route, [*there], installed)
    notes += lost
    renamed, lost = rewrites(route, there, installed)
    notes += lost
    own = (*prioritised, *renamed, *routes)
    return Translation(pools=pools, objects=own, notes=tuple(dict.fromkeys(notes)))


def _to_servers(rule: Json) -> Json:
    """Return a rule without targets that are no ModelServers."""
    targets = [target for target in rule["targetModels"] if "modelServerName" in target]
    return rule | {"targetModels": targets}


def _unreachable(spec: Json) -> Iterator[Note]:
    for position, rule in enumerate(spec["rules"]):
        servers = _to_servers(rule)["targetModels"]
        if len(servers) < len(rule["targetModels"]):
            is_served = any(target["weight"] for target in servers)
            yield Note(
                path=f"spec.rules[{position}].targetModels",
                text="a Gateway sends no requests to an external provider: "
                + ("the ModelServers of the rule get them" if is_served else "all requests of the rule fail"),
            )


def _missing_servers(spec: Json, servers: Mapping[str, Json]) -> Iterator[Note]:
    reported = set()
    for position, rule in enumerate(spec["rules"]):
        for rank, target in enumerate(rule["targetModels"]):
            name = target["modelServerName"]
            if name not in servers and name not in reported:
                reported.add(name)
                path = f"spec.rules[{position}].targetModels[{rank}].modelServerName"
                yield Note(
                    path=path, text=f"there is no valid ModelServer {name}: its requests fail until there is"
                )


def _rules(
    spec: Json, servers: Mapping[str, Json], installed: InstalledDefinitions
) -> tuple[list[_Rule], list[Note]]:
    """Return the rules that can be expressed, with notes about the others."""
    rules: list[_Rule] = []
    notes: list[Note] = []
    names: set[str] = set()
    for position, rule in enumerate(spec["rules"]):
        path = f"spec.rules[{position}]"
        conditions = rule.get("modelMatch") or {}
        match, lost = match_of(conditions, f"{path}.modelMatch")
        notes += lost
        if match is None:
            continue
        body, lost = traffic_fields(rule, servers, installed.rule_fields, path)
        notes += lost
        name = rule.get("name", "")
        if name and (not _RULE_NAME.match(name) or name in names or "name" not in installed.rule_fields):
            notes.append(
                Note(path=f"{path}.name", text="the rule of the HTTPRoute has no name: it takes others")
            )
            name = ""
        names.add(name)
        body = ({"name": name} if name else {}) | {"backendRefs": backend_references(rule)} | body
        model = (conditions.get("body") or {}).get("model", "")
        rules.append(_Rule(position=position, body=body, match=match, model=model))
    return rules, notes


def _http_routes(
    route: Json, rules: Sequence[_Rule], parents: Sequence[Json]
) -> tuple[list[Json], list[Note]]:
    """Return HTTPRoutes that cover all names: one, unless it would have too many matches."""
    notes: list[Note] = []
    parts: list[dict[int, list[Match]]] = []
    for name, path in _names(route["spec"]):
        if not can_be_header(name):
            notes.append(
                Note(path=path, text="cannot be the value of a header: no request for it comes here")
            )
            continue
        matches, lost = _matches(name, rules)
        notes += lost
        if parts and _fits(parts[-1], matches):
            for position, more in matches.items():
                parts[-1].setdefault(position, []).extend(more)
        elif matches:
            parts.append(matches)
    bodies = {rule.position: rule.body for rule in rules}
    return [
        {
            "apiVersion": API_VERSIONS[HTTP_ROUTES],
            "kind": "HTTPRoute",
            "metadata": owned_metadata(route, numbered_name(route, number), {}),
            "spec": {
                "parentRefs": [*parents],
                "rules": [
                    {**bodies[position], "matches": [match.manifest for match in part[position]]}
                    for position in sorted(part)
                ],
            },
        }
        for number, part in enumerate(parts)
    ], notes


def _names(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield each model or adapter name of the route once, with its path."""
    paths: dict[str, str] = {}
    if spec.get("modelName"):
        paths[spec["modelName"]] = "spec.modelName"
    for position, name in enumerate(spec.get("loraAdapters") or []):
        if name:
            paths.setdefault(name, f"spec.loraAdapters[{position}]")
    yield from paths.items()


def _matches(name: str, rules: Sequence[_Rule]) -> tuple[dict[int, list[Match]], list[Note]]:
    """Return the matches of each rule for requests that name one model, in the order of the rules."""
    applying = {
        rule.position: match
        for rule in rules
        if rule.model in ("", name) and (match := match_without_model(rule.match, name)) is not None
    }
    ordered, positions = in_order(tuple(applying.values())), [*applying]
    notes = [
        Note(
            path=f"spec.rules[{positions[second]}].modelMatch",
            text=f"a Gateway may prefer it to spec.rules[{positions[first]}] where both apply",
        )
        for first, second in ordered.unkept
    ]
    model = MODEL_HEADER, Text(Comparison.EXACT, name)
    return {
        position: [replace(match, headers=(model, *match.headers)) for match in matches]
        for position, matches in zip(positions, ordered.matches, strict=True)
    }, notes


def _fits(part: Mapping[int, Sequence[Match]], more: Mapping[int, Sequence[Match]]) -> bool:
    """Tell whether one HTTPRoute can hold the matches of two."""
    sizes = [
        len(part.get(position, ())) + len(more.get(position, ())) for position in part.keys() | more.keys()
    ]
    return sum(sizes) <= MOST_MATCHES_IN_ROUTE and max(sizes) <= MOST_MATCHES
