"""Fields with the name of another object: only valid names are accepted, never paths to something else."""

from __future__ import annotations

from typing import Final

import pytest

from apiserver.kinds.core.references import LocalObjectReference, ObjectReference
from apiserver.kinds.inference.inferenceobjective import PoolObjectReference
from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.llmd.v1alpha2 import ConfigMapKeyRef
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.meta import CrossVersionObjectReference
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

DEPLOYMENT: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
KEY: Final = {"name": "classes", "key": "premium.yaml"}
NO_NAMES: Final = ("../../other/deployments/x", "a/b", "..", "%2e%2e", "a?b", "a b", "A", "a#b", "")

FIELDS: Final = {
    "a scale target": (CrossVersionObjectReference, DEPLOYMENT, "name", NO_NAMES),
    "an object in the same namespace": (LocalObjectReference, {}, "name", NO_NAMES),
    "an object in any namespace": (ObjectReference, DEPLOYMENT, "name", NO_NAMES[:-1]),
    "a ConfigMap": (ConfigMapKeyRef, KEY, "name", NO_NAMES),
    "a key of a ConfigMap": (ConfigMapKeyRef, KEY, "key", ("../a", "a/b", "..", "%2e", "a b", "")),
    "a pool": (PoolObjectReference, {}, "name", ("../../x", "a/b", ".", "..", "%2e%2e", "")),
    "a kind": (CrossVersionObjectReference, DEPLOYMENT, "kind", ("De ploy", "a/b", "..", "1a", "a-", "")),
    "the kind of an object in any namespace": (
        ObjectReference,
        DEPLOYMENT,
        "kind",
        ("De ploy", "a/b", "..", "1a", "a-"),
    ),
    "a version": (
        CrossVersionObjectReference,
        DEPLOYMENT,
        "apiVersion",
        ("not/a/version", "apps", "apps/", "/v1", "../v1", "apps/v1/../..", "Apps/v1", "apps/V1"),
    ),
    "a namespace": (ObjectReference, DEPLOYMENT, "namespace", ("../a", "a.b", "A", "a/b")),
}


@pytest.mark.parametrize(("declared", "value", "field", "wrong"), FIELDS.values(), ids=FIELDS.keys())
def test_a_text_that_is_no_valid_name_is_rejected(
    declared: type, value: Json, field: str, wrong: tuple[str, ...]
) -> None:
    """All errors are at the field itself, whatever the other fields contain."""
    for text in wrong:
        errors = validate(declared, value | {field: text})

        assert {str(error.path) for error in errors} == {field}, text


RIGHT: Final = {
    "a kind of the core group": (
        CrossVersionObjectReference,
        {"apiVersion": "v1", "kind": "Pod", "name": "a.b-c"},
    ),
    "a kind of another group": (CrossVersionObjectReference, DEPLOYMENT),
    "a kind without a version": (CrossVersionObjectReference, {"kind": "Deployment", "name": "llama"}),
    "a kind of an old version": (
        CrossVersionObjectReference,
        DEPLOYMENT | {"apiVersion": "x.example/v1beta1"},
    ),
    "empty optional fields": (
        ObjectReference,
        {"apiVersion": "", "kind": "", "namespace": "", "name": "a"},
    ),
    "a pool of any name": (PoolObjectReference, {"name": "Pool:one two"}),
    "a key": (ConfigMapKeyRef, {"name": "a.b", "key": "_A.yaml"}),
}


@pytest.mark.parametrize(("declared", "value"), RIGHT.values(), ids=RIGHT.keys())
def test_a_valid_name_is_accepted(declared: type, value: Json) -> None:
    """Kinds allow different names, and optional fields may be empty."""
    assert not validate(declared, value)


def variant(**changes: str) -> Json:
    """Return a stored variant whose target has a name that an older release accepted."""
    spec = {"modelID": "m", "variantCost": "1", "scaleTargetRef": DEPLOYMENT | {"name": "Old_Name"}}
    return {"metadata": {"name": "v", "namespace": "n"}, "spec": spec | changes}


def test_a_stored_invalid_name_does_not_block_updates_of_other_fields() -> None:
    """A new object with this name is rejected."""
    version = VARIANT_AUTOSCALING.storage_version

    assert not complete_and_judge(VARIANT_AUTOSCALING, version, variant(modelID="other"), variant()).errors
    assert complete_and_judge(VARIANT_AUTOSCALING, version, variant()).errors
