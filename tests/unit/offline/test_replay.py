"""Replays of saved decisions, which include the state of earlier cycles."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from support.plan_verb import Granted, Plan

from controller.planning.cluster import Node
from controller.planning.inputs import PlanningInputs, to_json
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.planning.state import Course, PlanningState

NOW = 1_000_000.0
TURNING = Course(namespace="ns", name="chat", replicas=6, direction=1, reversed_seconds=(NOW - 600, NOW - 60))
"""The variant was reversed twice within the last hour, and last scaled up."""

VARIANT = Variant(
    namespace="ns",
    name="chat",
    model_id="chat",
    accelerator="L4",
    accelerators_per_replica=1,
    cost_per_replica=Decimal(1),
    current_replicas=6,
    replicas=tuple(Replica(name=f"chat-{number}", node="n1", ready=True) for number in range(6)),
    capacity=Capacity(requests_per_second=10.0, source=CapacitySource.LEARNED),
)
SAVED = PlanningInputs(
    snapshot=Snapshot(
        nodes=(Node(name="n1", accelerator="L4", accelerators_allocatable=8),),
        variants=(VARIANT,),
        loads=(
            ModelLoad(
                namespace="ns",
                model_id="chat",
                requests_per_second=5.0,
                upper_requests_per_second=5.0,
                required_requests_per_second=6.0,
                releasable_requests_per_second=7.0,
            ),
        ),
        taken_seconds=NOW,
    ),
    state=PlanningState(courses=(TURNING,)),
    settings=Settings(flap_reversals=2),
)


def test_a_replay_applies_the_flap_budget_at_the_saved_time(plan: Plan) -> None:
    """The current time does not matter, and saving the decision again loses nothing."""
    files = {"saved.json": to_json(SAVED).decode()}

    _, out, _ = plan("-f", "saved.json", "-o", "json", "--save", "again.json", files=files)

    made = json.loads(out)["plan"]["decisions"][0]
    assert (made["replicas"], made["bound_by"]) == (6, "Flapping")
    assert made["message"].startswith(
        "chat is kept at 6 replicas: changed direction 2 times in the last hour, "
    )
    assert Path("again.json").read_bytes() == to_json(SAVED)


def test_reversals_before_the_window_have_no_effect(plan: Plan, granted: Granted) -> None:
    """The window ends at the saved time."""
    later = replace(SAVED, snapshot=replace(SAVED.snapshot, taken_seconds=NOW + 3600))

    _, out, _ = plan("-f", "-", "-o", "json", given=to_json(later).decode())

    assert granted(out) == {"chat": 1}


def test_a_configuration_replaces_the_flap_budget_of_a_saved_decision(plan: Plan, granted: Granted) -> None:
    """This shows the effect of other settings on the same state."""
    answers = []
    for reversals in (0, 2, 4):
        told = json.dumps({"planning": {"flapBudget": {"reversals": reversals}}})
        given = {"given": to_json(SAVED).decode(), "files": {"c.yaml": told}}
        _, out, _ = plan("-f", "-", "-o", "json", "--config", "c.yaml", **given)
        answers.append(granted(out)["chat"])

    assert answers == [1, 6, 1]
