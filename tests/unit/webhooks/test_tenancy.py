"""Permission checks for service classes and costs at admission."""

from __future__ import annotations

import json

import pytest
from support.bindings import scaling
from support.reviews import Permissions, asked_by, legacy, mutate, validate, variant

from apiserver.schema.json import Json
from webhooks.review import AdmissionResponse
from webhooks.scaling import Tenancy

CLASS = {"name": "classes", "key": "premium"}
USES_CLASS = ("serviceclasses", "classes/premium")
SETS_COST = ("variantcosts", "")


def binding(service_class: str = "classes/premium") -> Json:
    """Return a binding with a service class."""
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {
            "name": "b",
            "namespace": "ns",
            "annotations": {"stowplan.dev/service-class": service_class},
        },
        "spec": scaling(),
    }


def keeping(*path: str, value: object) -> Json:
    """Return metadata with an annotation from which conversion restores a field."""
    text = json.dumps({"fields": [{"path": path, "value": value}]})
    return {"annotations": {"llmd.ai/kept-by-conversion": text}}


def both(
    user: str, value: Json, old: Json | None, permissions: Permissions
) -> tuple[AdmissionResponse, AdmissionResponse]:
    """Return the responses of both webhooks to a request."""
    tenancy = Tenancy(authorizer=permissions, namespace="stowplan-system")
    request = asked_by(user, value, old)
    return mutate(request, tenancy=tenancy), validate(request, tenancy=tenancy)


PRIVILEGED: dict[str, tuple[Json, Json | None, list[tuple[str, str]], list[str]]] = {
    "a service class": (variant(sloClassRef=CLASS), None, [USES_CLASS], ["spec.sloClassRef"]),
    "an unchanged service class while another field changes": (
        variant(sloClassRef=CLASS, modelID="n"),
        variant(sloClassRef=CLASS),
        [USES_CLASS],
        ["spec.sloClassRef"],
    ),
    "a cost of zero": (variant(variantCost="0"), None, [SETS_COST], ["spec.variantCost"]),
    "a high cost": (variant(variantCost="1000000"), None, [SETS_COST], ["spec.variantCost"]),
    "both": (
        variant(variantCost="0", sloClassRef=CLASS),
        None,
        [USES_CLASS, SETS_COST],
        ["spec.sloClassRef", "spec.variantCost"],
    ),
    "the class of a legacy object": (legacy({}), None, [("serviceclasses", "c/k")], ["spec.sloClassRef"]),
    "a cost that is visible in another version only": (
        variant(version="v1alpha1", metadata=keeping("spec", "variantCost", value="0")),
        None,
        [SETS_COST],
        ["spec.variantCost"],
    ),
    "a service class of a binding": (
        binding(),
        None,
        [USES_CLASS],
        ["metadata.annotations[stowplan.dev/service-class]"],
    ),
    "a changed service class of a binding, and nothing else": (
        binding(),
        binding("classes/free"),
        [USES_CLASS],
        ["metadata.annotations[stowplan.dev/service-class]"],
    ),
}


@pytest.mark.parametrize(("value", "old", "privileges", "fields"), PRIVILEGED.values(), ids=PRIVILEGED)
def test_service_classes_and_costs_need_permission(
    value: Json, old: Json | None, privileges: list[tuple[str, str]], fields: list[str]
) -> None:
    """It is checked in the namespace of the installation, whatever that of the object, by both webhooks."""
    permissions = Permissions("ann")

    assert [response.refusal for response in both("ann", value, old, permissions)] == [None, None]
    for response in both("bob", value, old, permissions):
        assert response.refusal is not None
        causes = response.refusal["details"]["causes"]
        assert [cause["field"] for cause in causes] == fields

    asked = {(it.verb, it.group, it.namespace, it.resource, it.name) for it in permissions.asked}
    assert asked == {("use", "stowplan.dev", "stowplan-system", *item) for item in privileges}


def test_the_rejection_names_the_missing_permission() -> None:
    """The message uses the words of an RBAC rule."""
    _, response = both("bob", variant(sloClassRef=CLASS), None, Permissions("ann"))

    assert response.refusal is not None
    (cause,) = response.refusal["details"]["causes"]
    assert cause["message"] == (
        'Forbidden: User "bob" cannot use serviceclasses.stowplan.dev "classes/premium" in the namespace'
        ' "stowplan-system": omit it'
    )


FREE: dict[str, tuple[Json, Json | None]] = {
    "neither service class nor cost": (variant(), None),
    "the default cost": (variant(variantCost="10.0"), None),
    "an unchanged object": (variant(sloClassRef=CLASS), variant(sloClassRef=CLASS)),
    "a changed label": (
        variant(sloClassRef=CLASS, metadata={"labels": {"a": "b"}}),
        variant(sloClassRef=CLASS),
    ),
}


@pytest.mark.parametrize(("value", "old"), FREE.values(), ids=FREE)
def test_no_permission_is_checked_without_a_privilege_or_a_change(value: Json, old: Json | None) -> None:
    """The controller checks the permissions of the recorded writer."""
    permissions = Permissions("ann")

    assert [response.refusal for response in both("bob", value, old, permissions)] == [None, None]
    assert permissions.asked == []


def test_no_permission_is_checked_if_tenancy_is_disabled() -> None:
    """Tenancy is disabled by default."""
    assert validate(asked_by("bob", variant(sloClassRef=CLASS, variantCost="0"))).refusal is None


def test_only_validate_rejects_if_permissions_cannot_be_checked() -> None:
    """/mutate leaves this to /validate, which responds with status 503."""
    first, last = both("bob", variant(sloClassRef=CLASS), None, Permissions())

    assert first.refusal is None
    assert last.refusal is not None
    assert last.refusal["code"] == 503
