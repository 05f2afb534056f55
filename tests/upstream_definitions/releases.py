"""What each release declares: tables in the notation of this project, and definitions for upgrade tests."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import Json, JsonValue
from upstream_definitions.schemas import CORE, WIDTHS, Facts, facts_of

TABLES: Final = Path(__file__).resolve().parent
ERAS: Final = TABLES.parent / "released_definitions"
HELD: Final[Mapping[str, tuple[str, ...]]] = {
    "pull-233": ("v1alpha1",),
    "v0.0.1": ("v1alpha1",),
    "v0.0.5": ("v1alpha1",),
    "v0.4.2": ("v1alpha1",),
    "v0.5.1": ("v1alpha1", "v1alpha2"),
    "v0.7.0": ("v1alpha1", "v1alpha2"),
}
"""Releases of VariantAutoscaling, all with v1alpha1, and our versions that accept their manifests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """One kind as one release declares it, and our version that is compared with it."""

    release: str
    name: str
    version: str
    facts: Mapping[str, Facts]

    def __str__(self) -> str:
        return f"{self.release} {self.name} {self.version}"


@functools.cache
def definitions() -> tuple[Definition, ...]:
    """Return every kind of every release."""
    return (*_tabled(), *_from_eras())


def _tabled() -> Iterator[Definition]:
    for path in sorted(TABLES.glob("*.yaml")):
        table = _table(path)
        for name, versions in table.get("kinds", {}).items():
            for version, roots in versions.items():
                facts = dict(_members(table["types"], roots, ""))
                yield Definition(release=path.stem, name=name, version=version, facts=facts)


def _table(path: Path) -> Json:
    """Return a table; with `extends`, it also has the types of another one that it does not declare."""
    table: Json = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    if "extends" in table:
        table["types"] = _table(path.with_name(f"{table['extends']}.yaml"))["types"] | table["types"]
    return table


def _from_eras() -> Iterator[Definition]:
    for release, versions in HELD.items():
        text = (ERAS / f"{release}-definition.yaml").read_text(encoding="utf-8")
        definition = yaml.load(text, Loader=yaml.CSafeLoader)
        [entry] = definition["spec"]["versions"]
        facts = facts_of(entry["schema"]["openAPIV3Schema"])
        for version in versions:
            name = definition["metadata"]["name"]
            yield Definition(release=release, name=name, version=version, facts=facts)


def _members(types: Json, fields: Json, path: str) -> Iterator[tuple[str, Facts]]:
    for written, said in fields.items():
        name = written.rstrip("!")
        below = f"{path}.{name}".lstrip(".")
        for place, facts in _field(types, said, below):
            is_it = place == below and written.endswith("!")
            yield place, (dict(facts) | {"required": True} if is_it else facts)


def _field(types: Json, said: JsonValue, path: str) -> Iterator[tuple[str, Facts]]:
    words = dict(said) if isinstance(said, dict) else {"is": said}
    for shape, step in (("list", "[]"), ("map", "{}")):
        if shape in words:
            inner = words.pop(shape)
            yield path, {"type": shape} | words
            yield from _field(types, inner, path + step)
            return
    word = words.pop("is")
    if word.startswith("/"):
        yield path, {"type": "object"} | words
        yield from _members(types, types[word[1:]], path)
    elif word in WIDTHS:
        least, most = WIDTHS[word]
        bounds = (words.pop("minimum", least), words.pop("maximum", most))
        yield path, {"type": "integer", "range": bounds} | words
    else:
        yield path, {"type": CORE if word == CORE else word} | words
