"""Changes of the accelerator label of an object with an accelerator: no effect, but a warning."""

from __future__ import annotations

import copy

import msgspec
import pytest
from support.manifests import PERF_PARMS
from support.reviews import mutate, review, validate, variant

from apiserver.kinds.llmd.conversion import HUB, SPOKE, convert
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.defaulting import Addition
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
    """Return what the API server stores for an update: the patched object with the stored status."""
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
    """A second change has no effect either, and no field of the spec is lost."""
    stored = convert(profiled(before, in_status=in_status), HUB)
    there = {version: convert(stored, version) for version in (SPOKE, HUB)}

    for value in there.values():
        once = written(relabelled(value, after), value)
        twice = written(relabelled(once, before), once)
        for found in (once, twice):
            assert convert(found, HUB)["spec"] == stored["spec"]
            assert convert(convert(found, HUB), SPOKE)["spec"] == there[SPOKE]["spec"]


def test_an_edit_with_a_label_change_applies_and_the_accelerator_stays() -> None:
    """If the accelerator is no longer a candidate, the labelled one is used."""
    old = convert(convert(profiled("A100"), HUB), SPOKE)
    edited = relabelled(old, "H100")
    edited["spec"] = edited["spec"] | {"modelID": "another"}
    found = convert(written(edited, old), HUB)["spec"]
    assert (found["modelID"], found["accelerator"], found["acceleratorCount"]) == ("another", "A100", 1)

    edited["spec"] = {"modelID": "m", "modelProfile": {"accelerators": CANDIDATES[1:]}}
    found = convert(written(edited, old), HUB)["spec"]
    assert (found["accelerator"], found["acceleratorCount"]) == ("H100", 2)


def test_an_edit_of_the_accelerator_count_applies_to_its_candidate_whatever_the_label() -> None:
    """What the annotation keeps for v1alpha1 follows the edit."""
    stored = relabelled(convert(profiled("A100"), HUB), "H100")
    stored["spec"] = stored["spec"] | {"acceleratorCount": 8}

    spoke = convert(stored, SPOKE)

    counts = [entry["accCount"] for entry in spoke["spec"]["modelProfile"]["accelerators"]]
    assert counts == [8, 2, 4]
    assert convert(spoke, HUB)["spec"] == stored["spec"]


def test_other_annotations_stay_when_the_accelerator_is_kept_in_one() -> None:
    """The patch sets all annotations, because there may be none yet."""
    old = profiled("A100")
    new = relabelled(old, "H100")
    new["metadata"] = new["metadata"] | {"annotations": {"mine": "yes"}}

    assert written(new, old)["metadata"]["annotations"]["mine"] == "yes"


def test_the_accelerator_is_not_kept_in_an_annotation_if_the_label_is_unchanged() -> None:
    """An annotation that a user removes, as a downgrade does, is not added again."""
    old = convert(relabelled(convert(profiled("A100"), HUB), "H100"), SPOKE)
    bare = old | {"metadata": {name: old["metadata"][name] for name in ("name", "labels")}}

    (addition,) = mutate(review(bare, old)).patch

    assert addition == Addition("/metadata/annotations", {"stowplan.dev/written-by": "{}"})


WARNED = {
    "v1alpha2 with another accelerator in the spec": variant(
        accelerator="A100", acceleratorCount=1, variantCost="1"
    ),
    "v1alpha1 with another candidate in use": convert(convert(profiled("A100"), HUB), SPOKE),
}
"""Objects that an update labels H100."""


@pytest.mark.parametrize("old", WARNED.values(), ids=WARNED.keys())
def test_a_label_without_effect_causes_a_warning(old: Json) -> None:
    """The update that sets the label gets it, although the spec is unchanged."""
    new = written(relabelled(old, "H100"), old)

    warnings = validate(review(new, old)).warnings

    assert [text for text in warnings if "'H100' has no effect" in text]


EFFECTIVE = {
    "v1alpha2 without an accelerator": variant(variantCost="1"),
    "v1alpha2 with the same accelerator in the spec": variant(
        accelerator="H100", acceleratorCount=1, variantCost="1"
    ),
    "the current shape of v1alpha1": variant(version="v1alpha1", variantCost="1"),
    "a candidate, at creation": profiled(None),
}
"""Objects that are created with the label H100."""


@pytest.mark.parametrize("value", EFFECTIVE.values(), ids=EFFECTIVE.keys())
def test_a_label_with_an_effect_or_equal_to_the_spec_causes_no_warning(value: Json) -> None:
    """Only a label that is ignored causes one."""
    warnings = validate(review(relabelled(value, "H100"))).warnings

    assert [text for text in warnings if "has no effect" in text] == []


def test_a_change_of_a_label_without_a_key_is_left_to_the_api_server() -> None:
    """No label of a kind with one version matters for conversion; the API server refuses an empty key."""
    old = {
        "apiVersion": "networking.volcano.sh/v1alpha1",
        "kind": "ModelServer",
        "metadata": {"name": "llama", "labels": {"": "a"}},
        "spec": {"inferenceEngine": "vLLM", "workloadSelector": {"matchLabels": {"app": "llama"}}},
    }
    new = old | {"metadata": {"name": "llama", "labels": {"": "b"}}}

    assert mutate(review(new, old)).refusal is None
