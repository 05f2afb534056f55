"""Shapes of the releases: detection, conversion to them, and what it loses or adds."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.variants import forged, odd, valid

from apiserver.kinds.llmd import v1alpha1
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.kinds.llmd.shapes import RELEASES, SHAPES, Shape, in_shape, shape_of
from apiserver.schema.json import Json, same
from apiserver.schema.model import node_of
from apiserver.schema.validation import validate

ALL = [*SHAPES.values(), *RELEASES.values()]
DECLARED = set(node_of(v1alpha1.VariantAutoscalingSpec).by_name)
PARAMETERS = {"decodeParms": {"alpha": "20.58"}, "prefillParms": {"gamma": "5.2"}}
PROFILE = {"perfParms": PARAMETERS, "maxBatchSize": 4}
CLASS = {"name": "premium-slo", "key": "opt-125m"}
LABEL = {ACCELERATOR_LABEL: "H100"}
BARE = {"acc": "A100", "accCount": 1, "maxBatchSize": 4}


def of(spec: Json, *, version: str = SPOKE, **parts: Json) -> Json:
    """Return an object named llama-8b with that spec."""
    metadata = {"name": "llama-8b"} | parts.pop("metadata", {})
    return {"apiVersion": version, "kind": "VariantAutoscaling", "metadata": metadata, "spec": spec} | parts


def first(*, version: str = SPOKE, **parts: Json) -> Json:
    """Return an object of the modelProfile shape with two candidates."""
    entries = [{"acc": "A100", "accCount": 1, **PROFILE}, {"acc": "H100", "accCount": 2, **PROFILE}]
    return of(
        {"modelID": "m", "sloClassRef": CLASS, "modelProfile": {"accelerators": entries}},
        version=version,
        **parts,
    )


def second(*, version: str = SPOKE, **parts: Json) -> Json:
    """Return an object of the legacy shape."""
    spec = {"modelID": "m", "variantID": "m-A100-4", "accelerator": "A100", "acceleratorCount": 4}
    return of(spec | {"sloClassRef": CLASS, "variantProfile": PROFILE}, version=version, **parts)


def third(*, version: str = SPOKE, **parts: Json) -> Json:
    """Return an object of the current shape, with a target of another name."""
    target = {"kind": "Deployment", "name": "ms-decode"}
    return of({"modelID": "m", "scaleTargetRef": target, "variantCost": "80.50"}, version=version, **parts)


def many(check: Callable[[int, str, Shape], None]) -> Callable[[], None]:
    """Check a law on hundreds of objects in both versions, with all shapes and releases."""

    @functools.wraps(check)
    def several(seed: int, version: str, shape: Shape) -> None:
        for offset in range(8):
            check(seed + offset, version, shape)

    seeds, versions = st.integers(0, 2**62), st.sampled_from([SPOKE, HUB])
    return settings(max_examples=often(60), deadline=None)(
        given(seeds, versions, st.sampled_from(ALL))(several)
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(first(), "modelProfile", id="candidates are the modelProfile shape"),
        pytest.param(second(), "legacy", id="one variant is the legacy shape"),
        pytest.param(third(), "current", id="a target is the current shape"),
        pytest.param(of({"modelID": "m"}), "modelProfile", id="v0.0.5 required only the model"),
        pytest.param(
            second() | {"spec": second()["spec"] | third()["spec"]},
            "legacy",
            id="a target beside the legacy fields",
        ),
        pytest.param(convert(first(), HUB), "modelProfile", id="converted candidates"),
        pytest.param(convert(second(), HUB), "legacy", id="a converted variant"),
        pytest.param(of({}), "current", id="an empty spec"),
    ],
)
def test_a_shape_is_detected_by_its_fields(value: Json, expected: str) -> None:
    """The result is the same in both versions."""
    assert shape_of(value).name == expected


@many
def test_converting_an_object_to_its_own_shape_changes_nothing(seed: int, version: str, shape: Shape) -> None:
    """An object of v1alpha1 is returned itself; one of v1alpha2 becomes what it was converted from."""
    value = valid(seed, version)

    own = shape_of(value)
    shaped = in_shape(value, own)

    assert shaped.made_up == []
    assert (shape.family is own.family) or not same(in_shape(value, shape).value, value)
    if version == SPOKE:
        assert shaped.value is value
        assert shaped.lost == []
        assert same(in_shape(convert(value, HUB), shape_of(value)).value, value)


@many
def test_every_result_is_valid_and_has_the_shape(seed: int, version: str, shape: Shape) -> None:
    """It has all required fields, with placeholders if necessary, and no unknown ones."""
    value = valid(seed, version)
    before = copy.deepcopy(value)

    result = in_shape(value, shape).value

    assert same(value, before)
    assert result["apiVersion"] == SPOKE
    is_bare_as_before = shape_of(value) is shape and set(result["spec"]) == set(convert(value, SPOKE)["spec"])
    assert set(shape.required) <= set(result["spec"]) or is_bare_as_before
    if shape.status is None:
        assert shape_of(result).name == shape.name
        assert validate(v1alpha1.VariantAutoscaling, result) == []
        assert set(result["spec"]) <= DECLARED
    else:
        assert set(result["spec"]) <= shape.fields
        assert set(result.get("status", {})) <= {
            "currentAlloc", "desiredOptimizedAlloc", "actuation", "conditions",
        }  # fmt: skip


@many
def test_a_second_conversion_to_a_shape_changes_nothing(seed: int, version: str, shape: Shape) -> None:
    """Nothing more is lost or added; only the loss of the target may be reported again."""
    once = in_shape(valid(seed, version), shape).value

    again = in_shape(once, shape)

    assert same(again.value, once)
    assert again.made_up == []
    assert [line for line in again.lost if not line.startswith("spec.scaleTargetRef")] == []


@many
def test_every_field_that_is_not_reported_as_lost_can_be_restored(
    seed: int, version: str, shape: Shape
) -> None:
    """An upgrade of the result restores all of the spec that no message names."""
    value = valid(seed, version)
    shaped = in_shape(value, shape)
    told = {line.partition(":")[0] for line in shaped.lost}

    before, again = convert(value, HUB)["spec"], convert(shaped.value, HUB)["spec"]
    if any("perfParms" in line for line in shaped.made_up) and "variantProfile" in before:
        again |= {
            "variantProfile": {name: again["variantProfile"][name] for name in before["variantProfile"]}
        }

    missing = {f"spec.{name}" for name in before if not same(before[name], again.get(name))} - told
    assert missing <= {"spec.accelerator", "spec.scaleTargetRef"}
    if "spec.accelerator" in missing:
        assert shaped.value["metadata"]["labels"][ACCELERATOR_LABEL] == before["accelerator"]
    if "spec.scaleTargetRef" in missing:
        assert before["scaleTargetRef"]["name"] == shaped.value["metadata"]["name"]


@many
def test_no_malformed_object_fails(seed: int, version: str, shape: Shape) -> None:
    """A downgrade must be completed for all objects."""
    value = odd(seed, version)
    annotated = valid(seed, version)
    annotated["metadata"]["annotations"] = {ANNOTATION: str(forged(seed, annotated))}

    for each in (value, annotated):
        assert shape_of(each).name in SHAPES
        assert in_shape(each, shape).value["apiVersion"] == SPOKE


def test_what_only_the_annotation_holds_is_reported_as_lost() -> None:
    """The shape has no field for it, and the annotation is dropped."""
    status = {"decision": {"reason": "Steady", "message": "2 of 2"}, "actuation": {"applied": True}}

    shaped = in_shape(third(version=HUB, status=status), RELEASES["v0.5.1"])

    assert shaped.lost == ["status.decision: only v1alpha2 has this field"]
    assert shaped.value == third(status={"actuation": {"applied": True}})


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama-8b"}
BOUNDS = {"minReplicas": 0, "maxReplicas": 4}
NO_FIGURES = {"decodeParms": {"unknown": "0"}, "prefillParms": {"unknown": "0"}}


@pytest.mark.parametrize(
    ("value", "shape", "spec", "lost", "made_up"),
    [
        pytest.param(
            second(metadata={"labels": LABEL}), "v0.5.0", {"modelID": "m", "scaleTargetRef": TARGET},
            ["spec.acceleratorCount", "spec.sloClassRef", "spec.variantProfile", "spec.accelerator",
             "spec.variantCost"],
            [], id="one variant with another label becomes a target without its accelerator",
        ),
        pytest.param(
            second(status={"currentAlloc": {"numReplicas": 3, "variantCost": "120.00"}}), "v0.5.0",
            {"modelID": "m", "scaleTargetRef": TARGET, "variantCost": "160.00"},
            ["spec.acceleratorCount", "spec.sloClassRef", "spec.variantProfile", "status.currentAlloc"],
            [], id="the cost of one replica is computed from the status",
        ),
        pytest.param(
            first(metadata={"labels": LABEL}), "pull-233",
            {"modelID": "m", "variantID": "m-H100-2", "accelerator": "H100", "acceleratorCount": 2,
             "sloClassRef": CLASS, "variantProfile": PROFILE},
            ["spec.modelProfile.accelerators[0]"], [], id="of several candidates the labelled one is kept",
        ),
        pytest.param(
            second(), "v0.4.2",
            {"modelID": "m", "modelProfile": {"accelerators": [{"acc": "A100", "accCount": 4, **PROFILE}]}},
            ["spec.sloClassRef"], [], id="one variant becomes the only candidate",
        ),
        pytest.param(
            third(metadata={"labels": {ACCELERATOR_LABEL: "A100_80GB"}}), "pull-233",
            {"modelID": "m", "variantID": "m-A10080GB-1", "accelerator": "A100_80GB", "acceleratorCount": 1,
             "sloClassRef": {"name": "service-classes-config", "key": "unknown"},
             "variantProfile": {"perfParms": NO_FIGURES, "maxBatchSize": 256}},
            ["spec.variantCost", "spec.scaleTargetRef"],
            ["spec.variantID", "spec.acceleratorCount", "spec.sloClassRef", "spec.variantProfile.perfParms",
             "spec.variantProfile.maxBatchSize"],
            id="unknown required fields get placeholders that nobody takes for real values",
        ),
        pytest.param(
            of(third()["spec"] | BOUNDS), "v0.7.0", third()["spec"] | BOUNDS, [], [],
            id="bounds stay in a release that has them",
        ),
        pytest.param(
            of(third()["spec"] | BOUNDS), "v0.5.1", third()["spec"], ["spec.minReplicas", "spec.maxReplicas"],
            [], id="earlier releases have no bounds",
        ),
        pytest.param(
            third(), "v0.8.0", third()["spec"] | {"maxReplicas": 2}, [], ["spec.maxReplicas"],
            id="a release with bounds would set the default itself",
        ),
        pytest.param(
            third(status={"desiredOptimizedAlloc": {"numReplicas": 7}}), "v0.8.0",
            third()["spec"] | {"maxReplicas": 7}, [], ["spec.maxReplicas"],
            id="what runs is not limited by the maximum that a release demands",
        ),
        pytest.param(
            third(), "v0.0.5", {"modelID": "m", "variantCost": "80.50"}, ["spec.scaleTargetRef"], [],
            id="a release that required only the model gets no placeholders",
        ),
        pytest.param(
            of({"modelID": "m"}), "v0.4.2", {"modelID": "m"}, [], [],
            id="an object from the chart of that release is unchanged",
        ),
        pytest.param(
            of({"modelID": "m", "modelProfile": {"accelerators": [BARE]}}), "v0.4.1",
            {"modelID": "m", "modelProfile": {"accelerators": [BARE]}}, [], [],
            id="candidates without parameters are unchanged",
        ),
        pytest.param(
            of({"modelID": "m", "sloClassRef": CLASS, "modelProfile": {"accelerators": [BARE]}}), "v0.0.4",
            {"modelID": "m", "sloClassRef": CLASS,
             "modelProfile": {"accelerators": [BARE | {"perfParms": NO_FIGURES}]}},
            [], ["spec.modelProfile.accelerators[0].perfParms"],
            id="an early release requires parameters of each candidate",
        ),
        pytest.param(
            first(), "v0.4.1", {key: item for key, item in first()["spec"].items() if key != "sloClassRef"},
            ["spec.sloClassRef"], [], id="candidates stay without a service class",
        ),
    ],
)  # fmt: skip
def test_each_release_gets_its_fields(
    value: Json, shape: str, spec: Json, lost: list[str], made_up: list[str]
) -> None:
    """What is lost or added is listed by path, in order."""
    shaped = in_shape(value, RELEASES[shape])

    assert shaped.value["spec"] == spec
    assert [line.partition(":")[0] for line in shaped.lost] == lost
    assert [line.partition(":")[0] for line in shaped.made_up] == made_up


def test_the_candidate_in_use_gets_a_label_if_only_the_status_named_it() -> None:
    """The release's status cannot hold it, and without a label another candidate would be in use."""
    shaped = in_shape(first(status={"currentAlloc": {"accelerator": "H100"}}), RELEASES["v0.0.5"])

    assert shaped.value["metadata"]["labels"] == LABEL
    assert [line.partition(":")[0] for line in shaped.lost] == ["status.currentAlloc"]


def test_a_target_with_another_name_is_reported_as_lost() -> None:
    """Older releases scale the Deployment with the name of the object, whatever the target was."""
    assert in_shape(third(), RELEASES["v0.4.2"]).lost == [
        "spec.scaleTargetRef: Deployment ms-decode is scaled; release v0.4.2 scales the Deployment with"
        " the name of the object, llama-8b"
    ]


@pytest.mark.parametrize(
    ("release", "expected", "lost"),
    [
        pytest.param("v0.0.1", {}, ["status.currentAlloc", "status.conditions"], id="no conditions"),
        pytest.param("v0.4.2", {"conditions": []}, ["status.currentAlloc"], id="incomplete, so omitted"),
        pytest.param(
            "pull-233",
            {
                "currentAlloc": {
                    "variantID": "m-A100-4", "accelerator": "A100", "numReplicas": 3, "maxBatch": 4,
                    "variantCost": "120.00",
                },
                "conditions": [],
            },
            [],
            id="completed from the spec",
        ),
        pytest.param("v0.5.1", {"conditions": []}, ["status.currentAlloc"], id="no such field"),
    ],
)  # fmt: skip
def test_a_status_field_is_complete_or_omitted(release: str, expected: Json, lost: list[str]) -> None:
    """A status that the release's own schema rejects would make every write fail."""
    current = {"accelerator": "A100", "numReplicas": 3, "variantCost": "120.00"}

    shaped = in_shape(second(status={"currentAlloc": current, "conditions": []}), RELEASES[release])

    assert shaped.value["status"] == expected
    assert [line.partition(":")[0] for line in shaped.lost if line.startswith("status")] == lost
