"""Findings of `stowplan check`: the messages of the API server and kubectl, each with its line."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
import yaml
from support.manifests import deployment, legacy_variant, variant
from support.verbs import GOOD, Check

from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING

DEPRECATED = f"Warning: {VARIANT_AUTOSCALING.versions[0].deprecation_warning}"

BAD = """\
# wrong in several places
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata:
  name: x
  labels:
    app: a b
spec:
  modelID: ""
  acceleratorCount: 0
"""

STRICT = """\
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: x, Labels: {}}
spec:
  zeta: 1
  modelID: m
  modelID: m
  scaleTargetRef: {kind: Deployment, name: x, apiVersio: v1}
status: {whatever: 1}
"""


def test_a_valid_object_is_reported_in_one_line(check: Check) -> None:
    """The line begins with the place in the file."""
    assert check("a.yaml", a_yaml=f"---\n{GOOD}") == (0, ["a.yaml:2: VariantAutoscaling/x valid"], [])


def test_errors_have_the_format_of_kubectl_and_their_lines(check: Check) -> None:
    """Those in metadata and spec are listed at once; an absent field has the line of its parent."""
    code, out, err = check("a.yaml", a_yaml=BAD)

    assert (code, err) == (1, [])
    assert out[0] == 'a.yaml:2: The VariantAutoscaling "x" is invalid:'
    assert out[1].startswith('a.yaml:7: * metadata.labels: Invalid value: "a b": a valid label must be')
    assert sorted(out[2:]) == sorted(
        [
            'a.yaml:9: * spec.modelID: Invalid value: "": must be at least 1 character long',
            "a.yaml:8: * spec.scaleTargetRef: Required value",
            "a.yaml:10: * spec.acceleratorCount: Invalid value: 0: must be greater than or equal to 1",
        ]
    )


def test_a_single_error_is_reported_in_one_line(check: Check) -> None:
    """This is the format of kubectl."""
    code, out, _ = check("a.yaml", a_yaml=GOOD.replace("modelID: m", "modelID: on"))

    assert code == 1
    assert out == [
        'a.yaml:5: The VariantAutoscaling "x" is invalid: spec.modelID: Invalid value: true: must be a string'
    ]


def test_strict_decoding_rejects_unknown_and_duplicate_fields(check: Check) -> None:
    """One line has the API server's message, in its order; then each field is listed with its line."""
    code, out, _ = check("a.yaml", a_yaml=STRICT)

    fields = [
        (7, 'duplicate field "spec.modelID"'),
        (3, 'unknown field "metadata.Labels"'),
        (8, 'unknown field "spec.scaleTargetRef.apiVersio"'),
        (5, 'unknown field "spec.zeta"'),
        (9, 'unknown field "status.whatever"'),
    ]
    assert code == 1
    assert out == [
        'a.yaml:7: Error from server (BadRequest): VariantAutoscaling in version "v1alpha2" cannot be handled'
        f" as a VariantAutoscaling: strict decoding error: {', '.join(text for _, text in fields)}",
        *(f"a.yaml:{line}: * {text}" for line, text in fields),
    ]


def test_warnings_have_the_format_of_kubectl(check: Check) -> None:
    """They are about a deprecated version and a probably unintended value."""
    manifest = legacy_variant("x", variantID="meta/llama-3.1-8b-H100-2")

    code, out, _ = check("a.json", a_json=json.dumps(manifest))

    assert code == 0
    assert out[0] == f"a.json:1: {DEPRECATED}"
    assert out[1].startswith("a.json:1: Warning: spec.variantID is 'meta/llama-3.1-8b-H100-2' but ")
    assert out[2:] == ["a.json:1: VariantAutoscaling/x valid"]


def test_yaml_output_has_the_valid_objects_with_their_defaults(check: Check) -> None:
    """Errors are printed to standard error, and the lines about valid objects are omitted."""
    code, out, err = check("-o", "yaml", "a.yaml", a_yaml=f"{GOOD}---\n{BAD}")

    assert code == 1
    (found,) = yaml.safe_load_all("\n".join(out))
    assert found["spec"] == {
        "modelID": "m",
        "scaleTargetRef": {"kind": "Deployment", "name": "x"},
        "variantCost": "10.0",
    }
    assert err[0] == 'a.yaml:9: The VariantAutoscaling "x" is invalid:'
    assert not any(line.endswith(" valid") for line in err)


def test_json_output_has_all_results(check: Check) -> None:
    """It is one document, whatever the verdicts; standard error is empty."""
    text = f"{GOOD}---\n{STRICT}---\na: {{\n"
    files = {"a_yaml": text, "b_json": json.dumps(deployment("d", product="A100", accelerators=1))}

    code, out, err = check("-o", "json", "a.yaml", "b.json", **files)

    document = json.loads("\n".join(out))
    assert (code, err) == (2, [])
    assert document["summary"] == {"valid": 1, "refused": 1, "skipped": 2, "unreadable": 1}
    valid, refused, unreadable, foreign, whole_file = document["objects"]
    assert valid["object"]["spec"]["variantCost"] == "10.0"
    assert {key: value for key, value in valid.items() if key != "object"} == {
        "file": "a.yaml",
        "line": 1,
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "namespace": "",
        "name": "x",
        "verdict": "valid",
        "errors": [],
        "warnings": [],
    }
    assert refused["errors"][0] == {
        "field": "spec.modelID",
        "reason": "DuplicateField",
        "message": 'duplicate field "spec.modelID"',
        "line": 14,
    }
    assert (unreadable["line"], unreadable["errors"][0]["reason"]) == (18, "Unreadable")
    assert (foreign["verdict"], foreign["kind"], foreign["object"]) == ("skipped", "Deployment", None)
    assert (whole_file["file"], whole_file["line"], whole_file["verdict"]) == ("b.json", 0, "skipped")
    assert whole_file["warnings"][0].startswith("nothing in this file was checked")


def test_a_version_that_is_not_served_is_rejected(check: Check) -> None:
    """The object is not skipped, because its kind is known."""
    code, out, _ = check("a.yaml", a_yaml=GOOD.replace("v1alpha2", "v9"))

    assert code == 1
    assert out == [
        'a.yaml:1: error: no matches for kind "VariantAutoscaling" in version "llmd.ai/v9": the served'
        " versions are llmd.ai/v1alpha1, llmd.ai/v1alpha2"
    ]


def test_fields_that_conversion_restores_from_its_annotation_are_validated(check: Check) -> None:
    """As in admission: other versions would show them."""
    kept = {"fields": [{"path": ["spec", "modelProfile"], "value": {"accelerators": []}}]}
    value = yaml.safe_load(GOOD)
    value["metadata"]["annotations"] = {"llmd.ai/kept-by-conversion": json.dumps(kept)}

    code, out, _ = check("a.yaml", a_yaml=yaml.safe_dump(value))

    assert code == 1
    assert "metadata.annotations[llmd.ai/kept-by-conversion]: Forbidden" in out[0]
    assert "its content is invalid in v1alpha1: spec.modelProfile.accelerators" in out[0]


def test_an_object_beyond_the_size_limit_of_requests_is_rejected(check: Check) -> None:
    """The API server rejects it without decoding it."""
    code, out, _ = check("a.json", a_json=json.dumps(variant("x", modelID="x" * 3_200_000)))

    assert code == 1
    assert out == ["a.json:1: error: Request entity too large: limit is 3145728"]


def test_a_deeply_nested_value_is_rejected_for_its_type(check: Check) -> None:
    """At 100 levels it can still be decoded."""
    deep: Any = 1
    for _ in range(100):
        deep = [deep]

    code, out, _ = check("a.json", a_json=json.dumps(variant("x", modelID=deep)))

    assert (code, len(out)) == (1, 1)
    assert out[0].endswith("]]: must be a string")


def test_file_contents_cannot_control_a_terminal(check: Check) -> None:
    """Escape sequences are printed as text."""
    code, out, _ = check("a.json", a_json=json.dumps(variant("\x1b[2J\nx: valid")))

    assert code == 1
    assert len(out) == 3  # a heading, and the names of the object and of its target
    assert not any("\x1b" in line for line in out)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize(
    ("no_color", "coloured"), [(None, True), ("1", False)], ids=["without NO_COLOR", "NO_COLOR"]
)
def test_colour_is_used_on_terminals_only(
    check: Check, monkeypatch: pytest.MonkeyPatch, no_color: str | None, *, coloured: bool
) -> None:
    """The variable NO_COLOR disables it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    check("a.yaml", a_yaml=GOOD)

    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_a_deprecated_version_causes_one_warning(check: Check) -> None:
    """Of several objects of one version, only the first gets it."""
    many = "---\n".join(yaml.safe_dump(legacy_variant(name)) for name in ("a", "b", "c"))
    code, out, _ = check("a.yaml", a_yaml=many)

    assert code == 0
    assert [line.split(": ", 1)[1] for line in out].count(DEPRECATED) == 1
    assert sum(line.endswith(" valid") for line in out) == 3
