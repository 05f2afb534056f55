"""Validation and warnings of VariantAutoscalings."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.manifests import variant

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.planning.ranges import MAX_COST

PARAMETERS = {
    "decodeParms": {"alpha": "20.58", "beta": "0.41"},
    "prefillParms": {"gamma": "5.2", "delta": "0.1"},
}
PROFILE = {"perfParms": PARAMETERS, "maxBatchSize": 4}
LEGACY = {
    "modelID": "meta/llama-3.1-8b",
    "variantID": "meta/llama-3.1-8b-A100-4",
    "accelerator": "A100",
    "acceleratorCount": 4,
    "sloClassRef": {"name": "service-classes-config", "key": "premium.yaml"},
    "variantProfile": PROFILE,
}
CURRENT = {
    "modelID": "meta/llama-3.1-8b",
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama-8b"},
    "variantCost": "40.00",
}
PROFILED = {
    "modelID": "meta/llama-3.1-8b",
    "modelProfile": {
        "accelerators": [
            {"acc": "A100", "accCount": 1, "perfParms": PARAMETERS, "maxBatchSize": 4},
            {"acc": "H100", "accCount": 2, "perfParms": PARAMETERS, "maxBatchSize": 8},
        ]
    },
    "sloClassRef": {"name": "service-classes-config", "key": "premium.yaml"},
}


def without(spec: Json, name: str) -> Json:
    """Return a spec that lacks one field."""
    return {key: value for key, value in spec.items() if key != name}


ACCEPTED = {
    "modelProfile shape": PROFILED,
    "modelProfile shape without a service class": without(PROFILED, "sloClassRef"),
    "legacy shape": LEGACY,
    "legacy shape with an explicit target": LEGACY | {"scaleTargetRef": CURRENT["scaleTargetRef"]},
    "legacy shape with an explicit cost": LEGACY | {"variantCost": "7"},
    "current shape": CURRENT,
    "current shape without a cost": without(CURRENT, "variantCost"),
    "a model alone": {"modelID": "m"},
    "a model, its service class and its cost": without(PROFILED, "modelProfile") | {"variantCost": "7"},
}

REFUSED = {
    "both legacy and modelProfile": (
        LEGACY | {"modelProfile": PROFILED["modelProfile"]},
        [
            f"spec.{name}: Forbidden: may not be set together with `modelProfile`"
            for name in ("variantID", "accelerator", "acceleratorCount", "variantProfile")
        ],
    ),
    "a cost that is a number": (
        CURRENT | {"variantCost": 40},
        ["spec.variantCost: Invalid value: 40: must be a string"],
    ),
    "a cost that is no number": (
        CURRENT | {"variantCost": "-1"},
        ['spec.variantCost: Invalid value: "-1": must be a non-negative decimal number such as 10 or 10.5'],
    ),
    "a performance parameter that is no number": (
        LEGACY | {"variantProfile": PROFILE | {"perfParms": PARAMETERS | {"decodeParms": {"alpha": "fast"}}}},
        [
            'spec.variantProfile.perfParms.decodeParms[alpha]: Invalid value: "fast": must be a non-negative'
            " decimal number such as 20.58"
        ],
    ),
    "a target without a name": (
        CURRENT | {"scaleTargetRef": {"kind": "Deployment"}},
        ["spec.scaleTargetRef.name: Required value"],
    ),
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_every_released_shape_is_accepted(spec: Json) -> None:
    """A manifest that was written for any release can be applied."""
    assert validate(v1alpha1.VariantAutoscaling, {"spec": spec}) == []


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(spec: Json, want: list[str]) -> None:
    """Fields of different shapes are rejected, too."""
    assert [str(error) for error in validate(v1alpha1.VariantAutoscaling, {"spec": spec})] == want


def test_v1alpha2_requires_a_target() -> None:
    """In v1alpha1 it can be derived."""
    (error,) = validate(v1alpha2.VariantAutoscaling, {"spec": {"modelID": "m"}})

    assert str(error) == "spec.scaleTargetRef: Required value"


def test_v1alpha2_can_express_zero_replicas() -> None:
    """A decision to scale to zero is valid."""
    status = {"desiredOptimizedAlloc": {"numReplicas": 0, "accelerator": "A100"}}

    assert validate(v1alpha2.VariantAutoscaling, {"spec": CURRENT, "status": status}) == []


TARGETS = {
    "a Deployment": ("apps/v1", "Deployment", True),
    "a StatefulSet": ("apps/v1", "StatefulSet", True),
    "a LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", True),
    "a ModelServing": ("workload.serving.volcano.sh/v1alpha1", "ModelServing", False),
}


@pytest.mark.parametrize(("api_version", "kind", "is_planned"), TARGETS.values(), ids=TARGETS)
def test_a_target_that_is_not_planned_causes_a_warning(api_version: str, kind: str, is_planned: bool) -> None:
    """It is accepted, because something else may scale it."""
    value = variant("chat", scaleTargetRef={"apiVersion": api_version, "kind": kind, "name": "chat"})
    found = find_version("llmd.ai/v1alpha2", "VariantAutoscaling")
    assert found

    assert complete_and_judge(*found, value).errors == []
    told = [text for advise in found[1].advise for text in advise(value)]

    assert any("is planned only if the controller may read its scale" in text for text in told) != is_planned


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
@pytest.mark.parametrize(("cost", "is_planned"), [("1000000000", True), ("1000000000.01", False)])
def test_a_cost_that_is_not_planned_causes_a_warning(version: str, cost: str, is_planned: bool) -> None:
    """The field allows more, because others may use it."""
    found = find_version(f"llmd.ai/{version}", "VariantAutoscaling")
    assert found
    value = variant("chat", variantCost=cost)

    warned = any("variantCost: above" in text for advise in found[1].advise for text in advise(value))
    assert warned != is_planned
    assert (Decimal(cost) <= MAX_COST) == is_planned
