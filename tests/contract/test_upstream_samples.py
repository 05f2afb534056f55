"""Objects in the shape of the reference's documented samples: admitted, and decided on once.

The facts are those of its user guide (in the fields of these kinds) and of what its controller makes of a
Model; the names are ours. `docs/policies.md` lists what is refused or understood otherwise, with the reason.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import pytest

from apiserver.kinds.judgement import complete_and_judge, judged
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from controller.policies.binding import read_binding
from controller.policies.history import History
from controller.policies.observation import Value
from controller.policies.policy import read_policy
from controller.policies.sharing import BindingSeen, TargetSeen, decide_binding

WAITING = "engine:requests_waiting"
CALM = {"stabilizationWindow": "5m", "period": "1m"}
PANIC = {"panicThresholdPercent": 150, "panicModeHold": "5m"}


def manifest(kind: str, spec: Json) -> Json:
    """Return an object of the group."""
    meta = {"name": "sample", "namespace": "serving"}
    return {"apiVersion": "registry.volcano.sh/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def policy(panic: Json, stable: Json, down: Json) -> Json:
    """Return a policy on one metric."""
    behavior = {"scaleUp": {"panicPolicy": panic, "stablePolicy": stable}, "scaleDown": down}
    metrics = [{"metricName": WAITING, "targetValue": 10.0}]
    return manifest("AutoscalingPolicy", {"tolerancePercent": 10, "metrics": metrics, "behavior": behavior})


def target(name: str, **more: object) -> Json:
    """Return the target of a group of engines."""
    return {"targetRef": {"kind": "ModelInfer", "name": name}, **more}


GUIDE_POLICY = policy(PANIC | {"period": "15s"}, {"stabilizationWindow": "1m", "period": "30s"}, CALM)
"""As in the guide, with the period that its samples leave out."""

MADE_POLICY = policy({"period": "0s"}, {}, {})
"""As a Go client sends it that leaves everything open."""

HOMOGENEOUS = manifest(
    "AutoscalingPolicyBinding",
    {
        "policyRef": {"name": "sample"},
        "scalingConfiguration": {
            "target": target("alike", metricEndpoint={"uri": "/metrics", "port": 8000}),
            "minReplicas": 2,
            "maxReplicas": 10,
        },
    },
)
HETEROGENEOUS = manifest(
    "AutoscalingPolicyBinding",
    {
        "policyRef": {"name": "sample"},
        "optimizerConfiguration": {
            "costExpansionRatePercent": 20,
            "params": [
                {"target": target("fast"), "minReplicas": 1, "maxReplicas": 5, "cost": 100},
                {"target": target("slow"), "minReplicas": 2, "maxReplicas": 8, "cost": 30},
            ],
        },
    },
)
MADE_BINDING = manifest(
    "AutoscalingPolicyBinding",
    {
        "policyRef": {"name": "sample"},
        "optimizerConfiguration": {
            "params": [
                {
                    "target": target(
                        name,
                        additionalMatchLabels={"modelinfer.volcano.sh/role": "leader"},
                        metricEndpoint={},
                    ),
                    "minReplicas": low,
                    "maxReplicas": high,
                    "cost": cost,
                }
                for name, low, high, cost in (("m-h100", 0, 4, 100), ("m-a100", 1, 8, 60))
            ],
        },
    },
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A policy with its binding and the warnings about them; running replicas, load, and the decision."""

    policy: Json
    binding: Json
    warnings: list[str] = field(default_factory=list)
    counts: tuple[int, ...]
    load: float = 65.0
    want: tuple[int, ...]


SAMPLES = {
    "homogeneous": Sample(policy=GUIDE_POLICY, binding=HOMOGENEOUS, counts=(2,), want=(7,)),
    "heterogeneous": Sample(
        policy=GUIDE_POLICY,
        binding=HETEROGENEOUS,
        warnings=[
            "spec.optimizerConfiguration.costExpansionRatePercent: below 100 means 100: nothing costs less"
            " than the least"
        ],
        counts=(1, 2),
        want=(1, 6),
    ),
    "made of a Model": Sample(
        policy=MADE_POLICY,
        binding=MADE_BINDING,
        warnings=[
            "spec.behavior: filled in stabilizationWindow 0s for scaleUp and 5m for scaleDown",
            "spec.behavior.scaleUp.panicPolicy: period 0s lifts the limit",
        ],
        counts=(0, 1),
        want=(0, 7),
    ),
}


def admitted(value: Json) -> tuple[Json, list[str]]:
    """Return the object with its defaults, and the warnings; fail if there are errors."""
    found, value = find_version(value["apiVersion"], value["kind"]), copy.deepcopy(value)
    assert found is not None
    judgement = complete_and_judge(*found, value)
    assert judgement.errors == []
    advice = [text for advise in found[1].advise for text in advise(value)]
    return value, [*judgement.completion.warnings, *advice]


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_a_documented_shape_is_admitted_and_decided_on(sample: Sample) -> None:
    """No errors, these warnings, and replicas that serve the load."""
    rules, of_rules = admitted(sample.policy)
    binding, of_binding = admitted(sample.binding)
    assert of_rules + of_binding == sample.warnings

    seen = BindingSeen(
        targets=tuple(TargetSeen(current_replicas=count) for count in sample.counts),
        totals={WAITING: Value(value=sample.load)},
    )
    found = decide_binding(read_policy(rules), read_binding(binding), History(), seen, 0.0)
    assert found.replicas == sample.want


SERVING = manifest(
    "AutoscalingPolicyBinding",
    {
        "policyRef": {"name": "sample"},
        "scalingConfiguration": {
            "target": {"targetRef": {"kind": "ModelServing", "name": "alike"}},
            "minReplicas": 2,
            "maxReplicas": 10,
        },
    },
)
REFUSED = {
    "panic without a period": (
        policy(PANIC, {"stabilizationWindow": "1m", "period": "30s"}, CALM),
        "spec.behavior.scaleUp.panicPolicy.period: Required value",
    ),
    "a kind without its group": (
        SERVING,
        "spec.scalingConfiguration.target.targetRef.apiVersion: Required value: must be"
        " workload.serving.volcano.sh/v1alpha1 for a ModelServing",
    ),
}
"""Shapes of the guide that are refused, which docs/policies.md lists with the reason."""


@pytest.mark.parametrize(("value", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_guide_leaves_open_is_asked_for(value: Json, error: str) -> None:
    """One error, which says what is missing."""
    found = find_version(value["apiVersion"], value["kind"])

    assert found is not None
    assert [str(item) for item in judged(*found, value)] == [error]
