"""The condition of a ModelRoute that is translated for Gateways. Pure.

docs/gateways.md explains each reason; a test compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from apiserver.schema.json import Json
from controller.models.parts import Note
from controller.models.standing import ChildKey


class GatewayCondition(StrEnum):
    """What the condition is about."""

    TRANSLATED = "Translated"


class GatewayReason(StrEnum):
    """Why it has its status."""

    TRANSLATED = "Translated"
    PARTIALLY = "Partially"
    REFUSED_BY_GATEWAY = "RefusedByGateway"
    NOT_UNDERSTOOD = "AnnotationNotUnderstood"
    INVALID = "Invalid"
    NOT_INSTALLED = "NotInstalled"
    OBJECT_EXISTS = "ObjectExists"
    REQUEST_REFUSED = "RequestRefused"


Finding = tuple[bool | None, StrEnum, str]
"""Whether the condition holds, why, and a sentence that says so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of a translation."""

    notes: Sequence[Note] = ()
    children: Sequence[Json] = ()
    """What there is of the route, the pools that it leads to included."""

    foreign: frozenset[ChildKey] = frozenset()
    """Objects of names that are needed, and that somebody else made."""

    refused: str = ""
    """What the API server refused, in its words."""


def not_translated(reason: GatewayReason, texts: Sequence[str]) -> Finding:
    """Return what is said of a route of which nothing can be translated."""
    return False, reason, "; ".join(texts)


def finding(outcome: Outcome) -> Finding:
    """Return what is said of a route that was translated: what is worst first, and then all the rest."""
    taken = [
        f"{kind} {name} does not belong to this route and is not changed: delete it, or rename the route"
        for kind, name in sorted(outcome.foreign)
    ]
    refused = [outcome.refused] if outcome.refused else []
    said = {
        GatewayReason.OBJECT_EXISTS: taken,
        GatewayReason.REQUEST_REFUSED: refused,
        GatewayReason.REFUSED_BY_GATEWAY: [*_refusals(outcome.children)],
        GatewayReason.PARTIALLY: [str(note) for note in outcome.notes],
    }
    reason = next((reason for reason, texts in said.items() if texts), None)
    if reason is not None:
        return not_translated(reason, [text for texts in said.values() for text in texts])
    names = ", ".join(sorted(f"{item['kind']} {item['metadata']['name']}" for item in outcome.children))
    return True, GatewayReason.TRANSLATED, f"made: {names}" if names else "there is no rule to translate"


def _refusals(children: Sequence[Json]) -> Iterator[str]:
    """Yield what Gateways say of objects that they do not take as they are."""
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
