"""The promises of the reference pages, as data: rows, sentences, decisions and differences.

`tests/contract/seeds` has one YAML file for each page, `kubernetes.yaml` with what all pages inherit from
Kubernetes, and `differences.yaml` with deliberate differences of our declarations.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import Json, JsonValue

DATA: Final = Path(__file__).resolve().parents[2] / "tests" / "contract" / "seeds"
DECISIONS: Final = (
    "schema",
    "cel",
    "webhook",
    "warning",
    "status",
    "reader",
    "controller",
    "description",
    "server",
)
"""What keeps a promise. `reader`: every component that acts on the object and applies the page's defaults;
`server`: Kubernetes itself; `description`: the sentence only explains."""

_NO_PROOF: Final = frozenset({"says", "kept", "at"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """One sentence of a page: the promise in our words, what keeps it, and what would reveal a breach.

    `place` is a type or `Type.field`, and so is `at`, where the promise is kept. Promises that a page only
    implies, or that only the released schemas contain, have no digest.
    """

    place: str
    digest: str
    says: str
    kept: str
    at: str
    proof: Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row of a table. `released` adds what the released schemas contain and the page lacks."""

    facts: Json
    released: Json

    @property
    def type(self) -> str:
        """The type as written in the page: `string`, `Rule array`, `string map`."""
        written: str = self.facts["type"]
        return written

    @property
    def element(self) -> str:
        """The type without `array` or `map`."""
        return self.type.partition(" ")[0]

    @property
    def shape(self) -> str:
        """`array`, `map`, or an empty string."""
        return self.type.partition(" ")[2]

    @property
    def wanted(self) -> Json:
        """All facts that the field's declaration must contain."""
        return self.facts | self.released

    @property
    def is_required(self) -> bool:
        """Whether the field must be required."""
        return bool(self.wanted.get("required"))


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedType:
    """One section of a page: an object with its rows, or a named string with its constraints."""

    name: str
    rows: Mapping[str, Row]
    facts: Json

    @property
    def is_text(self) -> bool:
        """Whether it is a named string, which replaces the type in rows that name it."""
        return "underlying" in self.facts

    @property
    def is_root(self) -> bool:
        """Whether it is a kind, or the list of one."""
        return "kind" in self.rows and "const" in self.rows["kind"].facts

    @property
    def is_list(self) -> bool:
        """Whether it is the list of a kind, which the API server defines by itself."""
        return self.is_root and "items" in self.rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One page: its API group, our versions that keep it, its types and its promises.

    `elsewhere` maps each type that this page uses without defining it to the page that defines it.
    """

    name: str
    group: str
    versions: tuple[str, ...]
    types: Mapping[str, SeedType]
    elsewhere: Mapping[str, str]
    promises: tuple[Promise, ...]

    def find(self, type_name: str) -> tuple[Document, SeedType] | None:
        """Return a type and its page, or None for a type of Kubernetes or of JSON."""
        if type_name in self.elsewhere:
            return documents()[self.elsewhere[type_name]].find(type_name)
        return (self, self.types[type_name]) if type_name in self.types else None


@functools.cache
def documents() -> Mapping[str, Document]:
    """Return every page by name."""
    names = sorted(path.stem for path in DATA.glob("*.yaml"))
    return {name: _document(name) for name in names if name not in {"kubernetes", "differences"}}


@functools.cache
def core_types() -> Mapping[str, Json]:
    """Return the Kubernetes types that pages name, with their keywords and fields."""
    types: Mapping[str, Json] = loaded("kubernetes")["types"]
    return types


def root_promises() -> Mapping[str, list[str]]:
    """Return the digests of the sentences in every page about `apiVersion`, `kind` and `metadata`."""
    return {name: list(item["promises"]) for name, item in loaded("kubernetes")["roots"].items()}


@functools.cache
def loaded(name: str) -> JsonValue:
    """Return the content of one data file."""
    return yaml.load((DATA / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _document(name: str) -> Document:
    data = loaded(name)
    return Document(
        name=name,
        group=data["group"],
        versions=tuple(data["versions"]),
        types={key: _type(key, item) for key, item in data["types"].items()},
        elsewhere=data.get("elsewhere", {}),
        promises=tuple(_promises(data)),
    )


def _type(name: str, data: Json) -> SeedType:
    rows = {
        key: Row(facts=item["row"], released=item.get("released", {}))
        for key, item in data.get("fields", {}).items()
    }
    return SeedType(name=name, rows=rows, facts=data.get("facts", {}))


def _promises(data: Json) -> Iterator[Promise]:
    for place, section in _sections(data):
        for digest, item in section.get("promises", {}).items():
            yield _promise(place, digest, item)
    for item in data.get("implied", []):
        yield _promise(item["at"], "", item)


def _promise(place: str, digest: str, item: Json) -> Promise:
    return Promise(
        place=place,
        digest=digest,
        says=item["says"],
        kept=item["kept"],
        at=item.get("at", place),
        proof={key: value for key, value in item.items() if key not in _NO_PROOF},
    )


def _sections(data: Json) -> Iterator[tuple[str, Json]]:
    for name, item in data["types"].items():
        yield name, item
        for member, part in (item.get("fields", {}) | item.get("values", {})).items():
            yield f"{name}.{member}", part
    yield from data.get("sections", {}).items()
