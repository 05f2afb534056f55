"""Permissions to scale: who names a target must be allowed to resize it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

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
from apiserver.schema.errors import FieldError, forbidden
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from webhooks.permissions import AccessRequest, Authorizer, PermissionCheck, UndecidedError, denials
from webhooks.scaling import ScalingAdmission


def test_a_user_who_names_a_target_needs_permission_to_scale_it() -> None:
    """Both webhooks list the missing permission with the other errors of the object."""
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=Permissions("ann"))

    assert validate(asked_by("ann", variant()), scaling=scaling).refusal is None
    for response in (
        validate(asked_by("bob", variant(modelID="")), scaling=scaling),
        mutate(asked_by("bob", variant(modelID="")), scaling),
    ):
        assert response.refusal is not None
        assert [(cause["field"], cause["message"]) for cause in response.refusal["details"]["causes"]] == [
            ("spec.modelID", 'Invalid value: "": must be at least 1 character long'),
            (
                "spec.scaleTargetRef",
                'Forbidden: User "bob" cannot update "deployments/scale.apps" of "llama"'
                ' in the namespace "ns"',
            ),
        ]


UNCLAIMED = {
    "a change of another field": (variant(modelID="n"), variant()),
    "the same target, with apiVersion set": (
        variant(scaleTargetRef=TARGET, modelID="n"),
        variant(scaleTargetRef={"kind": "Deployment", "name": "llama"}),
    ),
}


@pytest.mark.parametrize(("new", "old"), UNCLAIMED.values(), ids=UNCLAIMED.keys())
def test_an_unchanged_scale_target_needs_no_permission_check(new: Json, old: Json) -> None:
    """Users without the permission may change other fields."""
    permissions = Permissions("ann")

    assert (
        validate(
            asked_by("bob", new, old), scaling=ScalingAdmission(resources=RESOURCES, authorizer=permissions)
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
def test_a_new_scale_target_needs_a_permission_check(new: Json, old: Json | None, want: str) -> None:
    """The access review names the requesting user and the target."""
    permissions = Permissions("ann")

    response = validate(
        asked_by("bob", new, old), scaling=ScalingAdmission(resources=RESOURCES, authorizer=permissions)
    )

    assert response.refusal is not None
    (asked,) = permissions.asked
    assert (asked.user["username"], asked.group, asked.resource, asked.name) == (
        "bob",
        "apps",
        "deployments",
        want,
    )


def test_a_target_of_a_kind_that_is_not_listed_is_rejected() -> None:
    """The message contains the listed kinds, and the setting to add others."""
    value = variant(scaleTargetRef={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"})

    refusal = validate(review(value)).refusal

    assert refusal is not None
    assert [cause["message"] for cause in refusal["details"]["causes"]] == [
        "Forbidden: DaemonSet of apps cannot be scaled; what can: Deployment of apps, ModelInfer of"
        " workload.volcano.sh; an administrator can add kinds to scaling.resources of the webhooks'"
        " configuration"
    ]


def test_only_validate_rejects_if_permissions_cannot_be_checked() -> None:
    """/mutate leaves this to /validate, whose message asks the user to try again."""
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=Permissions())

    assert mutate(asked_by("ann", variant()), scaling).refusal is None
    refusal = validate(asked_by("ann", variant()), scaling=scaling).refusal
    assert refusal is not None
    assert (refusal["code"], refusal["reason"]) == (503, "ServiceUnavailable")
    assert refusal["message"] == "nobody there; try again"


def joint_binding(targets: int) -> Json:
    """Return a binding with a number of targets."""
    names = [f"llama-{number}" for number in range(targets)]
    params = [
        {"target": {"targetRef": TARGET | {"name": name}}, "minReplicas": 1, "maxReplicas": 2}
        for name in names
    ]
    spec = {"policyRef": {"name": "p"}, "optimizerConfiguration": {"params": params}}
    metadata = {"name": "llama", "namespace": "ns"}
    kind = {"apiVersion": "registry.volcano.sh/v1alpha1", "kind": "AutoscalingPolicyBinding"}
    return {**kind, "metadata": metadata, "spec": spec}


def test_all_targets_of_the_largest_binding_are_checked() -> None:
    """The message names the only target that the user may not scale."""
    permissions = Permissions("ann", refuses=("llama-255",))

    response = validate(
        asked_by("ann", joint_binding(256)),
        scaling=ScalingAdmission(resources=RESOURCES, authorizer=permissions),
    )

    assert response.refusal is not None
    (cause,) = response.refusal["details"]["causes"]
    assert cause["field"] == "spec.optimizerConfiguration.params[255].target.targetRef"
    assert len(permissions.asked) == 1 + 256


ASKED = {
    "a single target": (1, "bob", ["llama-0"]),
    "a few targets": (3, "ann", ["llama-0", "llama-1", "llama-2"]),
    "many targets of a user who may scale all": (256, "ann", [""]),
    "many targets of a user who may scale none": (17, "bob", ["", *(f"llama-{n}" for n in range(17))]),
}


@pytest.mark.parametrize(("targets", "user", "names"), ASKED.values(), ids=ASKED.keys())
def test_permission_for_all_objects_of_a_kind_is_checked_before_many(
    targets: int, user: str, names: list[str]
) -> None:
    """Otherwise, every review with hundreds of targets would cost the API server hundreds of reviews."""
    permissions = Permissions("ann")

    validate(
        asked_by(user, joint_binding(targets)),
        scaling=ScalingAdmission(resources=RESOURCES, authorizer=permissions),
    )

    assert [request.name for request in permissions.asked] == names


def test_a_larger_binding_is_rejected_without_permission_checks() -> None:
    """The message contains the limit: a retry cannot help."""
    permissions = Permissions("ann")
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=permissions)

    for response in (
        validate(asked_by("ann", joint_binding(257)), scaling=scaling),
        mutate(asked_by("ann", joint_binding(257)), scaling),
    ):
        assert response.refusal is not None
        assert response.refusal["code"] == 422
        assert [cause["message"] for cause in response.refusal["details"]["causes"]] == [
            "Too many: 257: must have at most 256 items"
        ]
    assert permissions.asked == []


def test_an_object_being_deleted_is_checked_like_any_other() -> None:
    """A finalizer can keep it without a time limit, and its target is scaled meanwhile."""
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    old, new = (
        variant(metadata=leaving),
        variant(metadata=leaving, scaleTargetRef=TARGET | {"name": "victim"}),
    )
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=Permissions("ann"))

    refusal = validate(asked_by("bob", new, old), scaling=scaling).refusal

    assert refusal is not None
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["spec.scaleTargetRef"]


def keeping(*fields: Json) -> Json:
    """Return metadata with the annotation in which conversion keeps fields."""
    return {"annotations": {"llmd.ai/kept-by-conversion": json.dumps({"fields": list(fields)})}}


SMUGGLED = {
    "another target": (
        {"path": ["spec", "scaleTargetRef", "name"], "value": "victim", "derived": "llama"},
        "spec.scaleTargetRef",
    ),
    "no target at all": ({"path": ["spec", "scaleTargetRef"], "derived": TARGET}, "kept-by-conversion"),
    "a value that the schema rejects": (
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
def test_fields_in_the_conversion_annotation_are_checked_like_the_object(
    field: Json, want: str, *, is_update: bool
) -> None:
    """Every user can write the annotation, and conversion restores its fields before storage."""
    old = variant(version="v1alpha1", variantCost="1") if is_update else None
    new = variant(version="v1alpha1", variantCost="1", metadata=keeping(field))
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=Permissions("ann", refuses=("victim",)))

    refusal = validate(asked_by("ann", new, old), scaling=scaling).refusal

    assert refusal is not None
    (cause,) = refusal["details"]["causes"]
    assert want in cause["field"]


def test_errors_of_the_other_version_are_not_listed_beside_errors_of_the_object() -> None:
    """The other version is converted from the object, and would repeat its errors."""
    kept = keeping({"path": ["spec", "acceleratorCount"], "value": -7})
    new = variant(version="v1alpha1", variantCost="1", modelID="", metadata=kept)
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=Permissions("ann"))

    refusal = validate(asked_by("ann", new, None), scaling=scaling).refusal

    assert refusal is not None
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["spec.modelID"]


def test_an_object_with_the_annotation_that_conversion_wrote_can_be_updated() -> None:
    """Users may read an object in one version, edit it, and write it in the same version."""
    decision = {"reason": "Steady", "message": "all is well"}
    hub = variant(accelerator="A100", acceleratorCount=2, variantCost="1") | {
        "status": {"decision": decision}
    }
    spoke = convert(hub, "llmd.ai/v1alpha1")
    edited = spoke | {"spec": spoke["spec"] | {"variantCost": "2"}}

    assert "annotations" in spoke["metadata"]
    assert validate(review(edited, spoke)).refusal is None


def test_mutate_accepts_an_object_whatever_its_status() -> None:
    """It sees the status as sent; the API server keeps the stored one, and stores none for a new object."""
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
    """Return a binding of one Deployment."""
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


def test_a_user_who_changes_the_bounds_of_a_target_needs_permission_to_scale_it() -> None:
    """Otherwise, permission to write bindings would suffice to scale any Deployment to a million replicas."""
    scaling = ScalingAdmission(resources=RESOURCES, authorizer=Permissions("ann"))

    assert validate(asked_by("ann", binding(most=9), binding(most=3)), scaling=scaling).refusal is None
    refusal = validate(asked_by("bob", binding(most=9), binding(most=3)), scaling=scaling).refusal
    assert refusal is not None
    (cause,) = refusal["details"]["causes"]
    assert cause["field"] == "spec.scalingConfiguration.target.targetRef"


AT_ONCE = 4


class Slow(Authorizer):
    """Answers nothing but the request for `broken`, which is undecided; records running checks."""

    def __init__(self) -> None:
        super().__init__()
        self.running = 0
        self.most = 0

    async def may(self, request: AccessRequest) -> bool:
        """Wait until cancelled."""
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if request.name == "broken":
                raise UndecidedError("too many requests")
            await asyncio.Event().wait()
            return True
        finally:
            self.running -= 1


def asked(*names: str) -> list[tuple[AccessRequest, FieldError]]:
    """Return requests to scale Deployments with these names."""
    of = AccessRequest(user={}, verb="update", namespace="ns", group="apps", resource="deployments", name="")
    return [(replace(of, name=name), forbidden(FieldPath().child(name), "no")) for name in names]


async def test_no_check_outlives_a_request_that_is_undecided() -> None:
    """Otherwise the checks of one large request would occupy the places of the process for others."""
    slow = Slow()

    with pytest.raises(UndecidedError, match="too many requests"):
        await denials(PermissionCheck(slow, asked("a", "b", "broken", *map(str, range(10)))))
    await asyncio.sleep(0)

    assert (slow.running, slow.most) == (0, AT_ONCE)
