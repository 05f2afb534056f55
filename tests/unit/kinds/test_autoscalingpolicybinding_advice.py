"""What is legal in a binding, but hardly meant."""

from __future__ import annotations

import pytest
from support.bindings import SCALING_REF, optimizer, param, reference, scaling

from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.kinds.kthena.autoscalingpolicybinding_advice import binding_advice
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

PARAMS = "spec.optimizerConfiguration.params"
ASLEEP = "at 0 replicas no pod reports metrics, so nothing scales up again"
ADVISED = {
    "the usual": (scaling(), []),
    "several targets as usual": (optimizer(param("a"), param("b", minReplicas=0)), []),
    "parts of a reference that mean nothing": (
        reference(name="llama", uid="1-2-3", fieldPath="spec.roles"),
        [f"{SCALING_REF}.{name}: means nothing here and is ignored" for name in ("uid", "fieldPath")],
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
    "steps that do not grow": (
        optimizer(param("a"), costExpansionRatePercent=99),
        [
            "spec.optimizerConfiguration.costExpansionRatePercent: below 100 no step grows, and each adds one"
            " replica"
        ],
    ),
}


@pytest.mark.parametrize(("spec", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_what_is_hardly_meant_is_told(spec: Json, want: list[str]) -> None:
    """Legal, but worth a warning that fits a terminal; what is usual is worth none."""
    assert validate(AutoscalingPolicyBinding, {"spec": spec}) == []

    advice = binding_advice({"spec": spec})

    assert advice == want
    assert all(len(text) <= 120 for text in advice)
