"""The comparison of reference pages with declarations detects differences and violations."""

from __future__ import annotations

from pathlib import Path

import pytest
from seeds.differences import differences
from seeds.findings import Contrast, contrasts
from seeds.pages import read_page
from seeds.places import places
from seeds.proofs import breaches
from seeds.rows import Promise, Row, documents

from apiserver.kinds.llmd.v1alpha2 import NUMERIC
from apiserver.schema.json import Json

DOCUMENT = documents()["llmd-variantautoscaling-legacy"]

TOGETHER = (
    "`variantID`, `accelerator`, `acceleratorCount`, `sloClassRef` and `variantProfile` are set all together"
    " or not at all, unless `modelProfile` is set."
)
SPEC = {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": "m"}}

CONTRADICTED: dict[str, tuple[str, str, Json, list[Contrast]]] = {
    "a field that does not exist": (
        "VariantAutoscalingSpec",
        "nowhere",
        {"type": "string"},
        [Contrast("", "field", wanted="string", declared=None)],
    ),
    "a different type": (
        "VariantProfile",
        "maxBatchSize",
        {"type": "string", "minimum": 1, "required": True},
        [Contrast("", "type", wanted="string", declared="integer")],
    ),
    "a list that is declared as a single value": (
        "VariantProfile",
        "maxBatchSize",
        {"type": "integer array", "minimum": 1, "required": True},
        [Contrast("", "shape", wanted="integer array", declared="integer")],
    ),
    "a different bound and a missing one": (
        "VariantProfile",
        "maxBatchSize",
        {"type": "integer", "minimum": 2, "maximum": 9, "required": True},
        [Contrast("", "maximum", wanted=9, declared=None), Contrast("", "minimum", wanted=2, declared=1)],
    ),
    "a field that should not be required": (
        "VariantProfile",
        "maxBatchSize",
        {"type": "integer", "minimum": 1},
        [Contrast("", "required", wanted=False, declared=True)],
    ),
    "a missing default": (
        "VariantProfile",
        "maxBatchSize",
        {"type": "integer", "minimum": 1, "required": True, "default": 0},
        [Contrast("", "default", wanted=0, declared=None)],
    ),
    "the values and bounds of a map": (
        "PerfParms",
        "decodeParms",
        {"type": "integer map", "minProperties": 1, "required": True},
        [
            Contrast("", "maxProperties", wanted=None, declared=16),
            Contrast("{}", "maxLength", wanted=None, declared=64),
            Contrast("", "type", wanted="integer", declared="string"),
        ],
    ),
    "a core type with another required field": (
        "VariantAutoscalingSpec",
        "sloClassRef",
        {"type": "LocalObjectReference"},
        [Contrast(".name", "required", wanted=False, declared=True)],
    ),
    "nothing": ("VariantProfile", "perfParms", {"type": "PerfParms", "required": True}, []),
}


@pytest.mark.parametrize(
    ("type_name", "field", "facts", "want"), CONTRADICTED.values(), ids=CONTRADICTED.keys()
)
def test_a_difference_between_row_and_declaration_is_found(
    type_name: str, field: str, facts: Json, want: list[Contrast]
) -> None:
    """Each keyword is compared separately."""
    (owner,) = places(DOCUMENT.name)[type_name]
    row = Row(facts=facts, released={})
    needed = field in owner.schema.get("required", [])

    assert list(contrasts(DOCUMENT, row, owner.child(field), is_required=needed)) == want


BROKEN: dict[str, tuple[str, str, Json]] = {
    "no keyword is named": ("VariantAutoscalingSpec.variantID", "schema", {}),
    "a missing keyword": ("VariantAutoscalingSpec.variantID", "schema", {"keywords": ["enum"]}),
    "a field that is not required": (
        "VariantAutoscalingSpec.variantID",
        "schema",
        {"keywords": ["required"]},
    ),
    "a valid value that is rejected": ("VariantAutoscalingSpec.variantID", "schema", {"valid": "A100"}),
    "an invalid value that is accepted": (
        "VariantAutoscalingSpec.variantID",
        "schema",
        {"invalid": "a-A100-4"},
    ),
    "a member that should not exist": ("ConfigMapKeyRef", "schema", {"without": "name"}),
    "a field that does not exist": ("VariantAutoscalingSpec.nowhere", "schema", {"keywords": ["type"]}),
    "a rule that is not declared": ("VariantAutoscalingSpec", "cel", {"rule": "All is well."}),
    "a CEL rule that is not in CEL": ("PerfParms", "cel", {"rule": NUMERIC}),
    "a webhook rule that is in CEL": ("VariantAutoscalingSpec", "webhook", {"rule": TOGETHER}),
    "a different default": (
        "VariantAutoscaling",
        "webhook",
        {"fills": {"at": "spec.variantCost", "value": "9", "spec": SPEC}},
    ),
    "a missing warning": ("VariantAutoscaling", "warning", {"warns": {"at": "spec.modelID", "spec": SPEC}}),
    "a missing reference": (
        "VariantAutoscaling",
        "warning",
        {"refers": {"at": "spec.modelID", "spec": SPEC}},
    ),
    "a missing column": ("VariantAutoscaling", "schema", {"column": "Weather"}),
    "a missing test": (
        "VariantAutoscaling",
        "webhook",
        {"test": "tests/contract/test_seeds.py::test_nothing"},
    ),
    "a missing word": (
        "VariantAutoscaling",
        "status",
        {"module": "tests/seeds/rows.py", "word": "weather"},
    ),
}


@pytest.mark.parametrize(("at", "kept", "proof"), BROKEN.values(), ids=BROKEN.keys())
def test_a_violated_sentence_is_found(at: str, kept: str, proof: Json) -> None:
    """Each sort of proof reports its violation."""
    assert breaches(DOCUMENT, Promise(place=at, digest="", says="", kept=kept, at=at, proof=proof))


def test_every_difference_is_explained_once() -> None:
    """Two reasons for the same difference could contradict each other."""
    listed = [str(difference) + str(difference.versions) for difference in differences()]

    assert len(set(listed)) == len(listed)


def test_a_page_is_parsed_exactly(tmp_path: Path) -> None:
    """The page has escaped bars, exponents, maps, enums, defaults as Go prints them, and sentence ends."""
    page = tmp_path / "page.md"
    page.write_text(
        "#### Thing\n\nA thing of the\nRFC. It is one.\n\n_Appears in:_\n- [Other](#other)\n\n"
        "| Field | Description | Default | Validation |\n| --- | --- | --- | --- |\n"
        "| `kind` _string_ | `Thing` | | |\n"
        "| `uri` _string_ | Either a \\| b.<br />Or none of<br />both. | hf://a | Pattern: `^(a\\|b)$` |\n"
        "| `many` _[Other](#other) array_ | Given to a<br />Thing. | [map[a:b c d:1:2]] | MaxItems: 1e+06 |\n"
        "| `of` _object (keys:string, values:[Other](#other))_ |  |  | Required: \\{\\} <br /> |\n",
        encoding="utf-8",
    )

    read = read_page(page)

    assert read.types["Thing"].rows == {
        "kind": {"type": "string", "const": "Thing"},
        "uri": {"type": "string", "default": "hf://a", "pattern": "^(a|b)$"},
        "many": {"type": "Other array", "default": [{"a": "b c", "d": "1:2"}], "maxItems": 1_000_000},
        "of": {"type": "Other map", "required": True},
    }
    assert [(place, text) for place, _, text in read.sentences] == [
        ("Thing", "A thing of the RFC."),
        ("Thing", "It is one."),
        ("Thing.uri", "Either a | b."),
        ("Thing.uri", "Or none of both."),
        ("Thing.many", "Given to a Thing."),
    ]
