"""JSON manifests keep their style: line ends, indentation, and how close everything stands."""

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
COMPACT = json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False)
INDENTED = json.dumps(VALUE, indent=3, ensure_ascii=False)
RESTYLED = "a.json:1: numbers and spacing are reformatted"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(COMPACT, id="compact"),
        pytest.param(json.dumps(VALUE), id="on one line, escaped"),
        pytest.param(json.dumps(VALUE, ensure_ascii=False) + "\n", id="on one line"),
        pytest.param(INDENTED, id="indented by three"),
        pytest.param(json.dumps(VALUE, indent="\t") + "\n\n", id="indented by tabs"),
        pytest.param(json.dumps(VALUE, indent=0, separators=(",", ":")), id="lines without indentation"),
        pytest.param(INDENTED.replace("\n", "\r\n") + "\r\n", id="with the line ends of Windows"),
        pytest.param(f"\n{COMPACT}\r\n  {INDENTED}\n\n{COMPACT}", id="one of each in one file"),
    ],
)
def test_a_usual_style_keeps_every_byte(convert: Convert, text: str) -> None:
    """But for what changes; then there is nothing to tell."""
    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", "--in-place", a_json=text)
    _, back, _ = convert("-f", "a.json", "--to", "v1alpha2")
    _, as_it_is, _ = convert("-f", "a.json", "--to", "v1alpha1")

    ended = text if text.endswith("\n") else f"{text}\n"
    assert (code, out, err) == (0, "", [])
    assert as_it_is == ended.replace("v1alpha2", "v1alpha1")
    assert back == ended


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(COMPACT.replace("0.5", "5e-1"), COMPACT, id="a number"),
        pytest.param(COMPACT.replace(":[", " : ["), COMPACT, id="uneven spacing"),
        pytest.param(INDENTED.replace('"kind"', ' "kind"'), INDENTED, id="uneven indentation"),
    ],
)
def test_what_is_written_anew_is_told(convert: Convert, text: str, expected: str) -> None:
    """In the style that is nearest."""
    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", a_json=text)

    value = VALUE | {"apiVersion": "llmd.ai/v1alpha1"}
    assert (code, err) == (0, [RESTYLED])
    assert json.loads(out) == value
    assert out.count("\n") == expected.count("\n") + 1


def test_what_stays_is_not_called_rewritten(convert: Convert) -> None:
    """However odd it stands there."""
    text = COMPACT.replace(":[", " : [").replace("0.5", "5e-1")

    code, out, err = convert("-f", "a.json", "--to", "v1alpha2", a_json=text)

    assert (code, out, err) == (0, text + "\n", [])
