"""Holds the generated definitions against those of each release, path by path and keyword by keyword."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import JsonValue
from oracles.releases import TABLES, Definition, definitions
from oracles.schemas import CORE, Facts, facts_of

GENERATED: Final = Path(__file__).resolve().parents[2] / "manifests" / "crds"
_LITERAL: Final = str.maketrans({"[": "<", "]": ">"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One keyword at one path that is generated otherwise than a release declares it; None is its absence."""

    definition: Definition
    path: str
    keyword: str
    theirs: JsonValue
    ours: JsonValue

    def __str__(self) -> str:
        return (
            f"{self.definition}: {self.path} {self.keyword} is {self.ours!r}, of the release {self.theirs!r}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A deliberate difference: patterns of releases and paths, a keyword, the reason.

    With `only`, it explains what the release does not demand at all (`added`), or what we do not (`dropped`).
    Nothing explains a range beyond that of the release: its clients could not read such a number.
    """

    releases: tuple[str, ...]
    paths: tuple[str, ...]
    keywords: tuple[str, ...]
    only: str
    reason: str

    def __str__(self) -> str:
        return f"{'/'.join(self.releases)} {' '.join(self.paths)} {'/'.join(self.keywords)}"

    def explains(self, finding: Finding) -> bool:
        """Tell whether it is about this."""
        who = f"{finding.definition.release} {finding.definition.name} {finding.definition.version}"
        return (
            finding.keyword in self.keywords
            and (self.only != "added" or finding.theirs is None)
            and (self.only != "dropped" or finding.ours is None)
            and (finding.keyword != "range" or _is_within(finding.ours, finding.theirs))
            and any(_matches(who, f"{release}*") for release in self.releases)
            and any(_matches(finding.path, path) for path in self.paths)
        )


@functools.cache
def findings() -> tuple[Finding, ...]:
    """Return every difference from every release."""
    return tuple(
        Finding(definition=definition, path=path, keyword=keyword, theirs=theirs, ours=ours)
        for definition in definitions()
        for path, keyword, theirs, ours in _contrasts(definition.facts, generated(definition))
    )


@functools.cache
def differences() -> tuple[Difference, ...]:
    """Return the deliberate ones."""
    entries = yaml.load((TABLES / "differences.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)[
        "differences"
    ]
    return tuple(
        Difference(
            releases=tuple(entry.get("releases", ["*"])),
            paths=tuple(entry["paths"]),
            keywords=tuple(entry["keywords"]),
            only=entry.get("only", ""),
            reason=entry["reason"],
        )
        for entry in entries
    )


def generated(definition: Definition) -> Mapping[str, Facts]:
    """Return the facts of the generated definition of a kind. Raises KeyError without such a version."""
    return _generated(definition.name)[definition.version]


@functools.cache
def _generated(name: str) -> Mapping[str, Mapping[str, Facts]]:
    (path,) = GENERATED.glob(f"*/{name}.yaml")
    manifest = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {
        entry["name"]: facts_of(entry["schema"]["openAPIV3Schema"]) for entry in manifest["spec"]["versions"]
    }


def _contrasts(
    theirs: Mapping[str, Facts], ours: Mapping[str, Facts]
) -> Iterator[tuple[str, str, JsonValue, JsonValue]]:
    passed_over = [
        f"{path}{step}" for path, facts in theirs.items() if facts["type"] == CORE for step in ".[{"
    ]
    for path in sorted({*theirs, *ours}):
        if path.startswith(tuple(passed_over)):
            continue
        if path in theirs and path in ours:
            yield from _keywords(path, theirs[path], ours[path])
        else:
            yield path, "field", theirs.get(path, {}).get("type"), ours.get(path, {}).get("type")
            passed_over += [f"{path}{step}" for step in ".[{"]


def _keywords(path: str, theirs: Facts, ours: Facts) -> Iterator[tuple[str, str, JsonValue, JsonValue]]:
    is_core = theirs["type"] == CORE
    for keyword in sorted({*theirs, *ours}):
        wanted, declared = theirs.get(keyword), ours.get(keyword)
        if not (is_core and keyword == "type") and _comparable(wanted) != _comparable(declared):
            yield path, keyword, wanted, declared


def _is_within(ours: JsonValue, theirs: JsonValue) -> bool:
    """Tell whether a range, its least and its greatest number, is part of another one."""
    return bool(ours and theirs and ours[0] >= theirs[0] and ours[1] <= theirs[1])


def _comparable(value: JsonValue) -> str:
    """Return a value as text: the order of choices and of members says nothing, and true is not 1."""
    items = sorted(map(_comparable, value)) if isinstance(value, list) else value
    return json.dumps(items, sort_keys=True)


def _matches(text: str, pattern: str) -> bool:
    # Brackets stand for the items of a list here, and not for a class of characters.
    return fnmatchcase(text.translate(_LITERAL), pattern.translate(_LITERAL))
