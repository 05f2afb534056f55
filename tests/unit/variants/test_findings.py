"""Conditions of a status: readiness, followed decisions, and attained targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, cast

import pytest
from support.manifests import variant
from support.status_inputs import DECISION, INPUTS, NOW, finding, stored

from apiserver.kinds.following import FollowingProblem, Problem
from apiserver.kinds.llmd import v1alpha2
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.claim import Exclusion
from controller.observe.conditions import ConditionReason, ConditionType, readiness
from controller.observe.decision_following import ActingReason
from controller.observe.declarations import claimant_of
from controller.planning.decision import Reason
from controller.planning.load import Signal
from controller.sizing.attainment import Attainment, TargetAttainment
from controller.sizing.records import Targets
from controller.sizing.sizing import SizedVariant
from controller.variants.advisory import Advice
from controller.variants.announcing import Announcer
from controller.variants.status import StatusInputs, planned_status, reasons_not_ready, unplanned_status

if TYPE_CHECKING:
    from apiserver.cluster.events import EventRecorder

MISREAD = (
    Problem(reason=FollowingProblem.TARGET_DIFFERS, message="it multiplies"),
    Problem(reason=FollowingProblem.SELECTOR_DIFFERS, message="it is another one's"),
)
FOLLOWED = (True, ActingReason.FOLLOWED, "3 decided, 3 requested")
BELOW = (False, ActingReason.BELOW, "3 decided, 1 requested for 200 s")
ADVICE = Advice(reason=ConditionReason.OBJECT_ADVISORY, because="why", saved_per_hour=Decimal(1))
FINE = replace(INPUTS, acting=FOLLOWED)

CASES: dict[str, tuple[StatusInputs, dict[str, tuple[str, str]]]] = {
    "all is well": (
        FINE,
        {"TargetResolved": ("True", "TargetFound"), "DecisionFollowed": ("True", "ReplicasAsDecided")},
    ),
    "the autoscaler reads it wrongly": (
        finding(FINE, misread=MISREAD),
        {
            "TargetResolved": ("False", "MetricTargetDiffers"),
            "DecisionFollowed": ("False", "MetricTargetDiffers"),
        },
    ),
    "the same before decisions are applied": (
        finding(replace(INPUTS, advice=ADVICE), misread=MISREAD),
        {"TargetResolved": ("True", "MetricTargetDiffers")},
    ),
    "the autoscaler does not act": (
        replace(FINE, acting=BELOW),
        {"TargetResolved": ("True", "TargetFound"), "DecisionFollowed": ("False", "ReplicasBelowDecision")},
    ),
    "the accelerator is another one": (
        finding(FINE, mistyped="pods run on 1 A100"),
        {"AcceleratorResolved": ("False", "AcceleratorDiffers")},
    ),
}
LISTED = ("TargetResolved", "DecisionFollowed", "AcceleratorResolved")


def conditions(status: Json) -> dict[str, tuple[str, str]]:
    """Return status and reason of the conditions about who acts."""
    return {
        item["type"]: (item["status"], item["reason"])
        for item in status["conditions"]
        if item["type"] in LISTED
    }


@pytest.mark.parametrize(("inputs", "found"), CASES.values(), ids=CASES)
def test_conditions_say_who_acts(inputs: StatusInputs, found: dict[str, tuple[str, str]]) -> None:
    """A variant with nothing to report has no condition about its accelerator."""
    seen = conditions(planned_status(stored(variant("chat")), inputs, now=NOW))

    assert seen.items() >= found.items()
    assert ("AcceleratorResolved" in seen) is bool(inputs.observed.mistyped)
    assert ("DecisionFollowed" in seen) is (inputs.acting is not None)


def test_what_pods_have_more_than_their_template_is_said() -> None:
    """It is no problem."""
    status = planned_status(
        stored(variant("chat")),
        finding(FINE, target=replace(FINE.observed.target, difference="toleration gpu")),
        now=NOW,
    )

    assert status["conditions"][1]["message"] == "the Deployment exists; toleration gpu"


class Events:
    """Recorded events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def record(self, _: Json, *, type: str, reason: str, **__: str) -> None:  # noqa: A002 (as the recorder)
        """Record an event."""
        self.seen.append((type, reason))


def test_invisible_demand_of_a_new_object_is_announced() -> None:
    """Annotated autoscalers have no conditions that could be read instead."""
    events = Events()
    nothing = replace(
        FINE.decision, replicas=0, load=replace(FINE.decision.load, signal=Signal.UNKNOWN, ready_replicas=0)
    )
    inputs = replace(
        FINE, decision=nothing, variant=replace(FINE.variant, may_scale_to_zero=True), unseen="set it"
    )
    value = stored(variant("chat"))

    status = planned_status(value, inputs, now=NOW)
    Announcer(cast("EventRecorder", events)).status_written(claimant_of(value), status)

    assert ("Warning", "DemandNotVisible") in events.seen


def test_each_change_causes_one_event() -> None:
    """A problem of a new object is announced, too; the same one in a further cycle is not."""
    events = Events()
    announcer = Announcer(cast("EventRecorder", events))
    value = stored(variant("chat"))
    steps = (
        replace(FINE, acting=BELOW),
        replace(FINE, acting=BELOW),
        FINE,
        finding(FINE, mistyped="x"),
        FINE,
    )
    for inputs in steps:
        status = planned_status(value, inputs, now=NOW)
        announcer.status_written(claimant_of(value), status)
        value = value | {"status": status}

    assert events.seen == [
        ("Warning", "ReplicasBelowDecision"),
        ("Normal", "ReplicasAsDecided"),
        ("Warning", "AcceleratorDiffers"),
    ]


LEVELS = {
    "most requests are late": (
        Attainment(requests=2000.0, missed_ttft=100.0, missed_itl=400.0),
        ("False", "TargetsMissed"),
        "76 % of the model's 2000 requests within the last hour met TTFT 2 s and ITL 80 ms; 95 % are"
        " promised; 5 % missed the TTFT and 20 % the ITL",
    ),
    "few requests are late": (
        Attainment(requests=2000.0, missed_ttft=40.0),
        ("True", "TargetsMet"),
        "98 % of the model's 2000 requests within the last hour met TTFT 2 s and ITL 80 ms; 95 % are"
        " promised",
    ),
    "too few to judge": (Attainment(requests=99.0, missed_ttft=99.0), None, ""),
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_condition_compares_what_was_attained_with_what_is_promised(name: str) -> None:
    """The figures are in the decision in any case."""
    attained, want, message = LEVELS[name]
    level = TargetAttainment(targets=Targets(ttft_seconds=2.0, itl_seconds=0.08), attained=attained)
    value = stored(variant("chat"))

    value["status"] = planned_status(value, replace(INPUTS, sized=SizedVariant(service_level=level)), now=NOW)

    found = [item for item in value["status"]["conditions"] if item["type"] == "AttainmentKept"]
    assert [(item["status"], item["reason"]) for item in found] == ([want] if want else [])
    assert [item["message"] for item in found] == ([message] if want else [])
    assert value["status"]["decision"]["serviceLevel"]["requests"] == attained.requests
    assert validate(v1alpha2.VariantAutoscaling, value) == []


STEADY = replace(DECISION, reason=Reason.STEADY, message="chat stays at 3 replicas")
AS_DECIDED = replace(INPUTS, decision=STEADY, acting=(True, ActingReason.FOLLOWED, "3 decided, 3 requested"))
TOO_FEW = (False, ActingReason.BELOW, "3 decided, 1 requested for 200 s")
DIFFERENT = (Problem(reason=FollowingProblem.TARGET_DIFFERS, message="it multiplies"),)
UNKNOWN = replace(STEADY, load=replace(STEADY.load, signal=Signal.UNKNOWN))

READY: Mapping[str, tuple[StatusInputs, tuple[str, str]]] = {
    "nothing is wrong: the reason is that of the decision": (AS_DECIDED, ("True", "Steady")),
    "a shortage is named, but is no reason to wait": (
        replace(AS_DECIDED, decision=DECISION),
        ("True", "Shortage"),
    ),
    "a shortage is worse than a price that is not allowed": (
        finding(replace(AS_DECIDED, decision=DECISION), unpriced="the listed price counts"),
        ("True", "Shortage"),
    ),
    "a price that is not allowed is named": (
        finding(AS_DECIDED, unpriced="the listed price counts"),
        ("True", "CostNotAllowed"),
    ),
    "a target that nothing scales is named": (
        finding(AS_DECIDED, unheeded="no HPA"),
        ("True", "TargetNotScaled"),
    ),
    "a decision that is not followed": (
        replace(AS_DECIDED, acting=TOO_FEW),
        ("False", "ReplicasBelowDecision"),
    ),
    "what is not followed is worse than a shortage": (
        replace(AS_DECIDED, decision=DECISION, acting=TOO_FEW),
        ("False", "ReplicasBelowDecision"),
    ),
    "unknown load": (replace(AS_DECIDED, decision=UNKNOWN), ("False", "MetricsUnavailable")),
    "a wrong autoscaler is the cause of what is not followed": (
        finding(replace(AS_DECIDED, acting=TOO_FEW), misread=DIFFERENT),
        ("False", "MetricTargetDiffers"),
    ),
    "advice does not need an autoscaler": (
        finding(replace(AS_DECIDED, acting=None, advice=ADVICE), misread=DIFFERENT),
        ("True", "Steady"),
    ),
}


@pytest.mark.parametrize(("inputs", "want"), READY.values(), ids=READY.keys())
def test_a_variant_is_ready_unless(inputs: StatusInputs, want: tuple[str, str]) -> None:
    """Tools read the status, users the reason."""
    ready, *others = planned_status(stored(variant("chat")), inputs, now=NOW)["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", *want)
    if ready["status"] == "False":
        assert ready["message"] in [item["message"] for item in others]


def test_an_unplanned_variant_is_not_ready() -> None:
    """Its reason says why."""
    why = Exclusion(ConditionReason.TARGET_NOT_FOUND, "there is no Deployment")
    ready = unplanned_status(stored(variant("chat")), why, now=NOW)["conditions"][0]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "TargetNotFound")


def test_metrics_name_the_reasons_of_the_objects_that_are_not_ready() -> None:
    """Other conditions that do not hold are not theirs."""
    value = stored(variant("chat"))
    advised = finding(replace(AS_DECIDED, acting=None, advice=ADVICE), misread=DIFFERENT)
    inputs = {"ready": advised, "not-ready": replace(AS_DECIDED, acting=TOO_FEW)}
    statuses = {("ns", name): planned_status(value, item, now=NOW) for name, item in inputs.items()}
    assert reasons_not_ready(statuses) == {("ns", "not-ready"): "ReplicasBelowDecision"}


def test_an_undetermined_condition_does_not_count() -> None:
    """It is absent or Unknown."""
    fine = Reason.STEADY, "steady"
    needed = ConditionType.TARGET_RESOLVED, ConditionType.DECISION_FOLLOWED
    unknown = {ConditionType.TARGET_RESOLVED: (None, ConditionReason.TARGET_CLAIMED, "not read yet")}
    assert readiness(unknown, needed=needed, fine=fine) == (True, *fine)
