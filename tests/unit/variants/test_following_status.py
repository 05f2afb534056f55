"""Conditions and events about who acts on a decision, and on which accelerators its pods run."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, cast

import pytest
from support.manifests import variant
from support.status_inputs import INPUTS, NOW, finding, stored

from apiserver.kinds.following import FollowingProblem, Problem
from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason
from controller.observe.decision_following import ActingReason
from controller.observe.declarations import claimant_of
from controller.planning.load import Signal
from controller.variants.advisory import Advice
from controller.variants.announcing import Announcer
from controller.variants.status import StatusInputs, planned_status

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
        {
            "TargetResolved": ("True", "TargetFound"),
            "DecisionFollowed": ("False", "ReplicasBelowDecision"),
        },
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
