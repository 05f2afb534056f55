"""Responses of the admission webhooks to requests in the form that API servers send."""

from __future__ import annotations

import base64
import json

import pytest
from support.reviews import TARGET, Deployments, legacy, mutate, review, validate, variant

from apiserver.kinds.conversion import convert
from apiserver.schema.defaulting import Addition
from apiserver.schema.json import Json, without_depths
from webhooks.review import UnreadableRequestError, decode_admission, encode_response


def causes(request: Json) -> list[str]:
    """Return the fields for which /mutate rejects a request."""
    refusal = mutate(request).refusal
    return [cause["field"] for cause in refusal["details"]["causes"]] if refusal else []


RECORDED = Addition("/metadata/annotations", {"stowplan.dev/written-by": "{}"})
"""The addition that records an unknown writer; see tests/unit/webhooks/test_authorship.py."""


def test_only_defaults_are_added() -> None:
    """The patch adds the default cost and the record of the writer."""
    response = mutate(review(variant()))

    assert response.refusal is None
    assert response.patch == (Addition("/spec/variantCost", "10.0"), RECORDED)


def test_defaulting_twice_changes_nothing() -> None:
    """An object with all defaults gets only the record of the writer."""
    assert mutate(review(variant(variantCost="10.0"))).patch == (RECORDED,)


def test_an_object_with_an_accelerator_gets_no_default_cost() -> None:
    """Its cost comes from the accelerator."""
    assert mutate(review(variant(accelerator="A100"))).patch == (RECORDED,)


def test_a_rejection_has_the_format_of_built_in_kinds() -> None:
    """It is a status 422 with causes, which kubectl prints without naming a webhook."""
    refusal = mutate(review(variant(modelID="", variantCost=5))).refusal

    assert refusal is not None
    assert (refusal["code"], refusal["reason"]) == (422, "Invalid")
    assert refusal["message"] == (
        'VariantAutoscaling.llmd.ai "llama" is invalid: [spec.modelID: Invalid value: "": must be at least 1'
        " character long, spec.variantCost: Invalid value: 5: must be a string]"
    )


OLD = variant(modelID="", variantCost="1")

UNJUDGED = {
    "a delete": review(None, OLD, operation="DELETE"),
    "a write of the status": review(variant(modelID=""), subResource="status"),
    "an unchanged spec": review(OLD | {"metadata": {"name": "llama", "labels": {"a": "b"}}}, OLD),
    "the removal of a finalizer": review(
        OLD | {"metadata": {"name": "llama", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        OLD
        | {"metadata": {"name": "llama", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}},
    ),
    "a kind that is not served": review({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": 7}),
    "a version that is not served": review(variant(version="v9", modelID="")),
}


MISSPELT = {"stowplan.dev/replica": "3", "stowplan.dev/paused": "on", "team": "a"}
KNOWN = {"metadata": {"name": "llama", "annotations": {"stowplan.dev/replica": "3"}}}
ANNOTATED = {
    "new ones": (OLD, ["replicas meant?", "'true' or 'false'"]),
    "a known one and a new one": (OLD | KNOWN, ["'true' or 'false'"]),
}


@pytest.mark.parametrize(("old", "advice"), ANNOTATED.values(), ids=ANNOTATED.keys())
def test_an_update_of_annotations_alone_is_warned_about(old: Json, advice: list[str]) -> None:
    """`kubectl annotate` sends such updates. Only /mutate gets them, as it fails open."""
    request = review(OLD | {"metadata": {"name": "llama", "annotations": MISSPELT}}, old)

    found = mutate(request)

    assert (found.refusal, found.patch, validate(request).warnings) == (None, (), ())
    assert len(found.warnings) == len(advice)
    assert all(text in warning for text, warning in zip(advice, found.warnings, strict=True))


def test_very_many_annotations_cause_few_warnings() -> None:
    """Comparing all of their names would take seconds, in which no other request gets a response."""
    many = {f"stowplan.dev/a{number}": "x" for number in range(10_000)}
    request = review(OLD | {"metadata": {"name": "llama", "annotations": many}}, OLD)

    assert len(mutate(request).warnings) == 64


@pytest.mark.parametrize("request_", UNJUDGED.values(), ids=UNJUDGED.keys())
def test_requests_without_a_changed_spec_of_a_served_kind_and_version_pass(request_: Json) -> None:
    """Both webhooks accept them, even if the spec is invalid."""
    assert causes(request_) == []
    assert validate(request_).refusal is None


def test_an_update_is_rejected_only_for_errors_in_fields_that_it_changes() -> None:
    """Ratcheting: errors that are already stored do not block changes of other fields."""
    assert causes(review(variant(modelID="", variantCost="2"), OLD)) == []
    assert causes(review(variant(modelID="", variantCost="x"), OLD)) == ["spec.variantCost"]
    assert causes(review(variant(modelID=7, variantCost="1"), OLD)) == ["spec.modelID"]


def nested(levels: int) -> list[object]:
    """Return lists nested in each other."""
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


def test_a_rejection_lists_at_most_a_hundred_errors() -> None:
    """One more entry, for the whole spec, states that there are more."""
    profile: Json = {"accelerators": [{}] * 20_000}
    value = variant(version="v1alpha1", modelProfile=profile)

    found = causes(review(value))

    assert len(found) == 101
    assert found[-1] == "spec"


ODD = {
    "a null spec": ({"spec": None}, ["spec"]),
    "a spec that is a list": ({"spec": []}, ["spec"]),
    "a spec that is text": ({"spec": "x"}, ["spec"]),
    "a megabyte of text": (
        {"spec": {"modelID": "x" * 1_000_000, "scaleTargetRef": TARGET}},
        ["spec.modelID"],
    ),
    "a null in metadata": ({"metadata": None}, []),
    "500 nested lists": ({"spec": {"modelID": nested(500)}}, ["spec.scaleTargetRef", "spec.modelID"]),
}


@pytest.mark.parametrize(("change", "want"), ODD.values(), ids=ODD.keys())
def test_malformed_objects_get_short_errors_at_their_fields(change: Json, want: list[str]) -> None:
    """A mutating webhook receives ill-typed objects, and must not fail on them."""
    request = review(variant() | change)

    assert causes(request) == want
    assert len(json.dumps(mutate(request).refusal)) < 4000


def test_the_error_for_unclosed_nested_json_has_the_uid_of_the_request() -> None:
    """The text is invalid JSON even after its deep nesting is truncated."""
    text = json.dumps({"kind": "AdmissionReview", "request": review(variant(modelID="HERE"))})

    with pytest.raises(UnreadableRequestError, match="not valid JSON") as caught:
        decode_admission(without_depths(text.replace('"HERE"', "[" * 50_000 + "]" * 40_000).encode()))

    assert caught.value.uid == "u1"


def test_warnings_do_not_reject_a_request() -> None:
    """They concern an unexpected identifier, a missing parameter and a missing target."""
    value = variant(
        version="v1alpha1",
        variantID="m-H100-2",
        accelerator="A100",
        acceleratorCount=2,
        sloClassRef={"name": "c", "key": "k"},
        variantProfile={
            "perfParms": {"decodeParms": {"alpha": "1"}, "prefillParms": {"gamma": "1", "delta": "1"}},
            "maxBatchSize": 4,
        },
    )

    response = validate(review(value), Deployments())

    assert response.refusal is None
    assert response.warnings == (
        "spec.variantID is 'm-H100-2' but model, accelerator and count make 'm-A100-2'",
        "spec.variantProfile.perfParms: decodeParms.beta missing: latency cannot be predicted",
        'spec.scaleTargetRef: Deployment "llama" does not exist yet in namespace "ns"',
    )


def test_no_warning_if_the_target_exists_or_nothing_is_known_about_it() -> None:
    """Without a cache, it is unknown whether the target exists."""
    request = review(variant(variantCost="1"))

    assert validate(request).warnings == ()
    assert validate(request, Deployments("llama")).warnings == ()


def test_a_target_that_another_object_scales_causes_a_warning() -> None:
    """It is no error, because the older object may be about to be deleted."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "claimed"}
    request = review(variant(variantCost="1", scaleTargetRef=target))

    assert validate(request, Deployments("claimed")).warnings == (
        'spec.scaleTargetRef: Deployment "claimed" is already scaled by VariantAutoscaling "older": the'
        " newer of the two is ignored",
    )


def test_an_autoscaler_that_does_not_follow_causes_a_warning() -> None:
    """It exists already, and reads the number of another variant."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "followed"}
    request = review(variant(variantCost="1", scaleTargetRef=target))

    (warning,) = validate(request, Deployments("followed")).warnings

    assert warning.startswith(
        'spec.scaleTargetRef: Deployment "followed": the selector of wva_desired_replicas'
    )
    assert "HorizontalPodAutoscaler 'ok' requires variant_name=ok" in warning


def test_a_response_is_encoded_as_an_admission_response() -> None:
    """The response repeats the uid, and its patch is base64-encoded JSON."""
    answer = json.loads(encode_response("u1", mutate(review(variant()))))["response"]

    assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("u1", True, "JSONPatch")
    assert json.loads(base64.b64decode(answer["patch"]))[0]["op"] == "add"


ODD_METADATA = {
    "a number for a name": {"name": 5},
    "an owner with an object for a name": {
        "ownerReferences": [{"kind": "Deployment", "controller": True, "name": {}}]
    },
    "labels that are a list": {"labels": []},
    "annotations of numbers": {"annotations": {"a": 1}},
}


@pytest.mark.parametrize("metadata", ODD_METADATA.values(), ids=ODD_METADATA.keys())
def test_malformed_metadata_passes_or_is_rejected_with_status_422(metadata: Json) -> None:
    """API servers do not send such metadata, but it must not cause an internal error."""
    request = review(legacy(metadata))

    for response in (mutate(request), validate(request)):
        assert response.refusal is None or response.refusal["code"] == 422


def test_an_edit_in_either_version_adds_no_default_cost_if_there_is_an_accelerator() -> None:
    """The unit cost of the accelerator counts, even in v1alpha1, which cannot express this spec."""
    stored = variant(version="v1alpha2", accelerator="H100")
    edited = convert(stored, "llmd.ai/v1alpha1")
    edited = edited | {"spec": edited["spec"] | {"modelID": "another/model"}}

    for new, old in (
        (edited, convert(stored, "llmd.ai/v1alpha1")),
        (convert(edited, "llmd.ai/v1alpha2"), stored),
    ):
        (addition,) = mutate(review(new, old)).patch
        assert isinstance(addition, Addition)
        assert addition.path == "/metadata/annotations"
