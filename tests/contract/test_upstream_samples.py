"""Objects like the samples in the documentation of Kthena: admitted, and used for one decision.

The facts are those of its user guide (in the fields of these kinds) and of what its controller makes of a
Model; the names are different. `docs/policies.md` lists rejections and differences with the reasons.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import pytest

from apiserver.kinds.judgement import complete_and_judge, errors_of
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from controller.policies.history import History
from controller.policies.policy import Value, read_binding, read_policy
from controller.policies.sharing import BindingObservation, TargetObservation, decide_binding

WAITING = "engine:requests_waiting"
CALM = {"stabilizationWindow": "5m", "period": "1m"}
PANIC = {"panicThresholdPercent": 150, "panicModeHold": "5m"}


def manifest(kind: str, spec: Json) -> Json:
    """Return an object of the API group."""
    meta = {"name": "sample", "namespace": "serving"}
    return {"apiVersion": "registry.volcano.sh/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def policy(panic: Json, stable: Json, down: Json) -> Json:
    """Return a policy with one metric."""
    behavior = {"scaleUp": {"panicPolicy": panic, "stablePolicy": stable}, "scaleDown": down}
    metrics = [{"metricName": WAITING, "targetValue": 10.0}]
    return manifest("AutoscalingPolicy", {"tolerancePercent": 10, "metrics": metrics, "behavior": behavior})


def target(name: str, **more: object) -> Json:
    """Return the target of a group of engines."""
    return {"targetRef": {"kind": "ModelInfer", "name": name}, **more}


GUIDE_POLICY = policy(PANIC | {"period": "15s"}, {"stabilizationWindow": "1m", "period": "30s"}, CALM)
"""The policy of the guide, with the period that its samples omit."""

MADE_POLICY = policy({"period": "0s"}, {}, {})
"""A policy as a Go client sends it if all optional fields are unset."""

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
            ]
        },
    },
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A policy and a binding, expected warnings, running replicas, a load, and expected replicas."""

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
    "expanded from a Model": Sample(
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
def test_a_documented_object_is_admitted_and_decided_on(sample: Sample) -> None:
    """There are no errors and only these warnings, and the replicas serve the load."""
    rules, of_rules = admitted(sample.policy)
    binding, of_binding = admitted(sample.binding)
    assert of_rules + of_binding == sample.warnings

    seen = BindingObservation(
        targets=tuple(TargetObservation(current_replicas=count) for count in sample.counts),
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
"""Objects of the guide that are rejected; docs/policies.md lists them with the reason."""


@pytest.mark.parametrize(("value", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_fields_that_the_guide_omits_are_required(value: Json, error: str) -> None:
    """There is one error, which names the missing field."""
    found = find_version(value["apiVersion"], value["kind"])

    assert found is not None
    assert [str(item) for item in errors_of(*found, value)] == [error]
