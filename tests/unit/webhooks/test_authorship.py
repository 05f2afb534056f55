"""Writers of objects: who is recorded, and what they need permission for."""

from __future__ import annotations

import json

import pytest
from support.bindings import scaling
from support.reviews import Permissions, asked_by, legacy, mutate, review, validate, variant

from apiserver.kinds.authorship import WRITTEN_BY, record_of, writer_of
from apiserver.schema.defaulting import Addition
from apiserver.schema.json import Json
from webhooks.review import AdmissionResponse
from webhooks.scaling import Tenancy


def record(user: str) -> str:
    """Return the record of a user who sends requests in these tests."""
    return json.dumps({"groups": ["devs"], "username": user}, separators=(",", ":"))


def binding(*, most: int = 4, **annotations: str) -> Json:
    """Return a binding; `by` is the user in its record."""
    if "by" in annotations:
        annotations[WRITTEN_BY] = record(annotations.pop("by"))
    metadata = {"name": "b", "namespace": "ns"} | ({"annotations": annotations} if annotations else {})
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": metadata,
        "spec": scaling(maxReplicas=most),
    }


def noted(text: str) -> Json:
    """Return a binding with this text as its record."""
    value = binding()
    return value | {"metadata": value["metadata"] | {"annotations": {WRITTEN_BY: text}}}


def written(request: Json) -> Json | None:
    """Return the annotations that /mutate sets, or None if it sets none."""
    patch = mutate(request).patch
    found = [item.value for item in patch if isinstance(item, Addition) and "annotations" in item.path]
    assert len(found) <= 1
    return found[0] if found else None


BECOMES: dict[str, tuple[Json, Json | None, Json | None]] = {
    "the creator of an object becomes its writer": (binding(), None, {WRITTEN_BY: record("ann")}),
    "the record in a new object is replaced": (binding(by="root"), None, {WRITTEN_BY: record("ann")}),
    "a user who changes the spec becomes the writer": (
        binding(by="bob", most=5, team="a"),
        binding(by="bob", team="a"),
        {WRITTEN_BY: record("ann"), "team": "a"},
    ),
    "another annotation changes and the record stays": (binding(by="bob", team="b"), binding(by="bob"), None),
    "a user who changes the record becomes the writer": (
        binding(by="root"),
        binding(by="bob"),
        {WRITTEN_BY: record("ann")},
    ),
    "a user who removes the record becomes the writer": (
        binding(),
        binding(by="bob"),
        {WRITTEN_BY: record("ann")},
    ),
    "a user who adds a record to an object without one becomes the writer": (
        binding(by="root"),
        binding(),
        {WRITTEN_BY: record("ann")},
    ),
    "another annotation changes and no record is added": (binding(team="a"), binding(), None),
    "the writer changes the spec and the record stays": (binding(by="ann", most=5), binding(by="ann"), None),
}


@pytest.mark.parametrize(("new", "old", "want"), BECOMES.values(), ids=BECOMES)
def test_mutate_records_the_writer_and_validate_accepts_the_record(
    new: Json, old: Json | None, want: Json | None
) -> None:
    """The writer is the user who sent the last request that counts as a change."""
    assert written(asked_by("ann", new, old)) == want
    annotations = new["metadata"].get("annotations") if want is None else want
    made = new | {"metadata": new["metadata"] | {"annotations": annotations or {}}}
    assert validate(asked_by("ann", made, old)).refusal is None


FORGED: dict[str, tuple[Json, Json | None]] = {
    "a new object": (binding(by="root"), None),
    "a changed spec": (binding(by="bob", most=5), binding(by="bob")),
    "a changed record alone": (binding(by="root"), binding(by="bob")),
    "an object that had no record": (binding(by="root"), binding()),
}


@pytest.mark.parametrize(("new", "old"), FORGED.values(), ids=FORGED)
def test_validate_rejects_a_record_that_names_another_user(new: Json, old: Json | None) -> None:
    """This happens if /mutate was not called, or another webhook changed its result."""
    refusal = validate(asked_by("ann", new, old)).refusal

    assert refusal is not None
    (cause,) = refusal["details"]["causes"]
    assert cause["field"] == f"metadata.annotations[{WRITTEN_BY}]"


def test_any_user_can_remove_a_finalizer_without_becoming_the_writer() -> None:
    """This changes neither the spec nor the record."""
    old = binding(by="bob")
    old["metadata"]["finalizers"] = ["example.com/a"]

    assert written(asked_by("ann", binding(by="bob"), old)) is None
    assert validate(asked_by("ann", binding(by="bob"), old)).refusal is None


def test_variants_record_their_writer_in_both_versions() -> None:
    """The writer's permissions apply to the service class and the cost."""
    for version in ("v1alpha1", "v1alpha2"):
        assert written(asked_by("ann", variant(version=version))) == {WRITTEN_BY: record("ann")}


KEPT = "llmd.ai/kept-by-conversion"


def with_class() -> Json:
    """Return a binding with a service class."""
    value = binding()
    value["metadata"]["annotations"] = {"stowplan.dev/service-class": "classes/premium"}
    return value


LIKE_THE_SPEC: dict[str, Json] = {
    "the annotation in which conversion keeps fields": variant(
        metadata={"annotations": {KEPT: '{"fields":[]}'}}
    ),
    "the label that conversion reads": variant(
        metadata={"labels": {"inference.optimization/acceleratorName": "H100"}}
    ),
    "the service class of a binding": with_class(),
}


@pytest.mark.parametrize("new", LIKE_THE_SPEC.values(), ids=LIKE_THE_SPEC)
def test_a_change_that_counts_like_the_spec_makes_a_user_the_writer(new: Json) -> None:
    """Otherwise users could make such changes with the permissions of the recorded writer."""
    bare = {name: item for name, item in new["metadata"].items() if name in ("name", "namespace")}
    old = new | {"metadata": bare | {"annotations": {WRITTEN_BY: record("bob")}}}
    kept = new["metadata"].get("annotations", {}) | {WRITTEN_BY: record("bob")}
    sent = new | {"metadata": new["metadata"] | {"annotations": kept}}

    found = written(asked_by("ann", sent, old))

    assert found is not None
    assert found[WRITTEN_BY] == record("ann")


def keeping(*fields: Json) -> Json:
    """Return an object whose annotation keeps these fields of the other version."""
    text = json.dumps({"fields": list(fields)})
    return variant(version="v1alpha1", metadata={"annotations": {KEPT: text, WRITTEN_BY: record("bob")}})


DECIDED: Json = {"path": ["status", "decision"], "value": {"phase": "Planned"}}
COUNTED: Json = {"path": ["spec", "acceleratorCount"], "value": 4}


@pytest.mark.parametrize(
    ("kept", "want"),
    {
        "a field of the status was kept": ([DECIDED], None),
        "fields of status and spec were kept": ([DECIDED, COUNTED], {WRITTEN_BY: record("ann")}),
    }.values(),
    ids=["a field of the status was kept", "fields of status and spec were kept"],
)
def test_removing_kept_fields_makes_a_user_the_writer_only_if_they_belong_to_the_spec(
    kept: list[Json], want: Json | None
) -> None:
    """A downgrade removes the annotation from all objects; if the spec loses nothing, the record stays."""
    old = keeping(*kept)
    new = old | {"metadata": old["metadata"] | {"annotations": {WRITTEN_BY: record("bob")}}}

    assert written(asked_by("ann", new, old)) == want


def test_other_kinds_do_not_record_their_writer() -> None:
    """The controller does nothing on behalf of their writers."""
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"metrics": [{"metricName": "m", "targetValue": "1"}]},
    }
    assert written(asked_by("ann", value)) is None


def test_a_record_holds_all_attributes_of_the_user_for_access_reviews() -> None:
    """The attributes are those that the API server sent."""
    user = {"username": "ann", "uid": "7", "groups": ["b", "a"], "extra": {"scopes": ["x"]}}
    assert writer_of(noted(record_of(user))) == user


UNKNOWN: dict[str, Json] = {
    "no record": binding(),
    "no JSON": noted("ann"),
    "a list": noted("[]"),
    "no name": noted('{"groups":["system:masters"]}'),
    "nested too deeply": noted("[" * 10_000),
    "more groups than fit into a record": noted(record_of({"username": "ann", "groups": ["g" * 100] * 1000})),
}


@pytest.mark.parametrize("value", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unreadable_record_names_no_writer(value: Json) -> None:
    """The controller does nothing on behalf of an unknown user."""
    assert writer_of(value) is None


def test_a_user_with_too_many_groups_is_recorded_as_unknown() -> None:
    """The object is still admitted."""
    user = {"username": "ann", "groups": ["g" * 100] * 1000}

    assert written(review(binding(), userInfo=user)) == {WRITTEN_BY: "{}"}


def test_the_record_does_not_identify_the_token() -> None:
    """Everyone who may read the object can read it; what restricts the user is kept for access reviews."""
    scopes = {"scopes.authorization.openshift.io": ["user:info"]}
    token = {
        f"authentication.kubernetes.io/{name}": ["x"] for name in ("credential-id", "pod-name", "node-name")
    }

    user = {"username": "ann", "groups": ["team"], "extra": token | scopes}
    restricted = record_of({"username": "ann", "groups": ["team"], "extra": scopes})
    assert written(review(binding(), userInfo=user)) == {WRITTEN_BY: restricted}
    assert written(review(binding(), userInfo={"username": "ann", "extra": token})) == {
        WRITTEN_BY: '{"username":"ann"}'
    }


CLASS = {"name": "classes", "key": "premium"}
USES_CLASS = ("serviceclasses", "classes/premium")
SETS_COST = ("variantcosts", "")


def bound(service_class: str = "classes/premium") -> Json:
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


def keeping_one(*path: str, value: object) -> Json:
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
        variant(version="v1alpha1", metadata=keeping_one("spec", "variantCost", value="0")),
        None,
        [SETS_COST],
        ["spec.variantCost"],
    ),
    "a service class of a binding": (
        bound(),
        None,
        [USES_CLASS],
        ["metadata.annotations[stowplan.dev/service-class]"],
    ),
    "a changed service class of a binding, and nothing else": (
        bound(),
        bound("classes/free"),
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
