"""The condition of a ModelRoute about its translation for Gateways. Pure.

docs/gateways.md explains each reason; a test compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from apiserver.schema.json import Json
from controller.expansion.parts import Note
from controller.expansion.standing import ChildKey


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


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationResult:
    """The result of a translation."""

    notes: Sequence[Note] = ()
    children: Sequence[Json] = ()
    """Existing objects of the route, including the pools that it targets."""

    foreign: frozenset[ChildKey] = frozenset()
    """Objects with needed names that someone else created."""

    refused: str = ""
    """The rejection by the API server, as a message."""


def not_translated(reason: GatewayReason, texts: Sequence[str]) -> Finding:
    """Return the finding about a route that cannot be translated at all."""
    return False, reason, "; ".join(texts)


def finding(result: TranslationResult) -> Finding:
    """Return the finding about a translated route: the most severe reason, with all messages."""
    taken = [
        f"{kind} {name} does not belong to this route and is not changed: delete it, or rename the route"
        for kind, name in sorted(result.foreign)
    ]
    refused = [result.refused] if result.refused else []
    said = {
        GatewayReason.OBJECT_EXISTS: taken,
        GatewayReason.REQUEST_REFUSED: refused,
        GatewayReason.REFUSED_BY_GATEWAY: [*_refusals(result.children)],
        GatewayReason.PARTIALLY: [str(note) for note in result.notes],
    }
    reason = next((reason for reason, texts in said.items() if texts), None)
    if reason is not None:
        return not_translated(reason, [text for texts in said.values() for text in texts])
    names = ", ".join(sorted(f"{item['kind']} {item['metadata']['name']}" for item in result.children))
    return True, GatewayReason.TRANSLATED, f"made: {names}" if names else "there is no rule to translate"


def _refusals(children: Sequence[Json]) -> Iterator[str]:
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
