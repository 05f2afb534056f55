"""The shapes of the releases: told apart, given back, and what that loses or makes up."""

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
from apiserver.kinds.llmd.shapes import RELEASES, SHAPES, Shape, in_shape, shape_of, without_annotation
from apiserver.schema.json import Json
from apiserver.schema.undecoded import same
from apiserver.schema.validation import validate

ALL = [*SHAPES.values(), *RELEASES.values()]
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
    """Try a law on a thousand objects in both versions, for every shape and release in turn."""

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
        pytest.param(of({"modelID": "m"}), "modelProfile", id="v0.0.5 demanded the model only"),
        pytest.param(
            second() | {"spec": second()["spec"] | third()["spec"]}, "legacy", id="a target beside it"
        ),
        pytest.param(convert(first(), HUB), "modelProfile", id="converted candidates"),
        pytest.param(convert(second(), HUB), "legacy", id="a converted variant"),
        pytest.param(of({}), "current", id="nothing at all"),
    ],
)
def test_a_shape_is_told_by_its_fields(value: Json, expected: str) -> None:
    """In whichever version an object comes."""
    assert shape_of(value).name == expected


@many
def test_the_own_shape_is_no_change(seed: int, version: str, shape: Shape) -> None:
    """The very object for v1alpha1; for v1alpha2 what it was converted from, or what it is there."""
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
def test_every_result_is_valid_and_of_the_shape(seed: int, version: str, shape: Shape) -> None:
    """Placeholders included; a release's schema finds its fields, all that it demands, and no others."""
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
    else:
        assert set(result["spec"]) <= shape.fields
        assert set(result.get("status", {})) <= {
            "currentAlloc", "desiredOptimizedAlloc", "actuation", "conditions",
        }  # fmt: skip


@many
def test_a_shape_is_taken_once(seed: int, version: str, shape: Shape) -> None:
    """What has a release's shape stays as it is, and nothing more is lost or made up."""
    once = in_shape(valid(seed, version), shape).value

    again = in_shape(once, shape)

    assert same(again.value, once)
    assert again.made_up == []
    assert [line for line in again.lost if not line.startswith("spec.scaleTargetRef")] == []


@many
def test_what_is_not_told_lost_is_there(seed: int, version: str, shape: Shape) -> None:
    """An upgrade from the result brings back every field of the spec that no sentence names."""
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
def test_no_object_however_odd_fails(seed: int, version: str, shape: Shape) -> None:
    """A downgrade must come to its end."""
    value = odd(seed, version)
    annotated = valid(seed, version)
    annotated["metadata"]["annotations"] = {ANNOTATION: str(forged(seed, annotated))}

    for each in (value, annotated):
        assert shape_of(each).name in SHAPES
        assert in_shape(each, shape).value["apiVersion"] == SPOKE


def test_the_annotation_is_kept_on_request() -> None:
    """For a later way up; the shape can't hold what is in it, so that is told all the same."""
    status = {"decision": {"reason": "Steady", "message": "2 of 2"}, "actuation": {"applied": True}}
    value = third(version=HUB, status=status)

    kept, dropped = (
        in_shape(value, RELEASES["v0.5.1"], keep_annotation=True),
        in_shape(value, RELEASES["v0.5.1"]),
    )

    assert kept.lost == dropped.lost == ["status.decision: only v1alpha2 has this field"]
    assert convert(kept.value, HUB) == value
    assert without_annotation(kept.value) == dropped.value == third(status={"actuation": {"applied": True}})


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama-8b"}
NO_FIGURES = {"decodeParms": {"unknown": "0"}, "prefillParms": {"unknown": "0"}}


@pytest.mark.parametrize(
    ("value", "shape", "spec", "lost", "made_up"),
    [
        pytest.param(
            second(metadata={"labels": LABEL}), "v0.5.0", {"modelID": "m", "scaleTargetRef": TARGET},
            ["spec.acceleratorCount", "spec.sloClassRef", "spec.variantProfile", "spec.accelerator",
             "spec.variantCost"],
            [], id="one variant whose label says otherwise becomes a target without its accelerator",
        ),
        pytest.param(
            second(status={"currentAlloc": {"numReplicas": 3, "variantCost": "120.00"}}), "v0.5.0",
            {"modelID": "m", "scaleTargetRef": TARGET, "variantCost": "160.00"},
            ["spec.acceleratorCount", "spec.sloClassRef", "spec.variantProfile", "status.currentAlloc"],
            [], id="the cost of one replica follows from the status",
        ),
        pytest.param(
            first(metadata={"labels": LABEL}), "pull-233",
            {"modelID": "m", "variantID": "m-H100-2", "accelerator": "H100", "acceleratorCount": 2,
             "sloClassRef": CLASS, "variantProfile": PROFILE},
            ["spec.modelProfile.accelerators[0]"], [], id="of several candidates the labelled one is left",
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
            id="what nobody knows gets a placeholder that nobody takes for a figure",
        ),
        pytest.param(
            third(), "v0.0.5", {"modelID": "m", "variantCost": "80.50"}, ["spec.scaleTargetRef"], [],
            id="the release that demanded the model only gets nothing made up",
        ),
        pytest.param(
            of({"modelID": "m"}), "v0.4.2", {"modelID": "m"}, [], [],
            id="what the chart of that release makes comes back as it was",
        ),
        pytest.param(
            of({"modelID": "m", "modelProfile": {"accelerators": [BARE]}}), "v0.4.1",
            {"modelID": "m", "modelProfile": {"accelerators": [BARE]}}, [], [],
            id="candidates without parameters come back as they were",
        ),
        pytest.param(
            of({"modelID": "m", "sloClassRef": CLASS, "modelProfile": {"accelerators": [BARE]}}), "v0.0.4",
            {"modelID": "m", "sloClassRef": CLASS,
             "modelProfile": {"accelerators": [BARE | {"perfParms": NO_FIGURES}]}},
            [], ["spec.modelProfile.accelerators[0].perfParms"],
            id="an early release demands parameters of each candidate",
        ),
        pytest.param(
            first(), "v0.4.1", {key: item for key, item in first()["spec"].items() if key != "sloClassRef"},
            ["spec.sloClassRef"], [], id="candidates stay, the service class goes as the release has none",
        ),
    ],
)  # fmt: skip
def test_what_each_release_gets(
    value: Json, shape: str, spec: Json, lost: list[str], made_up: list[str]
) -> None:
    """By the table of the fields; the paths of what is lost and made up, in order."""
    shaped = in_shape(value, RELEASES[shape])

    assert shaped.value["spec"] == spec
    assert [line.partition(":")[0] for line in shaped.lost] == lost
    assert [line.partition(":")[0] for line in shaped.made_up] == made_up


def test_the_candidate_in_use_is_labelled_where_only_status_told_it() -> None:
    """A release's status can't hold all of it, and without it another candidate would be in use."""
    shaped = in_shape(first(status={"currentAlloc": {"accelerator": "H100"}}), RELEASES["v0.0.5"])

    assert shaped.value["metadata"]["labels"] == LABEL
    assert [line.partition(":")[0] for line in shaped.lost] == ["status.currentAlloc"]


def test_a_target_of_another_name_is_told() -> None:
    """Older releases scale the Deployment that is named like the object, whatever the target was."""
    assert in_shape(third(), RELEASES["v0.4.2"]).lost == [
        "spec.scaleTargetRef: Deployment ms-decode is scaled; release v0.4.2 scales the Deployment with"
        " the name of the object, llama-8b"
    ]


@pytest.mark.parametrize(
    ("release", "expected", "lost"),
    [
        pytest.param("v0.0.1", {}, ["status.currentAlloc", "status.conditions"], id="no conditions"),
        pytest.param("v0.4.2", {"conditions": []}, ["status.currentAlloc"], id="incomplete"),
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
def test_status_is_complete_or_left_out(release: str, expected: Json, lost: list[str]) -> None:
    """A status that the release's own schema refuses would make every write fail."""
    current = {"accelerator": "A100", "numReplicas": 3, "variantCost": "120.00"}

    shaped = in_shape(second(status={"currentAlloc": current, "conditions": []}), RELEASES[release])

    assert shaped.value["status"] == expected
    assert [line.partition(":")[0] for line in shaped.lost if line.startswith("status")] == lost
