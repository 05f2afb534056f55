"""Conversion between versions, for the kinds that have more than one: VariantAutoscaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from apiserver.kinds.llmd import conversion as llmd
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind

_CONVERTERS: Final[Mapping[tuple[str, str], Callable[[Json, str], Json]]] = {
    (api_version, "VariantAutoscaling"): llmd.convert for api_version in (llmd.HUB, llmd.SPOKE)
}


def convert(value: Json, api_version: str) -> Json:
    """Return an object converted to another version of its kind.

    Raises KeyError for a kind or version without a converter: the API server never asks for one.
    """
    if value.get("apiVersion") == api_version:
        return value
    return _CONVERTERS[api_version, str(value.get("kind"))](value, api_version)


def kept_annotation(kind: Kind) -> str:
    """Return the annotation that keeps what a version cannot express; empty for a kind without conversion."""
    return llmd.ANNOTATION if kind.has_conversion else ""


def telling_label(kind: Kind) -> str:
    """Return the label that conversion depends on; empty if it depends on none."""
    return ACCELERATOR_LABEL if kind.has_conversion else ""


def wanted_annotation_bytes(kind: Kind, value: Json) -> int:
    """Return the size in bytes that an object's annotations need for its other versions to lose nothing.

    The status does not count, since a writer of the status replaces it as a whole.
    """
    if not kind.has_conversion:
        return 0
    lasting = {name: item for name, item in value.items() if name != "status"}
    return max(llmd.wanted_bytes(lasting, f"{kind.group}/{version.name}") for version in kind.versions)
