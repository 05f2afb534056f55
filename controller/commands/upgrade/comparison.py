"""Comparison of two readings of an object, as far as conversion is concerned."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.schema.json import Json, JsonValue, same


def difference(one: Json, other: Json) -> str:
    """Return the path of the first field in which two objects differ; empty if they are equal.

    The version and the metadata that the server maintains are ignored.
    """
    return next(_differences(_comparable(one), _comparable(other), ""), "")


def _comparable(value: Json) -> Json:
    metadata = value.get("metadata") or {}
    kept = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    others = {name: item for name, item in value.items() if name not in {"apiVersion", "kind", "metadata"}}
    return others | {"metadata": kept}


def _differences(one: JsonValue, other: JsonValue, path: str) -> Iterator[str]:
    if not isinstance(one, dict) or not isinstance(other, dict):
        if not same(one, other):
            yield path
        return
    for name in sorted({*one, *other}):
        below = f"{path}.{name}" if path else name
        if (name in one) != (name in other):
            yield below
        else:
            yield from _differences(one[name], other[name], below)
