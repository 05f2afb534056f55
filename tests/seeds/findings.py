"""Comparison of the reference pages' fields with our declarations, keyword by keyword."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from apiserver.schema.json import Json, JsonValue
from seeds.places import ROOT_FIELDS, Place, places
from seeds.rows import Document, Row, SeedType, core_types, documents

KEYWORDS: Final = (
    "default",
    "enum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "x-kubernetes-list-map-keys",
)
"""Constraints on a field. Formats are left out: the pages do not distinguish `int32` from `int64`."""

_SCALARS: Final = frozenset({"string", "integer", "boolean"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A field whose declaration differs from the page. None stands for an absent value.

    `field_type` is the type as written in the page, without array or map.
    """

    document: str
    version: str
    type: str
    field: str
    keyword: str
    wanted: JsonValue
    declared: JsonValue
    field_type: str

    def __str__(self) -> str:
        where = f"{self.document}: {self.type}.{self.field} in {self.version}"
        return f"{where}: {self.keyword} is {self.declared!r}, and the page wants {self.wanted!r}"


class Contrast(NamedTuple):
    """One differing keyword, at a part of a field: itself, its items `[]`, its values `{}`, or a member."""

    part: str
    keyword: str
    wanted: JsonValue
    declared: JsonValue


def all_findings() -> list[Finding]:
    """Return every difference of every page."""
    pages = documents().items()
    return [finding for name, page in pages for item in page.types for finding in findings(name, item)]


@functools.cache
def findings(document_name: str, type_name: str) -> tuple[Finding, ...]:
    """Return every difference of a type, in all its places, without duplicates."""
    document = documents()[document_name]
    item = document.types[type_name]
    items = [
        _finding(document, item, place, name, contrast=contrast)
        for place in places(document_name).get(type_name, [])
        for name, contrast in _of_type(document, item, place)
    ]
    return tuple({str(finding): finding for finding in items}.values())


def _finding(document: Document, item: SeedType, place: Place, name: str, *, contrast: Contrast) -> Finding:
    return Finding(
        document=document.name,
        version=place.version.name,
        type=item.name,
        field=name + contrast.part,
        keyword=contrast.keyword,
        wanted=contrast.wanted,
        declared=contrast.declared,
        field_type=item.rows[name].element if name in item.rows else "",
    )


def _of_type(document: Document, item: SeedType, place: Place) -> Iterator[tuple[str, Contrast]]:
    servers = ROOT_FIELDS if item.is_root else ()
    for name, row in item.rows.items():
        if name not in servers:
            needed = name in place.schema.get("required", [])
            for contrast in contrasts(document, row, place.child(name), is_required=needed):
                yield name, contrast
    for name in place.schema.get("properties", {}):
        if name not in item.rows and name not in servers:
            yield name, Contrast("", "field", wanted=None, declared="added")


def contrasts(document: Document, row: Row, place: Place | None, *, is_required: bool) -> Iterator[Contrast]:
    """Yield each keyword in which a field's declaration differs from its row."""
    if place is None:
        yield Contrast("", "field", wanted=row.type, declared=None)
        return
    if is_required != row.is_required:
        yield Contrast("", "required", wanted=row.is_required, declared=is_required)
    yield from _shape(row, place)
    yield from _keywords("", _named_facts(document, row) | row.wanted, place.schema)
    inner = place.element
    if inner is not place and row.element in _SCALARS:
        yield from _keywords("[]" if row.shape == "array" else "{}", {}, inner.schema)
    yield from _element(document, row, inner)


def _shape(row: Row, place: Place) -> Iterator[Contrast]:
    declared = place.schema.get("type")
    shape = "map" if "additionalProperties" in place.schema else "array" if declared == "array" else ""
    if shape != row.shape:
        yield Contrast("", "shape", wanted=row.type, declared=shape or declared)


def _keywords(part: str, wanted: Json, schema: Json) -> Iterator[Contrast]:
    for keyword in KEYWORDS:
        if _comparable(wanted.get(keyword), keyword) != _comparable(schema.get(keyword), keyword):
            yield Contrast(part, keyword, wanted.get(keyword), schema.get(keyword))


def _comparable(value: JsonValue, keyword: str) -> str:
    # As JSON, since True equals 1 and a list may be a tuple. The order of an enum is irrelevant.
    return json.dumps(sorted(value) if keyword == "enum" and value else value, sort_keys=True)


def _named_facts(document: Document, row: Row) -> Json:
    named = document.find(row.element)
    facts = named[1].facts if named else {}
    return facts | ({"enum": facts["values"]} if "values" in facts else {})


def _element(document: Document, row: Row, place: Place) -> Iterator[Contrast]:
    named = document.find(row.element)
    if named is not None:
        core: Json = {"type": named[1].facts.get("underlying", "object")}
    elif row.element in _SCALARS:
        core = {"type": row.element}
    elif row.element in core_types():
        core = core_types()[row.element]
    else:
        raise LookupError(
            f"{document.name} has rows of type {row.element}: define it under `types`, name its page under"
            " `elsewhere`, or add it to kubernetes.yaml"
        )
    for keyword, wanted in core.items():
        if keyword != "fields" and place.schema.get(keyword) != wanted:
            yield Contrast("", keyword, wanted, place.schema.get(keyword))
    for name, is_required in core.get("fields", {}).items():
        yield from _core_field(name, place.schema, is_required=is_required)


def _core_field(name: str, schema: Json, *, is_required: bool) -> Iterator[Contrast]:
    if name not in schema.get("properties", {}):
        yield Contrast(f".{name}", "field", wanted="there", declared=None)
    elif is_required != (name in schema.get("required", [])):
        yield Contrast(f".{name}", "required", wanted=is_required, declared=not is_required)
