"""JSON manifests keep their indentation and line endings."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

Convert = Callable[..., tuple[int, str, list[str]]]

VALUE = {
    "apiVersion": "llmd.ai/v1alpha2",
    "kind": "VariantAutoscaling",
    "metadata": {"name": "ä, b: c", "labels": {}},
    "spec": {"x": [1, {"y": 0.5}], "z": [], "scaleTargetRef": {"kind": "D", "name": "d"}},
}
LINE = json.dumps(VALUE, ensure_ascii=False)
INDENTED = json.dumps(VALUE, indent=3, ensure_ascii=False)
RESTYLED = "numbers and spacing are reformatted; numbers of more than 15 digits lose the further ones"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LINE + "\n", id="on one line"),
        pytest.param(INDENTED, id="indented by three"),
        pytest.param(json.dumps(VALUE, indent="\t", ensure_ascii=False) + "\n\n", id="indented by tabs"),
        pytest.param(INDENTED.replace("\n", "\r\n") + "\r\n", id="with line endings of Windows"),
        pytest.param(f"\n{LINE}\r\n  {INDENTED}\n\n{LINE}", id="several in one file"),
    ],
)
def test_a_usual_style_keeps_every_byte(convert: Convert, text: str) -> None:
    """Only the version changes, without a message."""
    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", "--in-place", a_json=text)
    _, back, _ = convert("-f", "a.json", "--to", "v1alpha2")
    _, as_it_is, _ = convert("-f", "a.json", "--to", "v1alpha1")

    ended = text if text.endswith("\n") else f"{text}\n"
    assert (code, out, err) == (0, "", [])
    assert as_it_is == ended.replace("v1alpha2", "v1alpha1")
    assert back == ended


@pytest.mark.parametrize(
    ("text", "even"),
    [
        pytest.param(LINE.replace("0.5", "5e-1"), LINE, id="a number"),
        pytest.param(json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False), LINE, id="compact"),
        pytest.param(json.dumps(VALUE), LINE, id="escaped"),
        pytest.param(INDENTED.replace('"spec"', ' "spec"'), INDENTED, id="uneven indentation"),
    ],
)
def test_a_reformatted_document_is_reported(convert: Convert, text: str, even: str) -> None:
    """It gets the nearest usual style."""
    expected = convert("-f", "a.json", "--to", "v1alpha1", a_json=even)

    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", a_json=text)

    assert (code, out) == expected[:2]
    assert err == [*expected[2], f"a.json:1: {RESTYLED}"]


def test_an_unchanged_document_keeps_every_byte(convert: Convert) -> None:
    """It keeps even an unusual style, and nothing is reported."""
    text = LINE.replace(": [", " : [").replace("0.5", "5e-1")

    code, out, err = convert("-f", "a.json", "--to", "v1alpha2", a_json=text)

    assert (code, out, err) == (0, text + "\n", [])
