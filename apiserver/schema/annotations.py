"""Annotations of an object: read, remove or set one, and measure the size of all."""

from __future__ import annotations

from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import as_object, opened, plain, without

LIMIT_BYTES: Final = 256 * 1024
"""The limit on the total size of an object's annotations, in bytes. Source:
`k8s.io/apimachinery/pkg/api/validation`."""


class _Annotated(msgspec.Struct, gc=False):
    annotations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_RAW: Final = msgspec.Raw
_SIZED: Final = frozenset({msgspec.Raw, str})
_decode_annotated: Final = msgspec.json.Decoder(_Annotated).decode


def annotations_of(metadata: JsonValue) -> JsonValue:
    """Return the annotations of an object's metadata, undecoded if the metadata is; None without any."""
    if type(metadata) is not _RAW:
        return metadata.get("annotations") if isinstance(metadata, dict) else None
    try:
        found = _decode_annotated(metadata).annotations
    except msgspec.ValidationError:
        return None
    return None if found is msgspec.UNSET else found


def take_annotation(value: Json, name: str) -> tuple[Json, JsonValue]:
    """Return an object without one annotation, and the value of the annotation, or None if it had none."""
    metadata = opened(value.get("metadata"))
    annotations = opened(metadata.get("annotations")) if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or name not in annotations:
        return value, None
    others = without(annotations, (name,))
    rest = metadata | {"annotations": others} if others else without(metadata, ("annotations",))
    return value | {"metadata": rest}, plain(annotations[name])


def with_annotation(value: Json, name: str, text: str) -> Json:
    """Return an object with an annotation set to `text`."""
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    return value | {"metadata": metadata | {"annotations": annotations | {name: text}}}


def annotation_bytes(value: Json) -> int:
    """Return the total size in bytes of an object's annotations, counted as for their limit."""
    annotations = as_object(annotations_of(value.get("metadata")))
    return sum(len(name.encode()) + len(str(plain(text)).encode()) for name, text in annotations.items())


def annotations_fit(value: Json) -> bool:
    """Tell whether the annotations of an object are within their limit."""
    characters = 0
    for name, text in as_object(annotations_of(value.get("metadata"))).items():
        characters += len(name)
        if type(text) in _SIZED:
            characters += len(text)
    # A character takes at most four bytes, so most objects need no encoding to be measured.
    return characters * 4 <= LIMIT_BYTES or annotation_bytes(value) <= LIMIT_BYTES
