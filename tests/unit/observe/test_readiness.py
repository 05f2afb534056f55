"""The condition `Ready`: which problems make it False, and which one it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from support.manifests import variant
from support.status_inputs import DECISION, INPUTS, NOW, finding, stored

from apiserver.kinds.following import FollowingProblem, Problem
from controller.observe.claim import Unplanned
from controller.observe.conditions import ConditionReason, ConditionType, readiness
from controller.observe.decision_following import ActingReason
from controller.planning.decision import Reason
from controller.planning.load import Signal
from controller.variants.advisory import Advice
from controller.variants.status import StatusInputs, planned_status, reasons_not_ready, unplanned_status

STEADY = replace(DECISION, reason=Reason.STEADY, message="chat stays at 3 replicas")
FINE = replace(INPUTS, decision=STEADY, acting=(True, ActingReason.FOLLOWED, "3 decided, 3 requested"))
BELOW = (False, ActingReason.BELOW, "3 decided, 1 requested for 200 s")
ADVICE = Advice(reason=ConditionReason.OBJECT_ADVISORY, because="why", saved_per_hour=Decimal(1))
MISREAD = (Problem(reason=FollowingProblem.TARGET_DIFFERS, message="it multiplies"),)
UNKNOWN = replace(STEADY, load=replace(STEADY.load, signal=Signal.UNKNOWN))

CASES: Mapping[str, tuple[StatusInputs, tuple[str, str]]] = {
    "nothing is wrong: the reason is that of the decision": (FINE, ("True", "Steady")),
    "a shortage is named, but is no reason to wait": (replace(FINE, decision=DECISION), ("True", "Shortage")),
    "a shortage is worse than a price that is not allowed": (
        finding(replace(FINE, decision=DECISION), unpriced="the listed price counts"),
        ("True", "Shortage"),
    ),
    "a price that is not allowed is named": (
        finding(FINE, unpriced="the listed price counts"),
        ("True", "CostNotAllowed"),
    ),
    "a target that nothing scales is named": (finding(FINE, unheeded="no HPA"), ("True", "TargetNotScaled")),
    "a decision that is not followed": (replace(FINE, acting=BELOW), ("False", "ReplicasBelowDecision")),
    "what is not followed is worse than a shortage": (
        replace(FINE, decision=DECISION, acting=BELOW),
        ("False", "ReplicasBelowDecision"),
    ),
    "unknown load": (replace(FINE, decision=UNKNOWN), ("False", "MetricsUnavailable")),
    "a wrong autoscaler is the cause of what is not followed": (
        finding(replace(FINE, acting=BELOW), misread=MISREAD),
        ("False", "MetricTargetDiffers"),
    ),
    "advice does not need an autoscaler": (
        finding(replace(FINE, acting=None, advice=ADVICE), misread=MISREAD),
        ("True", "Steady"),
    ),
}


@pytest.mark.parametrize(("inputs", "want"), CASES.values(), ids=CASES.keys())
def test_a_variant_is_ready_unless(inputs: StatusInputs, want: tuple[str, str]) -> None:
    """Tools read the status, users the reason."""
    ready, *others = planned_status(stored(variant("chat")), inputs, now=NOW)["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", *want)
    if ready["status"] == "False":
        assert ready["message"] in [item["message"] for item in others]


def test_an_unplanned_variant_is_not_ready() -> None:
    """Its reason says why."""
    why = Unplanned(ConditionReason.TARGET_NOT_FOUND, "there is no Deployment")
    ready = unplanned_status(stored(variant("chat")), why, now=NOW)["conditions"][0]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "TargetNotFound")


def test_metrics_name_the_reasons_of_the_objects_that_are_not_ready() -> None:
    """Other conditions that do not hold are not theirs."""
    value = stored(variant("chat"))
    advised = finding(replace(FINE, acting=None, advice=ADVICE), misread=MISREAD)
    inputs = {"ready": advised, "not-ready": replace(FINE, acting=BELOW)}
    statuses = {("ns", name): planned_status(value, item, now=NOW) for name, item in inputs.items()}
    assert reasons_not_ready(statuses) == {("ns", "not-ready"): "ReplicasBelowDecision"}


def test_an_undetermined_condition_does_not_count() -> None:
    """It is absent or Unknown."""
    fine = Reason.STEADY, "steady"
    needed = ConditionType.TARGET_RESOLVED, ConditionType.DECISION_FOLLOWED
    unknown = {ConditionType.TARGET_RESOLVED: (None, ConditionReason.TARGET_CLAIMED, "not read yet")}
    assert readiness(unknown, needed=needed, fine=fine) == (True, *fine)
