"""Every row of the reference pages is declared, and no sentence on them is violated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from seeds.differences import Addition, Difference, additions, differences, unexplained
from seeds.findings import all_findings, findings
from seeds.pages import Page, read_page
from seeds.places import ROOT_FIELDS, places
from seeds.proofs import breaches
from seeds.rows import DECISIONS, Document, Promise, SeedType, documents, root_promises

from apiserver.kinds.registry import DEFINED, find_kind
from apiserver.schema.structural import crd_manifest

PAGES: Final = Path(__file__).parents[2].parent / "shared" / "seeds"
"""The published pages, which are not available on every machine."""

DIFFERENCES: Final = "tests/contract/seeds/differences.yaml"

TYPES: Final = [
    pytest.param(document, item, id=f"{document.name} {item.name}")
    for document in documents().values()
    for item in document.types.values()
    if not item.is_text and not item.is_list
]
LISTS: Final = [
    pytest.param(document, item, id=f"{document.name} {item.name}")
    for document in documents().values()
    for item in document.types.values()
    if item.is_list
]
PROMISES: Final = [
    pytest.param(document, promise, id=f"{document.name} {promise.place}: {promise.says}")
    for document in documents().values()
    for promise in document.promises
]


@pytest.mark.parametrize(("document", "item"), TYPES)
def test_every_field_is_declared_as_on_the_reference_page(document: Document, item: SeedType) -> None:
    """Name, type, default, bounds, pattern, enum and required are equal, or a difference has a reason."""
    if not places(document.name).get(item.name):
        pytest.fail(f"nothing declares {item.name} of {document.group}", pytrace=False)
    found = unexplained(findings(document.name, item.name))
    expect_none([*found, f"if intended: add it, with a reason, to {DIFFERENCES}"] if found else [])


@pytest.mark.parametrize(("document", "item"), LISTS)
def test_every_list_type_is_the_one_of_the_api_server(document: Document, item: SeedType) -> None:
    """The API server generates the list type of a kind from its name in the CRD."""
    name = item.rows["items"].element
    kind = find_kind(document.group, name)
    if kind is None:
        pytest.fail(f"nothing declares {name} of {document.group}", pytrace=False)

    assert crd_manifest(kind)["spec"]["names"]["listKind"] == item.name
    assert item.rows["kind"].facts["const"] == item.name


def test_every_version_of_a_kind_has_a_page() -> None:
    """Without data of a page, nothing here would concern the kind."""
    declared = {(kind.group, version.name, kind.kind) for kind in DEFINED for version in kind.versions}
    roots = {
        (document.group, version, item.name)
        for document in documents().values()
        for version in document.versions
        for item in document.types.values()
        if item.is_root and not item.is_list
    }

    assert declared - roots == set()


@pytest.mark.parametrize("difference", differences(), ids=str)
def test_every_difference_still_occurs(difference: Difference) -> None:
    """A difference that no longer occurs must be removed from the list, version by version."""
    occurs = {finding.version for finding in all_findings() if difference.explains(finding)}

    assert difference.reason
    assert occurs == set(difference.versions)


@pytest.mark.parametrize("addition", additions(), ids=str)
def test_every_class_of_additions_is_used(addition: Addition) -> None:
    """A class that explains no difference must be removed."""
    assert addition.reason
    assert any(addition.explains(finding) for finding in all_findings())


@pytest.mark.parametrize(("document", "promise"), PROMISES)
def test_no_sentence_of_the_reference_pages_is_violated(document: Document, promise: Promise) -> None:
    """An entry for each sentence says how it is enforced, and its proof finds no violation."""
    assert promise.says
    assert promise.kept in DECISIONS
    expect_none(breaches(document, promise))


@pytest.fixture(params=documents().values(), ids=lambda document: str(document.name))
def document(request: pytest.FixtureRequest) -> Document:
    """Return one document after another."""
    found: Document = request.param
    return found


@pytest.fixture
def page(document: Document) -> Page:
    """Return the published page of a document."""
    path = PAGES / f"{document.name}.md"
    if not path.is_file():
        pytest.skip("the published page is not on this machine")
    return read_page(path)


def test_the_data_equal_the_rows_of_the_page(document: Document, page: Page) -> None:
    """No row is missing or superfluous, and each has the same facts."""
    ours = {
        name: ({field: row.facts for field, row in item.rows.items()}, item.facts)
        for name, item in document.types.items()
    }

    assert ours == {name: (item.rows, item.facts) for name, item in page.types.items()}


def test_every_sentence_of_the_page_has_an_entry(document: Document, page: Page) -> None:
    """No sentence lacks an entry, and no entry lacks a sentence."""
    texts = {(place, digest): text for place, digest, text in page.sentences}
    theirs = Counter(
        (place, digest) for place, digest, _ in page.sentences if not is_about_a_root(document, place)
    )
    ours = Counter((promise.place, promise.digest) for promise in document.promises if promise.digest)

    expect_none([f"undecided: {place} {digest} {texts[place, digest]}" for place, digest in theirs - ours])
    expect_none([f"not on the page: {place} {digest}" for place, digest in ours - theirs])


def test_sentences_about_root_fields_are_the_same_on_all_pages(document: Document, page: Page) -> None:
    """The entries for `kind`, `apiVersion` and `metadata` are shared by all pages."""
    theirs = {
        (place.rpartition(".")[2], digest)
        for place, digest, _ in page.sentences
        if is_about_a_root(document, place)
    }

    assert theirs
    assert theirs <= {(name, digest) for name, digests in root_promises().items() for digest in digests}


def is_about_a_root(document: Document, place: str) -> bool:
    """Return whether a place is one of the fields of every root type."""
    type_name, _, field = place.partition(".")
    item = document.types.get(type_name)
    return item is not None and item.is_root and field in ROOT_FIELDS


def expect_none(found: Sequence[str]) -> None:
    """Fail with a list of messages, unless it is empty."""
    if found:
        pytest.fail("\n".join(found), pytrace=False)
