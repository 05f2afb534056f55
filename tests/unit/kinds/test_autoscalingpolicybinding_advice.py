"""What is legal in a binding, but hardly meant."""

from __future__ import annotations

import pytest
from support.bindings import SCALING_REF, optimizer, param, reference, scaling

from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.kinds.kthena.autoscalingpolicybinding_advice import binding_advice
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

PARAMS = "spec.optimizerConfiguration.params"
ASLEEP = "at 0 replicas no pod reports metrics; stowplan.dev/activity wakes it"
ADVISED = {
    "the usual": (scaling(), []),
    "several targets as usual": (optimizer(param("a"), param("b", minReplicas=0)), []),
    "parts of a reference that mean nothing": (
        reference(name="llama", uid="1-2-3", fieldPath="spec.roles"),
        [f"{SCALING_REF}.{name}: has no effect here" for name in ("uid", "fieldPath")],
    ),
    "nothing to scale": (
        scaling(minReplicas=4),
        ["spec.scalingConfiguration.maxReplicas: equals minReplicas, so nothing is ever scaled"],
    ),
    "asleep for ever": (scaling(minReplicas=0), [f"spec.scalingConfiguration.minReplicas: {ASLEEP}"]),
    "several, nothing to scale": (
        optimizer(param("a", minReplicas=4), param("b", minReplicas=4)),
        [f"{PARAMS}: every maxReplicas equals its minReplicas, so nothing is ever scaled"],
    ),
    "several, asleep for ever": (
        optimizer(param("a", minReplicas=0), param("b", minReplicas=0)),
        [f"{PARAMS}: {ASLEEP}"],
    ),
    "one that costs nothing": (
        optimizer(param("a"), param("b", cost=0)),
        [f"{PARAMS}[1].cost: 0 comes first; equal costs are taken by position"],
    ),
    "several that cost nothing": (
        optimizer(param("a", cost=0), param("b", cost=0)),
        [f"{PARAMS}[0].cost: 0 (as in 1 more) comes first; equal costs are taken by position"],
    ),
    "less than the least": (
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
    "no number": (
        "a=much",
        [
            f"{CAPACITY}: must be NAME=NUMBER,NAME=NUMBER with numbers from 0.001 to 9999, such as"
            " llama-h100=2.5; invalid values count as 1"
        ],
    ),
    "another name": ("c=2", [f"{CAPACITY}: optimizerConfiguration has no target named c"]),
}


@pytest.mark.parametrize(("text", "want"), CAPACITIES.values(), ids=CAPACITIES.keys())
def test_a_capacity_that_says_nothing_is_told(text: str, want: list[str]) -> None:
    """It is an annotation, so admission cannot refuse it."""
    binding = {
        "metadata": {"annotations": {"stowplan.dev/capacity": text}},
        "spec": optimizer(param("a"), param("b")),
    }

    assert binding_advice(binding) == want


@pytest.mark.parametrize(("spec", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_what_is_hardly_meant_is_told(spec: Json, want: list[str]) -> None:
    """Legal, but worth a warning that fits a terminal; what is usual is worth none."""
    assert validate(AutoscalingPolicyBinding, {"spec": spec}) == []

    advice = binding_advice({"spec": spec})

    assert advice == want
    assert all(len(text) <= 120 for text in advice)


def test_who_says_where_requests_are_seen_is_not_told_of_sleep() -> None:
    """With the annotation, a binding wakes."""
    annotations = {"stowplan.dev/activity": "app=router:9090/metrics queue_size"}
    binding = {"metadata": {"annotations": annotations}, "spec": optimizer(param("a"), param("b"))}

    assert binding_advice(binding) == []
