"""Schemas as flat facts: the requirements at each path, in one form for all kinds of schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.schema.json import Json, JsonValue

Facts = Mapping[str, JsonValue]
"""The requirements of one field by keyword; absent keywords require nothing."""

CORE: Final = "core"
"""A type of Kubernetes itself, whose content is not compared here."""

WIDTHS: Final = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1)}

_PLAIN: Final = (
    *("minLength", "maxLength", "pattern", "enum", "default"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
)
_ROOT: Final = frozenset({"apiVersion", "kind", "metadata"})


def facts_of(schema: Json) -> dict[str, Facts]:
    """Return the requirements of a definition's schema at each path below its root."""
    return {path: facts for path, facts in _walk(schema, "") if path}


def _walk(schema: Json, path: str, *, is_required: bool = False) -> Iterator[tuple[str, Facts]]:
    yield path, _facts(schema, is_required=is_required)
    for name, below in schema.get("properties", {}).items():
        if path or name not in _ROOT:
            needed = name in schema.get("required", [])
            yield from _walk(below, f"{path}.{name}".lstrip("."), is_required=needed)
    if "items" in schema:
        yield from _walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _walk(schema["additionalProperties"], f"{path}{{}}")


def _facts(schema: Json, *, is_required: bool) -> Facts:
    facts: Json = {"type": type_of(schema)} | {key: schema[key] for key in _PLAIN if key in schema}
    if is_required and "default" not in schema:  # a field with a default is always present
        facts["required"] = True
    if keys := schema.get("x-kubernetes-list-map-keys"):
        facts["keys"] = keys
    if schema.get("type") == "integer":
        facts["range"] = bounds_of(schema)
    elif "format" in schema:
        facts["format"] = schema["format"]
    return facts


def type_of(schema: Json) -> str:
    """Return the type as one word."""
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return "map"
    written: str = schema.get("type", "any")
    return {"array": "list"}.get(written, written)


def bounds_of(schema: Json) -> tuple[int, int]:
    """Return the smallest and the largest integer that bounds and format allow."""
    least, most = WIDTHS["int32" if schema.get("format") == "int32" else "int64"]
    return max(least, schema.get("minimum", least)), min(most, schema.get("maximum", most))
