"""The fence around what our objects may have scaled."""

from __future__ import annotations

import json

import pytest
from support.reviews import (
    RESOURCES,
    TARGET,
    Permissions,
    asked_by,
    legacy,
    mutate,
    owned_by,
    review,
    validate,
    variant,
)

from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json
from webhooks.scaling import Scaling


def test_who_names_a_target_must_be_allowed_to_scale_it() -> None:
    """The refusal is one of the object's errors; both webhooks say it."""
    scaling = Scaling(resources=RESOURCES, authorizer=Permissions("ann"))

    assert validate(asked_by("ann", variant()), scaling=scaling).refusal is None
    for verdict in (
        validate(asked_by("bob", variant(modelID="")), scaling=scaling),
        mutate(asked_by("bob", variant(modelID="")), scaling),
    ):
        assert verdict.refusal is not None
        assert [(cause["field"], cause["message"]) for cause in verdict.refusal["details"]["causes"]] == [
            ("spec.modelID", 'Invalid value: "": must be at least 1 character long'),
            (
                "spec.scaleTargetRef",
                'Forbidden: User "bob" cannot update "deployments/scale.apps" of "llama"'
                ' in the namespace "ns"',
            ),
        ]


UNCLAIMED = {
    "another field": (variant(modelID="n"), variant()),
    "the same target in more words": (
        variant(scaleTargetRef=TARGET, modelID="n"),
        variant(scaleTargetRef={"kind": "Deployment", "name": "llama"}),
    ),
}


@pytest.mark.parametrize(("new", "old"), UNCLAIMED.values(), ids=UNCLAIMED.keys())
def test_nobody_is_asked_for_a_target_that_stays(new: Json, old: Json) -> None:
    """An update by somebody else may leave the target as it is."""
    permissions = Permissions("ann")

    assert (
        validate(
            asked_by("bob", new, old), scaling=Scaling(resources=RESOURCES, authorizer=permissions)
        ).refusal
        is None
    )
    assert permissions.asked == []


CLAIMED = {
    "a new target": (variant(scaleTargetRef=TARGET | {"name": "other"}), variant(), "other"),
    "the target that a legacy object implies": (legacy({}), None, "llama"),
    "another owner of a legacy object": (legacy(owned_by("b")), legacy(owned_by("a")), "b"),
}


@pytest.mark.parametrize(("new", "old", "want"), CLAIMED.values(), ids=CLAIMED.keys())
def test_a_new_target_is_asked_for(new: Json, old: Json | None, want: str) -> None:
    """By name, for the scale subresource, on behalf of the requester."""
    permissions = Permissions("ann")

    verdict = validate(
        asked_by("bob", new, old), scaling=Scaling(resources=RESOURCES, authorizer=permissions)
    )

    assert verdict.refusal is not None
    (asked,) = permissions.asked
    assert (asked.user["username"], asked.group, asked.resource, asked.name) == (
        "bob",
        "apps",
        "deployments",
        want,
    )


def test_a_kind_outside_the_list_is_refused() -> None:
    """The list is named, and where it stands."""
    value = variant(scaleTargetRef={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"})

    refusal = validate(review(value)).refusal

    assert refusal is not None
    assert [cause["message"] for cause in refusal["details"]["causes"]] == [
        "Forbidden: DaemonSet of apps cannot be scaled; what can: Deployment of apps, ModelInfer of"
        " workload.volcano.sh; an administrator can add kinds to scaling.resources of the webhooks'"
        " configuration"
    ]


def test_an_unanswered_question_refuses_at_the_end_only() -> None:
    """/mutate leaves it to /validate, which says that it may be tried again."""
    scaling = Scaling(resources=RESOURCES, authorizer=Permissions())

    assert mutate(asked_by("ann", variant()), scaling).refusal is None
    refusal = validate(asked_by("ann", variant()), scaling=scaling).refusal
    assert refusal is not None
    assert (refusal["code"], refusal["reason"]) == (503, "ServiceUnavailable")
    assert refusal["message"] == "nobody there; try again"


def test_an_object_on_its_way_out_is_judged_like_any_other() -> None:
    """A finalizer can keep it alive for ever, and its target is scaled meanwhile."""
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    old, new = (
        variant(metadata=leaving),
        variant(metadata=leaving, scaleTargetRef=TARGET | {"name": "victim"}),
    )
    scaling = Scaling(resources=RESOURCES, authorizer=Permissions("ann"))

    refusal = validate(asked_by("bob", new, old), scaling=scaling).refusal

    assert refusal is not None
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["spec.scaleTargetRef"]


def keeping(*fields: Json) -> Json:
    """Return metadata with an annotation that says what conversion kept."""
    return {"annotations": {"llmd.ai/kept-by-conversion": json.dumps({"fields": list(fields)})}}


SMUGGLED = {
    "another target": (
        {"path": ["spec", "scaleTargetRef", "name"], "value": "victim", "derived": "llama"},
        "spec.scaleTargetRef",
    ),
    "no target at all": ({"path": ["spec", "scaleTargetRef"], "derived": TARGET}, "kept-by-conversion"),
    "a value that no schema takes": (
        {"path": ["spec", "acceleratorCount"], "value": -7},
        "kept-by-conversion",
    ),
    "a status": (
        {"path": ["status"], "value": {"desiredOptimizedAlloc": {"numReplicas": 1000}}},
        "kept-by-conversion",
    ),
}


@pytest.mark.parametrize(("field", "want"), SMUGGLED.values(), ids=SMUGGLED.keys())
@pytest.mark.parametrize("is_update", [False, True], ids=["create", "update of the annotation alone"])
def test_nothing_is_smuggled_in_by_what_conversion_kept(field: Json, want: str, *, is_update: bool) -> None:
    """The annotation is anybody's to write, and restored on the way to storage."""
    old = variant(version="v1alpha1", variantCost="1") if is_update else None
    new = variant(version="v1alpha1", variantCost="1", metadata=keeping(field))
    scaling = Scaling(resources=RESOURCES, authorizer=Permissions("ann", refuses=("victim",)))

    refusal = validate(asked_by("ann", new, old), scaling=scaling).refusal

    assert refusal is not None
    (cause,) = refusal["details"]["causes"]
    assert want in cause["field"]


def test_an_error_of_the_object_is_not_repeated_for_its_other_form() -> None:
    """The other form is made from it, and its author has not written the annotation."""
    kept = keeping({"path": ["spec", "acceleratorCount"], "value": -7})
    new = variant(version="v1alpha1", variantCost="1", modelID="", metadata=kept)
    scaling = Scaling(resources=RESOURCES, authorizer=Permissions("ann"))

    refusal = validate(asked_by("ann", new, None), scaling=scaling).refusal

    assert refusal is not None
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["spec.modelID"]


def test_what_conversion_really_kept_passes() -> None:
    """An object that was read in one version may be written back in it."""
    decision = {"reason": "Steady", "message": "all is well"}
    hub = variant(accelerator="A100", acceleratorCount=2, variantCost="1") | {
        "status": {"decision": decision}
    }
    spoke = convert(hub, "llmd.ai/v1alpha1")
    edited = spoke | {"spec": spoke["spec"] | {"variantCost": "2"}}

    assert "annotations" in spoke["metadata"]
    assert validate(review(edited, spoke)).refusal is None


def test_a_manifest_may_bring_no_status_or_an_old_one() -> None:
    """The first webhook sees it as it was sent; the server keeps what is stored, and of a new object none."""
    hub = variant(accelerator="A100", acceleratorCount=2, variantCost="1") | {
        "status": {"currentAlloc": {"numReplicas": 1}, "decision": {"reason": "Steady", "message": "well"}}
    }
    spoke = convert(hub, "llmd.ai/v1alpha1")
    manifest = {name: item for name, item in spoke.items() if name != "status"}
    manifest["spec"] = manifest["spec"] | {"variantCost": "2"}

    assert "annotations" in manifest["metadata"]
    for request in (review(manifest, spoke), review(spoke), review(spoke | {"status": {}}, spoke)):
        assert mutate(request).refusal is None


def binding(*, most: int) -> Json:
    """Return a binding on one Deployment."""
    target = {"targetRef": TARGET, "additionalMatchLabels": {"role": "leader"}}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": "llama"},
        "spec": {
            "policyRef": {"name": "queue"},
            "scalingConfiguration": {"target": target, "minReplicas": 1, "maxReplicas": most},
        },
    }


def test_who_changes_the_bounds_of_a_target_must_be_allowed_to_scale_it() -> None:
    """A million replicas of somebody's Deployment are no matter of writing a binding."""
    scaling = Scaling(resources=RESOURCES, authorizer=Permissions("ann"))

    assert validate(asked_by("ann", binding(most=9), binding(most=3)), scaling=scaling).refusal is None
    refusal = validate(asked_by("bob", binding(most=9), binding(most=3)), scaling=scaling).refusal
    assert refusal is not None
    (cause,) = refusal["details"]["causes"]
    assert cause["field"] == "spec.scalingConfiguration.target.targetRef"
