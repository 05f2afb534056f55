"""JSON manifests keep their style: line endings, indentation and spacing."""

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
VARIANT = {
    "apiVersion": "llmd.ai/v1alpha1",
    "kind": "VariantAutoscaling",
    "metadata": {"name": "ä"},
    "spec": {"modelID": "m", "accelerator": "A100", "x": [1, {"y": 0.5}]},
}
FORMER = json.dumps(VARIANT, separators=(",", ":"), ensure_ascii=False)
FORMER_LINES = json.dumps(VARIANT, indent=3, ensure_ascii=False)
RESTYLED = "numbers and spacing are reformatted; numbers of more than 15 digits lose the further ones"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(COMPACT, id="compact"),
        pytest.param(json.dumps(VALUE), id="on one line, escaped"),
        pytest.param(json.dumps(VALUE, ensure_ascii=False) + "\n", id="on one line"),
        pytest.param(INDENTED, id="indented by three"),
        pytest.param(json.dumps(VALUE, indent="\t") + "\n\n", id="indented by tabs"),
        pytest.param(json.dumps(VALUE, indent=0, separators=(",", ":")), id="lines without indentation"),
        pytest.param(INDENTED.replace("\n", "\r\n") + "\r\n", id="with line endings of Windows"),
        pytest.param(f"\n{COMPACT}\r\n  {INDENTED}\n\n{COMPACT}", id="several styles in one file"),
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
        pytest.param(FORMER.replace("0.5", "5e-1"), FORMER, id="a number"),
        pytest.param(FORMER.replace(',"x"', ' ,"x"'), FORMER, id="uneven spacing"),
        pytest.param(FORMER_LINES.replace('"modelID"', ' "modelID"'), FORMER_LINES, id="uneven indentation"),
    ],
)
def test_a_reformatted_document_is_reported(convert: Convert, text: str, even: str) -> None:
    """It gets the nearest usual style."""
    expected = convert("-f", "a.json", "--to", "v1alpha2", a_json=even)

    code, out, err = convert("-f", "a.json", "--to", "v1alpha2", a_json=text)

    line = 1 + text[: text.index('"spec"')].count("\n")
    assert (code, out) == expected[:2]
    assert err == [*expected[2], f"a.json:{line}: {RESTYLED}"]


@pytest.mark.parametrize("indent", [None, 4])
def test_unchanged_parts_keep_their_digits(convert: Convert, indent: int | None) -> None:
    """These are other items of a list, and other members of a changed object."""
    items = [{"kind": "Other", "apiVersion": "v1", "x": "DIGITS"}, VALUE | {"status": {"x": "DIGITS"}}]
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    text = json.dumps(whole, indent=indent).replace('"DIGITS"', "[12345678901234567890, 1.0, 1e5]")

    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", a_json=text)

    assert (code, out, err) == (0, text.replace("v1alpha2", "v1alpha1") + "\n", [])


@pytest.mark.parametrize("text", [FORMER, FORMER_LINES], ids=["on one line", "indented"])
def test_an_item_is_written_in_the_style_of_its_list(convert: Convert, text: str) -> None:
    """The result is the same as for the item alone."""
    indent = 3 if "\n" in text else None
    alone = json.loads(convert("-f", "a.json", "--to", "v1alpha2", a_json=text)[1])
    separators = (",", ":") if indent is None else None

    def listed(value: object) -> str:
        whole = {"kind": "List", "apiVersion": "v1", "items": [value]}
        return json.dumps(whole, indent=indent, separators=separators, ensure_ascii=False)

    code, out, _ = convert("-f", "b.json", "--to", "v1alpha2", b_json=listed(json.loads(text)))

    assert (code, out) == (0, listed(alone) + "\n")


def test_an_unchanged_document_is_not_reported_as_reformatted(convert: Convert) -> None:
    """It keeps even an unusual style."""
    text = COMPACT.replace(":[", " : [").replace("0.5", "5e-1")

    code, out, err = convert("-f", "a.json", "--to", "v1alpha2", a_json=text)

    assert (code, out, err) == (0, text + "\n", [])
