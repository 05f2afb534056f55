"""Every row of every reference page is declared, and every sentence on them has somebody who keeps it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from support.seed_differences import Addition, Difference, additions, differences, unexplained
from support.seed_findings import all_findings, findings
from support.seed_pages import Page, read_page
from support.seed_places import ROOT_FIELDS, places
from support.seed_proofs import breaches
from support.seed_rows import DECISIONS, Document, Promise, SeedType, documents, root_promises

from apiserver.kinds.registry import find_kind
from apiserver.schema.structural import crd_manifest

PAGES: Final = Path(__file__).parents[2].parent / "shared" / "seeds"
"""The pages as they were published, where the machine has them."""

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
def test_every_row_is_declared_as_the_page_says(document: Document, item: SeedType) -> None:
    """Name, type, default, bounds, pattern, choices and required mark; or a difference with its reason."""
    if not places(document.name).get(item.name):
        pytest.fail(f"nothing declares {item.name} of {document.group}", pytrace=False)
    expect_none(unexplained(findings(document.name, item.name)))


@pytest.mark.parametrize(("document", "item"), LISTS)
def test_every_list_is_the_server_s(document: Document, item: SeedType) -> None:
    """The API server makes the list of a kind, once it knows the name."""
    name = item.rows["items"].element
    kind = find_kind(document.group, name)
    if kind is None:
        pytest.fail(f"nothing declares {name} of {document.group}", pytrace=False)

    assert crd_manifest(kind)["spec"]["names"]["listKind"] == item.name
    assert item.rows["kind"].facts["const"] == item.name


@pytest.mark.parametrize("difference", differences(), ids=str)
def test_every_difference_still_occurs(difference: Difference) -> None:
    """What is no longer declared otherwise is no longer listed, version by version."""
    occurs = {finding.version for finding in all_findings() if difference.explains(finding)}

    assert difference.reason
    assert occurs == set(difference.versions)


@pytest.mark.parametrize("addition", additions(), ids=str)
def test_every_class_of_additions_is_used(addition: Addition) -> None:
    """A class that no row needs is a hole."""
    assert addition.reason
    assert any(addition.explains(finding) for finding in all_findings())


@pytest.mark.parametrize(("document", "promise"), PROMISES)
def test_every_promise_is_kept(document: Document, promise: Promise) -> None:
    """Whoever keeps it, what would show a breach shows none."""
    assert promise.says
    assert promise.kept in DECISIONS
    expect_none(breaches(document, promise))


@pytest.fixture(params=documents().values(), ids=lambda document: str(document.name))
def document(request: pytest.FixtureRequest) -> Document:
    """Return one document after the other."""
    found: Document = request.param
    return found


@pytest.fixture
def page(document: Document) -> Page:
    """Return the page that a document was taken from."""
    path = PAGES / f"{document.name}.md"
    if not path.is_file():
        pytest.skip("the published page is not on this machine")
    return read_page(path)


def test_the_data_are_the_page_s_rows(document: Document, page: Page) -> None:
    """No row more, no row less, and each with the same facts."""
    ours = {
        name: ({field: row.facts for field, row in item.rows.items()}, item.facts)
        for name, item in document.types.items()
    }

    assert ours == {name: (item.rows, item.facts) for name, item in page.types.items()}


def test_every_sentence_of_the_page_is_decided_on(document: Document, page: Page) -> None:
    """No sentence without a promise, no promise without a sentence."""
    texts = {(place, digest): text for place, digest, text in page.sentences}
    theirs = Counter(
        (place, digest) for place, digest, _ in page.sentences if not is_about_a_root(document, place)
    )
    ours = Counter((promise.place, promise.digest) for promise in document.promises if promise.digest)

    expect_none([f"undecided: {place} {digest} {texts[place, digest]}" for place, digest in theirs - ours])
    expect_none([f"not on the page: {place} {digest}" for place, digest in ours - theirs])


def test_sentences_about_roots_are_the_same_everywhere(document: Document, page: Page) -> None:
    """What pages say of `kind`, `apiVersion` and `metadata` is decided on once."""
    theirs = {
        (place.rpartition(".")[2], digest)
        for place, digest, _ in page.sentences
        if is_about_a_root(document, place)
    }

    assert theirs
    assert theirs <= {(name, digest) for name, digests in root_promises().items() for digest in digests}


def is_about_a_root(document: Document, place: str) -> bool:
    """Tell whether a place is one of the fields that every root has."""
    type_name, _, field = place.partition(".")
    item = document.types.get(type_name)
    return item is not None and item.is_root and field in ROOT_FIELDS


def expect_none(found: Sequence[str]) -> None:
    """Fail with a list of sentences, unless it is empty."""
    if found:
        pytest.fail("\n".join(found), pytrace=False)
