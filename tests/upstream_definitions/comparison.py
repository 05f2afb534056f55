"""Comparison of the generated definitions with those of each release, by path and keyword."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import yaml

from apiserver.kinds.registry import KINDS
from apiserver.schema.json import JsonValue
from apiserver.schema.structural import crd_manifest
from upstream_definitions.releases import TABLES, Definition, definitions
from upstream_definitions.schemas import CORE, Facts, facts_of

_LITERAL: Final = str.maketrans({"[": "<", "]": ">"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A keyword at a path whose generated value differs from that of a release; None if absent."""

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
    """A deliberate difference: patterns of releases and paths, keywords, and the reason.

    With `only`, it explains keywords that the release does not have (`added`), or that ours does not
    (`dropped`). A range larger than that of the release is never explained: its clients could not read such a
    number.
    """

    releases: tuple[str, ...]
    paths: tuple[str, ...]
    keywords: tuple[str, ...]
    only: str
    reason: str

    def __str__(self) -> str:
        return f"{'/'.join(self.releases)} {' '.join(self.paths)} {'/'.join(self.keywords)}"

    def explains(self, finding: Finding) -> bool:
        """Tell whether the difference applies to the finding."""
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
    """Return the differences from every release."""
    return tuple(
        Finding(definition=definition, path=path, keyword=keyword, theirs=theirs, ours=ours)
        for definition in definitions()
        for path, keyword, theirs, ours in _contrasts(definition.facts, generated(definition))
    )


@functools.cache
def differences() -> tuple[Difference, ...]:
    """Return the deliberate differences."""
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
    (kind,) = (kind for kind in KINDS if kind.crd_name == name)
    versions = crd_manifest(kind)["spec"]["versions"]
    return {entry["name"]: facts_of(entry["schema"]["openAPIV3Schema"]) for entry in versions}


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
    """Tell whether a range (minimum, maximum) is part of another one."""
    return bool(ours and theirs and ours[0] >= theirs[0] and ours[1] <= theirs[1])


def _comparable(value: JsonValue) -> str:
    """Return a value as text, in which the order of choices and members is normalized, and true is not 1."""
    items = sorted(map(_comparable, value)) if isinstance(value, list) else value
    return json.dumps(items, sort_keys=True)


def _matches(text: str, pattern: str) -> bool:
    # Brackets in a path mean the items of a list, not a class of characters.
    return fnmatchcase(text.translate(_LITERAL), pattern.translate(_LITERAL))
