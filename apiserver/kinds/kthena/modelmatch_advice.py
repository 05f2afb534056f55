"""What is legal in the conditions of a rule, but hardly meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.schema.json import Json

_SHOWN_NAME_CHARACTERS: Final = 24
"""A warning should stay within 120 characters, and a header's name may be longer than that."""


def matches_everything(match: Json) -> bool:
    """Tell whether conditions hold for every request."""
    headers: Mapping[str, Json] = match.get("headers") or {}
    uri: Json = match.get("uri") or {}
    return (
        all(_holds_always(condition) for condition in headers.values())
        and (_holds_always(uri) or uri.get("prefix") == "/")
        and "model" not in (match.get("body") or {})
    )


def match_advice(match: Json, path: str) -> Iterator[str]:
    """Yield a sentence for each condition that holds for every request, or for none."""
    for name, condition in (match.get("headers") or {}).items():
        if _holds_always(condition):
            yield f"{path}.headers[{_brief(name)}]: holds for every request, whether it has the header or not"
    uri: Json | None = match.get("uri")
    if uri is None:
        return
    if _holds_always(uri):
        yield f"{path}.uri: holds for every path; set one of exact, prefix and regex"
    for name in ("exact", "prefix"):
        if uri.get(name, "/")[:1] not in {"/", ""}:
            yield f"{path}.uri.{name}: holds for no path: every path begins with /"
    if uri.get("exact") == "":
        yield f"{path}.uri.exact: holds for no path: every path begins with /"


def _holds_always(condition: Json) -> bool:
    return "exact" not in condition and not condition.get("prefix") and not condition.get("regex")


def _brief(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME_CHARACTERS else f"{name[:_SHOWN_NAME_CHARACTERS]}..."
