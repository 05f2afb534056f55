"""What the admission webhooks say to reviews as an API server sends them."""

from __future__ import annotations

import base64
import json

import pytest
from support.reviews import TARGET, Deployments, legacy, mutate, review, validate, variant

from apiserver.kinds.conversion import convert
from apiserver.schema.filler import Addition
from apiserver.schema.json import Json
from webhooks.review import MalformedReviewError, UnreadableRequestError, decode_admission, encode_verdict


def causes(request: Json) -> list[str]:
    """Return the fields that /mutate refuses a request for."""
    refusal = mutate(request).refusal
    return [cause["field"] for cause in refusal["details"]["causes"]] if refusal else []


RECORDED = Addition("/metadata/annotations", {"stowplan.dev/written-by": "{}"})
"""Who wrote it, of a request that does not say: tests/unit/webhooks/test_authorship.py."""


def test_defaults_are_added_and_nothing_else() -> None:
    """The patch has one addition, beside the record of the writer."""
    verdict = mutate(review(variant()))

    assert verdict.refusal is None
    assert verdict.patch == (Addition("/spec/variantCost", "10.0"), RECORDED)


def test_defaulting_twice_changes_nothing() -> None:
    """A defaulted object has no additions."""
    assert mutate(review(variant(variantCost="10.0"))).patch == (RECORDED,)


def test_a_legacy_object_gets_no_cost() -> None:
    """Its cost comes from the accelerator."""
    assert mutate(review(variant(accelerator="A100"))).patch == (RECORDED,)


def test_a_refusal_reads_as_a_built_in_kind_s() -> None:
    """Status 422 with causes, which kubectl prints without naming a webhook."""
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
    "a status write": review(variant(modelID=""), subResource="status"),
    "an unchanged spec": review(OLD | {"metadata": {"name": "llama", "labels": {"a": "b"}}}, OLD),
    "a finalizer that goes": review(
        OLD | {"metadata": {"name": "llama", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        OLD
        | {"metadata": {"name": "llama", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}},
    ),
    "a kind that is not ours": review({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": 7}),
    "a version that is not served": review(variant(version="v9", modelID="")),
}


@pytest.mark.parametrize("request_", UNJUDGED.values(), ids=UNJUDGED.keys())
def test_what_is_nobody_s_mistake_passes(request_: Json) -> None:
    """These are never refused."""
    assert causes(request_) == []
    assert validate(request_).refusal is None


def test_a_stored_error_is_forgiven_until_its_field_is_touched() -> None:
    """Ratcheting: only what the update breaks is refused."""
    assert causes(review(variant(modelID="", variantCost="2"), OLD)) == []
    assert causes(review(variant(modelID="", variantCost="x"), OLD)) == ["spec.variantCost"]
    assert causes(review(variant(modelID=7, variantCost="1"), OLD)) == ["spec.modelID"]


def nested(levels: int) -> list[object]:
    """Return lists in lists."""
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


def test_a_manifest_that_is_wrong_everywhere_gets_a_short_answer() -> None:
    """A hundred errors are listed, and that there are more."""
    profile: Json = {"accelerators": [{}] * 20_000}
    value = variant(version="v1alpha1", modelProfile=profile)

    found = causes(review(value))

    assert len(found) == 101
    assert found[-1] == "spec"


ODD = {
    "no spec": ({"spec": None}, ["spec"]),
    "a list for a spec": ({"spec": []}, ["spec"]),
    "text for a spec": ({"spec": "x"}, ["spec"]),
    "a megabyte of text": (
        {"spec": {"modelID": "x" * 1_000_000, "scaleTargetRef": TARGET}},
        ["spec.modelID"],
    ),
    "a null in metadata": ({"metadata": None}, []),
    "nesting without end": (
        {"spec": {"modelID": nested(500)}},
        ["spec.scaleTargetRef", "spec.modelID"],
    ),
}


@pytest.mark.parametrize(("change", "want"), ODD.values(), ids=ODD.keys())
def test_odd_objects_make_clear_errors(change: Json, want: list[str]) -> None:
    """Ill-typed objects reach a mutating webhook, and it survives them."""
    request = review(variant() | change)

    assert causes(request) == want
    assert len(json.dumps(mutate(request).refusal)) < 4000


def test_nesting_that_does_not_end_is_answered_by_its_uid() -> None:
    """What cannot even be cut to a depth gets a clear answer too."""
    text = json.dumps({"kind": "AdmissionReview", "request": review(variant(modelID="HERE"))})

    with pytest.raises(UnreadableRequestError, match="not valid JSON") as caught:
        decode_admission(text.replace('"HERE"', "[" * 50_000 + "]" * 40_000).encode())

    assert caught.value.uid == "u1"


def test_advice_never_refuses() -> None:
    """A missing target and an odd identifier are warned of."""
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

    verdict = validate(review(value), Deployments())

    assert verdict.refusal is None
    assert verdict.warnings == (
        "spec.variantID is 'm-H100-2' but model, accelerator and count make 'm-A100-2'",
        "spec.variantProfile.perfParms: decodeParms.beta missing: latency cannot be predicted",
        'spec.scaleTargetRef: Deployment "llama" does not exist yet in namespace "ns"',
    )


def test_no_advice_before_anything_is_known() -> None:
    """An empty cache says nothing, a filled one knows the target."""
    request = review(variant(variantCost="1"))

    assert validate(request).warnings == ()
    assert validate(request, Deployments("llama")).warnings == ()


def test_a_target_that_somebody_scales_already_is_told() -> None:
    """Only to warn: the older one may be about to go."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "claimed"}
    request = review(variant(variantCost="1", scaleTargetRef=target))

    assert validate(request, Deployments("claimed")).warnings == (
        'spec.scaleTargetRef: Deployment "claimed" is already scaled by VariantAutoscaling "older": the'
        " newer of the two is ignored",
    )


def test_a_verdict_is_encoded_as_the_contract_says() -> None:
    """The uid comes back, the patch is base64 of JSON."""
    answer = json.loads(encode_verdict("u1", mutate(review(variant()))))["response"]

    assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("u1", True, "JSONPatch")
    assert json.loads(base64.b64decode(answer["patch"]))[0]["op"] == "add"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"kind":"AdmissionReview"}',
        b'{"kind":"AdmissionReview","request":[]}',
        b'{"kind":"AdmissionReview","request":{"uid":7}}',
        b'{"kind":"AdmissionReview","request":{"uid":""}}',
        b'{"kind":"ConversionReview","request":{"uid":"u"}}',
    ],
)
def test_a_body_that_is_no_review_is_told_so(body: bytes) -> None:
    """Garbage makes one clear error."""
    with pytest.raises(MalformedReviewError):
        decode_admission(body)


def test_a_request_of_odd_types_is_answered_by_its_uid() -> None:
    """Whoever sent it learns what is wrong."""
    with pytest.raises(UnreadableRequestError) as caught:
        decode_admission(b'{"kind":"AdmissionReview","request":{"uid":"u9","operation":7}}')

    assert caught.value.uid == "u9"


ODD_METADATA = {
    "a number for a name": {"name": 5},
    "an owner with an object for a name": {
        "ownerReferences": [{"kind": "Deployment", "controller": True, "name": {}}]
    },
    "labels that are a list": {"labels": []},
    "annotations of numbers": {"annotations": {"a": 1}},
}


@pytest.mark.parametrize("metadata", ODD_METADATA.values(), ids=ODD_METADATA.keys())
def test_odd_metadata_is_answered(metadata: Json) -> None:
    """No API server sends such; whoever does gets an answer and no fault."""
    request = review(legacy(metadata))

    for verdict in (mutate(request), validate(request)):
        assert verdict.refusal is None or verdict.refusal["code"] == 422


def test_no_cost_is_made_up_in_an_edit_of_what_the_older_version_cannot_say() -> None:
    """The unit cost of the accelerator counts, in whichever version the variant is edited."""
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
