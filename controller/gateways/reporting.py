"""The next steps for a ModelRoute behind Gateways, and the condition about its translation. Pure.

A pool is owned by all routes that target it. It is deleted with the last of them, or with its ModelServer.
Objects that can no longer be translated after an edit stay unchanged. docs/gateways.md explains each reason;
a test compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from apiserver.kinds.inference.inferenceobjective import POOL_KIND
from apiserver.schema.json import Json
from controller.expansion.parts import Note
from controller.expansion.steps import ChildKey, Steps, belongs_to, is_current, key_of
from controller.gateways.parts import pool_of, shared_by
from controller.gateways.translation import Translation
from controller.traffic.status import targets_of


class GatewayCondition(StrEnum):
    """Condition types."""

    TRANSLATED = "Translated"


class GatewayReason(StrEnum):
    """Condition reasons."""

    TRANSLATED = "Translated"
    PARTIALLY = "Partially"
    REFUSED_BY_GATEWAY = "RefusedByGateway"
    NOT_UNDERSTOOD = "AnnotationNotUnderstood"
    INVALID = "Invalid"
    NOT_INSTALLED = "NotInstalled"
    OBJECT_EXISTS = "ObjectExists"
    REQUEST_REFUSED = "RequestRefused"


Finding = tuple[bool | None, StrEnum, str]
"""Whether the condition is true, the reason, and the message."""


def not_translated(reason: GatewayReason, texts: Sequence[str]) -> Finding:
    """Return the finding about a route that cannot be translated at all."""
    return False, reason, "; ".join(texts)


def translation_finding(
    *,
    notes: Sequence[Note] = (),
    children: Collection[Json] = (),
    foreign: Collection[ChildKey] = (),
    refused: str = "",
) -> Finding:
    """Return the finding about a translated route: the most severe reason, with all messages.

    `children` are the existing objects of the route, including the pools that it targets. Objects with needed
    names that someone else created are `foreign`. `refused` is the rejection by the API server.
    """
    taken_names = [
        f"{kind} {name} does not belong to this route and is not changed: delete it, or rename the route"
        for kind, name, _ in sorted(foreign)
    ]
    by_reason = {
        GatewayReason.OBJECT_EXISTS: taken_names,
        GatewayReason.REQUEST_REFUSED: [refused] if refused else [],
        GatewayReason.REFUSED_BY_GATEWAY: [*_refusals(children)],
        GatewayReason.PARTIALLY: [str(note) for note in notes],
    }
    reason = next((reason for reason, texts in by_reason.items() if texts), None)
    if reason is not None:
        return not_translated(reason, [text for texts in by_reason.values() for text in texts])
    names = ", ".join(sorted(f"{item['kind']} {item['metadata']['name']}" for item in children))
    return True, GatewayReason.TRANSLATED, f"made: {names}" if names else "there is no rule to translate"


def _refusals(children: Iterable[Json]) -> Iterator[str]:
    """Yield the errors that Gateways report in the status of objects."""
    for item in children:
        parents = (item.get("status") or {}).get("parents") or []
        for parent in parents:
            for condition in parent.get("conditions") or []:
                kind, status = condition.get("type"), condition.get("status")
                if (kind, status) in {
                    ("Accepted", "False"),
                    ("ResolvedRefs", "False"),
                    ("PartiallyInvalid", "True"),
                }:
                    gateway = (parent.get("parentRef") or {}).get("name", "")
                    yield (
                        f"{item['kind']} {item['metadata']['name']}: Gateway {gateway}: {kind} is {status}:"
                        f" {condition.get('message', '')}"
                    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteContext:
    """Related objects in the namespace of a route."""

    sharing: Sequence[Json]
    """ModelRoutes that are translated, including this one if it is."""

    servers: Mapping[str, Json]
    """Valid ModelServers with their defaults, by name, that the route targets or targeted."""

    invalid: frozenset[str] = frozenset()
    """Names of such servers that are invalid."""

    children: Mapping[ChildKey, Json] = field(default_factory=dict)
    """Objects that were made for routes."""

    applied: MutableMapping[ChildKey, str] = field(default_factory=dict)
    """Fingerprints of the objects that this process has applied."""


def steps(route: Json, translation: Translation | None, around: RouteContext) -> Steps:
    """Return the objects to apply and delete now; None stands for a route that is not translated."""
    objects = {key_of(item): item for item in (translation.objects if translation else ())}
    obsolete: list[Json] = [
        item
        for key, item in around.children.items()
        if key.kind != POOL_KIND and key not in objects and belongs_to(item, route["metadata"]["uid"])
    ]
    sharing = [(item, frozenset(targets_of(item))) for item in around.sharing]
    leads_to = targets_of(route) if translation else ()
    for name in sorted(pools_of(route, around.children).union(leads_to)):
        key = ChildKey(POOL_KIND, name)
        owners = [item for item, targets in sharing if name in targets]
        if not owners or name not in around.servers.keys() | around.invalid:
            obsolete += [around.children[key]] if key in around.children else []
        elif name in around.servers and (pool := pool_of(around.servers[name])[0]) is not None:
            objects[key] = shared_by(pool, owners)
    apply = []
    for key, item in sorted(objects.items(), key=lambda entry: entry[0].kind != POOL_KIND):
        live = around.children.get(key)
        is_ours = live is None or is_made_for(live, route)
        if is_ours and not (live and is_current(item, live, around.applied.get(key))):
            apply.append(item)
    return Steps(
        apply=tuple(apply), delete=tuple(item for item in obsolete if is_made_for(item, route)), awaited=()
    )


def is_made_for(live: Json, route: Json) -> bool:
    """Tell whether an object is one that we may write for a route."""
    if live["kind"] != POOL_KIND:
        return belongs_to(live, route["metadata"]["uid"])
    owners = live["metadata"].get("ownerReferences") or []
    kinds = {(owner.get("apiVersion"), owner.get("kind")) for owner in owners}
    return kinds == {(route["apiVersion"], route["kind"])}


def pools_of(route: Json, children: Mapping[ChildKey, Json]) -> frozenset[str]:
    """Return the names of the pools that a route owns, whether or not it still targets them."""
    uid = route["metadata"]["uid"]
    return frozenset(
        key.name
        for key, item in children.items()
        if key.kind == POOL_KIND
        and any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or [])
    )
