"""Another accelerator in the label of an object that has one: the same in every version, and said."""

from __future__ import annotations

import copy

import msgspec
import pytest
from support.manifests import PERF_PARMS
from support.reviews import mutate, review, validate, variant

from apiserver.kinds.llmd.conversion import HUB, SPOKE, convert
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.filler import Addition
from apiserver.schema.json import Json

CANDIDATES = [
    {"acc": name, "accCount": count, "perfParms": PERF_PARMS, "maxBatchSize": 4}
    for name, count in (("A100", 1), ("H100", 2), ("L40S", 4))
]
LABELS = [None, "A100", "H100", "L40S", "unheard-of"]


def profiled(label: str | None, *, in_status: str | None = None) -> Json:
    """Return an object of the modelProfile shape."""
    status = {"status": {"currentAlloc": {"accelerator": in_status}}} if in_status else {}
    return {
        "apiVersion": SPOKE,
        "kind": "VariantAutoscaling",
        "metadata": {"name": "llama", "labels": {ACCELERATOR_LABEL: label} if label else {}},
        "spec": {"modelID": "m", "modelProfile": {"accelerators": copy.deepcopy(CANDIDATES)}},
    } | status


def relabelled(value: Json, label: str | None) -> Json:
    """Return an object with another label."""
    labels = {ACCELERATOR_LABEL: label} if label else {}
    return value | {"metadata": value["metadata"] | {"labels": labels}}


def written(value: Json, old: Json) -> Json:
    """Return what the server makes of an update: patched, and with the status that was stored."""
    value = copy.deepcopy(value) | {name: old[name] for name in ("status",) if name in old}
    for operation in msgspec.to_builtins(mutate(review(value, old)).patch):
        *outer, name = operation["path"].strip("/").split("/")
        holder = value
        for part in outer:
            holder = holder[part]
        holder[name] = operation["value"]
    return value


@pytest.mark.parametrize("in_status", [None, "H100"])
@pytest.mark.parametrize("after", LABELS)
@pytest.mark.parametrize("before", LABELS)
def test_a_label_changes_no_spec_in_any_version(before: str, after: str, in_status: str | None) -> None:
    """Nor does a second one, nor does anything else get lost."""
    stored = convert(profiled(before, in_status=in_status), HUB)
    there = {version: convert(stored, version) for version in (SPOKE, HUB)}

    for value in there.values():
        once = written(relabelled(value, after), value)
        twice = written(relabelled(once, before), once)
        for found in (once, twice):
            assert convert(found, HUB)["spec"] == stored["spec"]
            assert convert(convert(found, HUB), SPOKE)["spec"] == there[SPOKE]["spec"]


def test_an_edit_that_comes_with_a_label_is_made_and_the_accelerator_stays() -> None:
    """As long as it is a candidate; a candidate that goes takes its part with it."""
    old = convert(convert(profiled("A100"), HUB), SPOKE)
    edited = relabelled(old, "H100")
    edited["spec"] = edited["spec"] | {"modelID": "another"}
    found = convert(written(edited, old), HUB)["spec"]
    assert (found["modelID"], found["accelerator"], found["acceleratorCount"]) == ("another", "A100", 1)

    edited["spec"] = {"modelID": "m", "modelProfile": {"accelerators": CANDIDATES[1:]}}
    found = convert(written(edited, old), HUB)["spec"]
    assert (found["accelerator"], found["acceleratorCount"]) == ("H100", 2)


def test_an_edit_of_the_accelerator_reaches_its_candidate_whatever_the_label() -> None:
    """What the older version is told to remember goes with the edit."""
    stored = relabelled(convert(profiled("A100"), HUB), "H100")
    stored["spec"] = stored["spec"] | {"acceleratorCount": 8}

    spoke = convert(stored, SPOKE)

    counts = [entry["accCount"] for entry in spoke["spec"]["modelProfile"]["accelerators"]]
    assert counts == [8, 2, 4]
    assert convert(spoke, HUB)["spec"] == stored["spec"]


def test_annotations_of_others_stay_beside_what_is_remembered() -> None:
    """The patch sets all annotations, for there may be none."""
    old = profiled("A100")
    new = relabelled(old, "H100")
    new["metadata"] = new["metadata"] | {"annotations": {"mine": "yes"}}

    assert written(new, old)["metadata"]["annotations"]["mine"] == "yes"


def test_nothing_is_remembered_where_no_label_changed() -> None:
    """Who takes the annotation out, as the way back does, finds it gone."""
    old = convert(relabelled(convert(profiled("A100"), HUB), "H100"), SPOKE)
    bare = old | {"metadata": {name: old["metadata"][name] for name in ("name", "labels")}}

    (addition,) = mutate(review(bare, old)).patch

    assert addition == Addition("/metadata/annotations", {"stowplan.dev/written-by": "{}"})


WARNED = {
    "v1alpha2, whose spec says another": variant(accelerator="A100", acceleratorCount=1, variantCost="1"),
    "v1alpha1, where another candidate is in use": convert(convert(profiled("A100"), HUB), SPOKE),
}
"""Relabelled to H100."""


@pytest.mark.parametrize("old", WARNED.values(), ids=WARNED.keys())
def test_a_label_without_effect_is_told(old: Json) -> None:
    """By the write that brings it, though it leaves the spec alone."""
    new = written(relabelled(old, "H100"), old)

    warnings = validate(review(new, old)).warnings

    assert [text for text in warnings if "'H100' has no effect" in text]


EFFECTIVE = {
    "v1alpha2 without an accelerator": variant(variantCost="1"),
    "v1alpha2, whose spec says the same": variant(accelerator="H100", acceleratorCount=1, variantCost="1"),
    "the current shape of v1alpha1": variant(version="v1alpha1", variantCost="1"),
    "a candidate, on creation": profiled(None),
}
"""Labelled H100."""


@pytest.mark.parametrize("value", EFFECTIVE.values(), ids=EFFECTIVE.keys())
def test_a_label_with_an_effect_is_no_matter_of_a_warning(value: Json) -> None:
    """Nor is one that says what the spec says."""
    warnings = validate(review(relabelled(value, "H100"))).warnings

    assert [text for text in warnings if "has no effect" in text] == []
