"""Shortcuts of conversion: the result is that of the full conversion."""

from __future__ import annotations

import copy
from collections.abc import Callable

import msgspec
import pytest
from support.laws import OTHER, annotations_of, answered, answered_text, bare, law
from support.variants import odd, valid

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.splicing import convert_text
from apiserver.schema.json import Json
from apiserver.schema.undecoded import same

KEEPS_NOTHING = "{}"
"""With this value in the annotation, conversion takes no shortcut, whatever the object looks like."""

HIDDEN = {
    "a slash": ANNOTATION.replace("/", "\\/"),
    "a letter": ANNOTATION.replace("l", "\\u006c", 1),
    "every character": "".join(f"\\u{ord(letter):04x}" for letter in ANNOTATION),
}
"""Spellings of the annotation's name that a text search does not find."""


@pytest.mark.parametrize("draw", [valid, odd])
def test_the_shortcut_has_the_same_result_as_the_full_conversion(draw: Callable[[int, str], Json]) -> None:
    """If a shortcut changes only the version, the full conversion would change nothing else either."""

    @law
    def check(seed: int, version: str) -> None:
        value = bare(draw(seed, version))
        if not isinstance(value.get("metadata"), dict):
            return
        walked = copy.deepcopy(value)
        annotations = annotations_of(walked)
        walked["metadata"]["annotations"] = annotations | {ANNOTATION: KEEPS_NOTHING}

        assert same(convert(walked, OTHER[version]), convert(value | emptied(value), OTHER[version]))
        assert same(answered(walked, OTHER[version]), answered(value | emptied(value), OTHER[version]))

    check()  # type: ignore[call-arg]


def emptied(value: Json) -> Json:
    """Return the metadata of an object, without annotations if there are none."""
    metadata = value["metadata"]
    others = {name: item for name, item in metadata.items() if name != "annotations"}
    annotations = annotations_of(value)
    return {"metadata": others | ({"annotations": annotations} if annotations else {})}


@pytest.mark.parametrize("written", HIDDEN.values(), ids=HIDDEN.keys())
def test_the_annotation_counts_however_its_name_is_spelled(written: str) -> None:
    """JSON text can escape any character."""
    value = kept_aside()
    text = msgspec.json.encode(value)
    hidden = text.replace(f'"{ANNOTATION}"'.encode(), f'"{written}"'.encode())

    assert hidden != text
    assert same(answered_text(hidden, HUB), convert(value, HUB))
    assert "decision" in answered_text(hidden, HUB)["status"]


def kept_aside() -> Json:
    """Return an object of v1alpha1 whose annotation keeps a decision."""
    target = {"kind": "Deployment", "name": "a"}
    value = {
        "apiVersion": HUB,
        "kind": "VariantAutoscaling",
        "metadata": {"name": "a"},
        "spec": {"modelID": "m", "scaleTargetRef": target},
        "status": {"decision": {"reason": "Steady", "message": "m"}},
    }
    return convert(value, SPOKE)


@pytest.mark.parametrize("version", [SPOKE, HUB])
def test_numbers_in_the_annotation_keep_their_notation(version: str) -> None:
    """A number that no version reads keeps its digits there and back, even those beyond float precision."""
    numbers = "[10.50,-0,1e2,123456789012345678901234567890]"
    spec = f'{{"modelID":"m","modelProfile":{numbers},"accelerator":{numbers},"variantID":{numbers}}}'
    text = f'{{"apiVersion":"{version}","kind":"VariantAutoscaling","metadata":{{}},"spec":{spec}}}'

    there = convert_text(msgspec.Raw(text.encode()), OTHER[version])
    back = bytes(convert_text(there, version))

    assert back.count(numbers.encode()) == 3
