"""Annotations of an object: read, remove or set one, and measure the size of all."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json, JsonValue, as_object, without

LIMIT_BYTES: Final = 256 * 1024
"""The limit on the total size of an object's annotations, in bytes. Source:
`k8s.io/apimachinery/pkg/api/validation`."""


def take_annotation(value: Json, name: str) -> tuple[Json, JsonValue]:
    """Return an object without one annotation, and the value of the annotation, or None if it had none."""
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    if name not in annotations:
        return value, None
    others = without(annotations, (name,))
    rest = metadata | {"annotations": others} if others else without(metadata, ("annotations",))
    return value | {"metadata": rest}, annotations[name]


def with_annotation(value: Json, name: str, text: str) -> Json:
    """Return an object with an annotation set to `text`."""
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    return value | {"metadata": metadata | {"annotations": annotations | {name: text}}}


def annotation_bytes(value: Json) -> int:
    """Return the total size in bytes of an object's annotations, counted as for their limit."""
    annotations = as_object(as_object(value.get("metadata")).get("annotations"))
    return sum(len(name.encode()) + len(str(text).encode()) for name, text in annotations.items())
