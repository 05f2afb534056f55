"""Documentation: explained reasons, links, names of files and tests, versions, and an example."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
import yaml
from support.documents import anchors, example, text_of

from apiserver.kinds.registry import KINDS
from apiserver.schema.kind import Kind
from controller.observe.binding_conditions import BindingCondition, BindingReason
from controller.observe.conditions import ConditionReason, ConditionType, EventReason
from controller.observe.prices import CostSource
from controller.observe.settings_reading import read_policies
from controller.planning.decision import BoundBy, Reason, SolverStatus
from controller.planning.load import CapacitySource, Signal
from controller.policies.recommending import Limit
from controller.variants.status import UNPLANNED
from hack.controlplane.modules import KUBERNETES, OLDEST_KUBERNETES

TOP = Path(__file__).resolve().parents[3]
TROUBLESHOOTING = TOP / "docs" / "troubleshooting.md"
DOCUMENTS = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").glob("**/*.md"))]
PATH = re.compile(r"`((?:apiserver|controller|webhooks|hack|manifests|tests|docs)/[\w./-]*\w/?)`")
NAMED_TEST = re.compile(r"`(tests/[\w./-]+\.py)::(\w+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
EXPLAINED = {
    "Conditions": {*ConditionReason},
    "Decision reasons": {*Reason, UNPLANNED},
    "What limits a decision (`boundBy`)": {*BoundBy},
    "Events": {*EventReason},
}


def section(title: str) -> str:
    """Return a section of the page on troubleshooting, subsections included."""
    parts = re.split(r"^## (.*)$", text_of(TROUBLESHOOTING), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[title]


@pytest.mark.parametrize(("title", "known"), EXPLAINED.items(), ids=EXPLAINED.keys())
def test_every_reason_is_explained_and_no_unknown_one(title: str, known: set[str]) -> None:
    """A row of the table begins with the reason, or with a condition's status and the reason."""
    rows = re.findall(
        r"^\|(?: `(?:True|False)` \|)? `(?!True|False)(\w+)` \|", section(title), flags=re.MULTILINE
    )

    assert set(rows) == known


REFERENCE = re.compile(r"'([A-Z][^'\n]+)' in (docs/[a-z/-]+\.md)")
"""A section of a page, as messages name it."""


def test_sections_that_messages_name_exist() -> None:
    """A user looks for them."""
    sources = [
        path for folder in ("apiserver", "controller", "webhooks") for path in (TOP / folder).rglob("*.py")
    ]
    named = {pair for path in sources for pair in REFERENCE.findall(path.read_text("utf-8"))}
    assert len(named) > 4
    missing = {
        (title, page) for title, page in named if f"# {title}\n" not in (TOP / page).read_text("utf-8")
    }
    assert missing == set()


def test_every_condition_has_a_section() -> None:
    """Other documents link to the section of a condition."""
    assert set(re.findall(r"^### (\w+)$", section("Conditions"), flags=re.MULTILINE)) == {*ConditionType}


def test_every_other_value_of_a_decision_is_explained() -> None:
    """These values describe the sources of demand, capacity and cost, and the status of the solver."""
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \|", section("Other values of a decision"), flags=re.MULTILINE)

    assert set(rows) == {*Signal, *CapacitySource, *SolverStatus, *get_args(CostSource)}


def test_every_condition_of_a_binding_is_explained_and_no_unknown_one() -> None:
    """All of its reasons and every limit of a policy's decision are explained, too."""
    text = text_of(TOP / "docs" / "policies.md")
    rows = re.findall(r"^\|(?: `(\w+)`)? \| `(\w+)` \| ", text, flags=re.MULTILINE)

    assert {condition for condition, _ in rows if condition} == {*BindingCondition}
    assert {reason for _, reason in rows} == {*BindingReason}
    assert [limit for limit in Limit if f"`{limit}`" not in text] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_kind_is_in_the_lists_of_kinds(kind: Kind) -> None:
    """The index links its reference page and states what it does; another page names the part with it."""
    index, installing = (text_of(TOP / name) for name in ("docs/README.md", "docs/installing.md"))

    assert f"[{kind.kind}](../manifests/reference/{kind.singular}.md)" in index
    assert re.search(rf"^\| [^|`]*\b{kind.kind}\b[^|`]* `{kind.group}/", index, flags=re.MULTILINE)
    assert re.search(
        rf"^\| `(base|components/[\w-]+)` \| [^|]*\b{kind.kind}\b", installing, flags=re.MULTILINE
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_are_valid(document: Path) -> None:
    """The linked file exists and has the linked heading."""
    broken = []
    for target, anchor in LINK.findall(text_of(document)):
        file = (document.parent / target).resolve() if target else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{target}#{anchor}")

    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_named_in_documents_exist(document: Path) -> None:
    """If a file is renamed, this test names the documents to change."""
    assert [name for name in PATH.findall(text_of(document)) if not (TOP / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tests_named_in_documents_exist(document: Path) -> None:
    """If a test is renamed, this test names the documents that cite it."""
    named = NAMED_TEST.findall(document.read_text("utf-8"))

    assert [f"{file}::{name}" for file, name in named if not _has_test(TOP / file, name)] == []


def _has_test(file: Path, name: str) -> bool:
    return (
        file.exists()
        and re.search(rf"^(?:async )?def {name}\(", file.read_text("utf-8"), re.MULTILINE) is not None
    )


def test_documented_kubernetes_versions_are_the_tested_versions() -> None:
    """The newest version runs all tests, the oldest those of `make oldest`."""
    text = text_of(TOP / "docs" / "installing.md")
    readme = text_of(TOP / "README.md")
    newest, oldest = (it.version(it.binaries[0]) for it in (KUBERNETES, OLDEST_KUBERNETES))

    assert re.search(rf"^\| {re.escape(newest)} \| all tests", text, re.MULTILINE)
    assert re.search(rf"^\| {re.escape(oldest)} \| `make oldest`", text, re.MULTILINE)
    assert f"Needs Kubernetes {oldest.rpartition('.')[0]} or newer" in readme


def test_the_example_of_prices_and_classes_is_valid() -> None:
    """Both ConfigMaps are read without a problem."""
    settings = yaml.safe_load_all(example("docs/getting-started.md", "ConfigMap"))
    maps = {item["metadata"]["name"]: item for item in settings}
    policies = read_policies(maps, unit_costs="accelerator-unit-costs")

    assert policies.problems == ()
    assert policies.unit_costs == {"L40S": Decimal("32.00")}
    (premium,) = policies.classes.values()
    assert (premium.priority, premium.ttft_ms, premium.tpot_ms) == (
        1,
        {"meta/llama-3.1-8b": 2500},
        {"meta/llama-3.1-8b": 150},
    )
