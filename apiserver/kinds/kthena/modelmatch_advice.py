"""Warnings about valid conditions of a rule that are probably a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.schema.json import Json

_SHOWN_NAME_CHARACTERS: Final = 24
"""The maximum number of characters of a header name in a warning, to keep it within 120 characters."""


def matches_everything(match: Json) -> bool:
    """Tell whether conditions match every request."""
    headers: Mapping[str, Json] = match.get("headers") or {}
    uri: Json = match.get("uri") or {}
    return (
        all(_holds_always(condition) for condition in headers.values())
        and (_holds_always(uri) or uri.get("prefix") == "/")
        and "model" not in (match.get("body") or {})
    )


def covers(one: Json, other: Json) -> bool:
    """Tell whether conditions certainly match every request that the others match."""
    given = {name.lower(): condition for name, condition in (other.get("headers") or {}).items()}
    headers: Mapping[str, Json] = one.get("headers") or {}
    uri: Json = one.get("uri") or {}
    body: Json = one.get("body") or {}
    return (
        all(_follows(condition, given.get(name.lower()) or {}) for name, condition in headers.items())
        and (uri.get("prefix") == "/" or _follows(uri, other.get("uri") or {}))
        and ("model" not in body or body["model"] == (other.get("body") or {}).get("model"))
    )


def match_advice(match: Json, path: str) -> Iterator[str]:
    """Yield a sentence for each condition that matches every request, or none."""
    for name, condition in (match.get("headers") or {}).items():
        if _holds_always(condition):
            yield f"{path}.headers[{_brief(name)}]: matches every request, with or without the header"
    uri: Json | None = match.get("uri")
    if uri is None:
        return
    if _holds_always(uri):
        yield f"{path}.uri: matches every path; set one of exact, prefix and regex"
    for name in ("exact", "prefix"):
        if uri.get(name, "/")[:1] not in {"/", ""}:
            yield f"{path}.uri.{name}: matches no path: every path begins with /"
    if uri.get("exact") == "":
        yield f"{path}.uri.exact: matches no path: every path begins with /"


def _follows(condition: Json, given: Json) -> bool:
    """Tell whether a condition certainly matches every text that another one matches."""
    if _holds_always(condition) or condition == given:
        return True
    prefix: str | None = condition.get("prefix")
    beginning: str = given.get("exact") or given.get("prefix") or ""
    return "exact" not in condition and bool(prefix and beginning.startswith(prefix))


def _holds_always(condition: Json) -> bool:
    return "exact" not in condition and not condition.get("prefix") and not condition.get("regex")


def _brief(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME_CHARACTERS else f"{name[:_SHOWN_NAME_CHARACTERS]}..."
