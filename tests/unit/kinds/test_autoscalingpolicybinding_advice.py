"""Warnings about probably unintended values in an AutoscalingPolicyBinding."""

from __future__ import annotations

import pytest
from support.bindings import SCALING_REF, optimizer, param, reference, scaling

from apiserver.kinds.kthena.autoscaling import binding_advice
from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

PARAMS = "spec.optimizerConfiguration.params"
ASLEEP = "at 0 replicas no pod reports metrics; stowplan.dev/activity wakes it"
ADVISED = {
    "a usual binding": (scaling(), []),
    "several usual targets": (optimizer(param("a"), param("b", minReplicas=0)), []),
    "fields of a reference without effect": (
        reference(name="llama", uid="1-2-3", fieldPath="spec.roles"),
        [f"{SCALING_REF}.{name}: has no effect here" for name in ("uid", "fieldPath")],
    ),
    "equal bounds": (
        scaling(minReplicas=4),
        ["spec.scalingConfiguration.maxReplicas: equals minReplicas, so nothing is ever scaled"],
    ),
    "a minimum of 0 without the activity annotation": (
        scaling(minReplicas=0),
        [f"spec.scalingConfiguration.minReplicas: {ASLEEP}"],
    ),
    "several targets with equal bounds": (
        optimizer(param("a", minReplicas=4), param("b", minReplicas=4)),
        [f"{PARAMS}: every maxReplicas equals its minReplicas, so nothing is ever scaled"],
    ),
    "several targets with a minimum of 0, without the activity annotation": (
        optimizer(param("a", minReplicas=0), param("b", minReplicas=0)),
        [f"{PARAMS}: {ASLEEP}"],
    ),
    "one target with a cost of 0": (
        optimizer(param("a"), param("b", cost=0)),
        [f"{PARAMS}[1].cost: 0 comes first; equal costs are taken by position"],
    ),
    "several targets with a cost of 0": (
        optimizer(param("a", cost=0), param("b", cost=0)),
        [f"{PARAMS}[0].cost: 0 (as in 1 more) comes first; equal costs are taken by position"],
    ),
    "an expansion rate below 100": (
        optimizer(param("a"), costExpansionRatePercent=99),
        [
            "spec.optimizerConfiguration.costExpansionRatePercent: below 100 means 100: nothing costs less"
            " than the least"
        ],
    ),
}


CAPACITY = "metadata.annotations[stowplan.dev/capacity]"
CAPACITIES = {
    "both targets": ("a=2.5, b=1", []),
    "a value that is not a number": (
        "a=much",
        [
            f"{CAPACITY}: must be NAME=NUMBER,NAME=NUMBER with numbers from 0.001 to 9999, such as"
            " llama-h100=2.5; invalid values count as 1"
        ],
    ),
    "a name of no target": ("c=2", [f"{CAPACITY}: optimizerConfiguration has no target named c"]),
}


@pytest.mark.parametrize(("text", "want"), CAPACITIES.values(), ids=CAPACITIES.keys())
def test_an_invalid_capacity_annotation_causes_a_warning(text: str, want: list[str]) -> None:
    """Admission cannot reject an annotation."""
    binding = {
        "metadata": {"annotations": {"stowplan.dev/capacity": text}},
        "spec": optimizer(param("a"), param("b")),
    }

    assert binding_advice(binding) == want


@pytest.mark.parametrize(("spec", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_probably_unintended_values_cause_warnings(spec: Json, want: list[str]) -> None:
    """They are valid; each warning has at most 120 characters, and usual values cause none."""
    assert validate(AutoscalingPolicyBinding, {"spec": spec}) == []

    advice = binding_advice({"spec": spec})

    assert advice == want
    assert all(len(text) <= 120 for text in advice)


def test_the_activity_annotation_silences_the_warning_about_scaling_to_zero() -> None:
    """The annotation names a metric that wakes the replicas."""
    spec = optimizer(param("a", minReplicas=0), param("b", minReplicas=0))
    annotations = {"stowplan.dev/activity": "app=router:9090/metrics queue_size"}

    assert binding_advice({"spec": spec}) == [f"{PARAMS}: {ASLEEP}"]
    assert binding_advice({"metadata": {"annotations": annotations}, "spec": spec}) == []
