"""Deliberate differences between declarations and reference pages: fields, and classes of additions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.schema.json import JsonValue
from seeds.findings import Finding
from seeds.rows import documents, loaded


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One deliberate difference: the declared value, the versions, and the reason.

    Without `declared`, any value is allowed where the page has none.
    """

    document: str
    type: str
    field: str
    keyword: str
    declared: JsonValue
    versions: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{self.document}: {self.type}.{self.field} {self.keyword}"

    def explains(self, finding: Finding) -> bool:
        """Tell whether this is the difference that was found."""
        ours = (self.document, self.type, self.field, self.keyword)
        theirs = (finding.document, finding.type, finding.field, finding.keyword)
        if ours != theirs or finding.version not in self.versions:
            return False
        if self.declared is ...:
            return _is_addition(finding)
        return repr(self.declared) == repr(finding.declared)


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """A class of our own constraints where the pages have none. It never explains a change.

    Without `types` it holds for fields of any type, without `fields` for those of any name.
    """

    name: str
    keywords: tuple[str, ...]
    types: tuple[str, ...]
    fields: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return self.name

    def explains(self, finding: Finding) -> bool:
        """Tell whether a finding belongs to the class."""
        return (
            _is_addition(finding)
            and finding.keyword in self.keywords
            and (not self.types or finding.field_type in self.types)
            and (not self.fields or finding.field in self.fields)
        )


@functools.cache
def differences() -> tuple[Difference, ...]:
    """Return all deliberate differences, one for each field."""
    return tuple(
        Difference(
            document=item["document"],
            type=type_name,
            field=field,
            keyword=keyword,
            declared=item.get("declared", ...),
            versions=tuple(item.get("versions", documents()[item["document"]].versions)),
            reason=item["reason"],
        )
        for item in loaded("differences")["differences"]
        for type_name in _each(item["type"])
        for field in _each(item["field"])
        for keyword in _each(item["keyword"])
    )


@functools.cache
def additions() -> tuple[Addition, ...]:
    """Return all classes of additions."""
    return tuple(
        Addition(
            name=name,
            keywords=tuple(item["keywords"]),
            types=tuple(item.get("types", ())),
            fields=tuple(item.get("fields", ())),
            reason=item["reason"],
        )
        for name, item in loaded("differences")["additions"].items()
    )


def unexplained(items: Sequence[Finding]) -> list[str]:
    """Return the findings without an explanation, as sentences."""
    reasons: list[Difference | Addition] = [*differences(), *additions()]
    return [str(one) for one in items if not any(reason.explains(one) for reason in reasons)]


def _is_addition(finding: Finding) -> bool:
    # A wanted 0 is a constraint; a missing required mark is none.
    is_free = finding.wanted is None or finding.wanted is False
    return is_free and finding.declared is not None and finding.declared is not False


def _each(written: str | list[str]) -> list[str]:
    return written if isinstance(written, list) else [written]
