"""The law of checking: `check` reports the errors of validation, however an object is written."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from differential.generate import maker_of
from hypothesis import example, given
from hypothesis import strategies as st
from support.campaign import often

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import KINDS
from apiserver.kinds.scalable import SCALABLE, listing_error
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import node_of
from controller.commands.check.documents import Source, read_documents, read_sources
from controller.commands.check.judge import check_source
from controller.commands.check.result import CheckResult, CheckVerdict, lines_of
from controller.commands.check.tree import Tree
from controller.commands.check.yaml_values import as_yaml

VERSIONS = [(kind, version) for kind in KINDS for version in kind.versions]
AMBIGUOUS = [
    "y",
    "on",
    "No",
    "1e3",
    "08",
    "0o7",
    "1_0",
    "~",
    "",
    "null",
    "<<",
    "=",
    "1:30",
    "2001-01-01",
    ".5_0",
    ".Inf",
    ".nan",
]


def only(text: str) -> CheckResult:
    """Return the result of the only object of a file."""
    (result,) = check_source(Source(name="f", data=text.encode()))
    return result


def _unscalable(version: Version, value: Json) -> list[FieldError]:
    """Return the errors of targets whose kinds cannot be scaled."""
    claims = [claim for claim in version.references(with_defaults(version, value)) if claim.is_scaled]
    return [error for claim in claims if (error := listing_error(claim, SCALABLE))]


@pytest.mark.parametrize(
    ("kind", "version"), VERSIONS, ids=[f"{kind.kind} {version.name}" for kind, version in VERSIONS]
)
def test_check_reports_the_errors_of_validation(kind: Kind, version: Version) -> None:
    """Errors of targets are included; a valid object gets its defaults, and a second check adds nothing."""
    maker, root = maker_of(version.declaration), node_of(version.declaration)
    names = {"apiVersion": f"{kind.group}/{version.name}", "kind": kind.kind, "metadata": {"name": "x"}}
    for number in range(often(60)):
        body = maker.fresh(root, Random(number))  # valid by the schema; rules may be violated
        body.pop("status", None)
        value = names | body
        errors = [*errors_of(kind, version, value), *_unscalable(version, value)]
        for write in (as_yaml, json.dumps):
            result = only(write(value))
            assert [(found.field, found.message) for found in result.errors] == [
                (str(error.path), error.body) for error in errors
            ], number
            assert result.verdict is (
                CheckVerdict.REFUSED if errors or result.undecodable else CheckVerdict.VALID
            ), number
            if result.value is not None:
                assert result.value == with_defaults(version, value), number
                assert only(as_yaml(result.value)).value == result.value, number


@example(".Inf", ".nan")
@given(st.text() | st.sampled_from(AMBIGUOUS), st.text() | st.sampled_from(AMBIGUOUS))
def test_text_remains_text(key: str, text: str) -> None:
    """This includes text that YAML could decode as another type."""
    name = f"kubectl.example/{key}"
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": {name: text, key: text}}

    (tree,) = read_documents(as_yaml(manifest).encode())

    assert isinstance(tree, Tree)
    assert tree.value == manifest


SAMPLES = Path(__file__).resolve().parents[3] / "manifests" / "samples"
MESSAGES = sorted(SAMPLES.rglob("refused/*.txt"))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_check_prints_what_kubectl_prints(message: Path) -> None:
    """All lines are the same, except for warnings."""
    sources = read_sources([str(message.with_suffix(".yaml"))])
    results = (item for source in sources for item in check_source(source))
    said = [line.text for item in results for line in lines_of(item, set())]

    told = [line.rstrip() for line in message.read_text(encoding="utf-8").splitlines()]
    assert [line for line in said if not line.startswith("Warning:")] == told


def test_every_sample_is_valid() -> None:
    """Samples that are meant to be rejected are excluded, and none is unreadable."""
    sources = [source for source in read_sources([str(SAMPLES)]) if "refused" not in Path(source.name).parts]
    results = [result for source in sources for result in check_source(source)]

    assert {result.verdict for result in results} == {CheckVerdict.VALID, CheckVerdict.SKIPPED}
