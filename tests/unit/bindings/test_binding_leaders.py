"""What the next leader restores from statuses of bindings, and when these are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.binding_stage import Stage, binding, policy

from apiserver.schema.json import Json
from controller.bindings.autoscalingpolicybinding import BindingSettings
from controller.bindings.status import REFRESH_SECONDS, binding_news
from controller.variants.publishing import Urgency

AT_ONCE = {"period": "0s", "stabilizationWindow": "0s"}
PANICKY = policy(
    behavior={"scaleUp": {"panicPolicy": {"period": "0s", "panicModeHold": "120s"}}, "scaleDown": AT_ONCE}
)


async def test_a_new_leader_continues_a_stabilization_window() -> None:
    """Scaling down happens after the same time as without the restart."""
    stage = Stage(loads={"a": 45.0})
    await stage.cycle(follow=True)
    assert stage.replicas["a"] == 9
    stage.loads["a"] = 1.0
    await stage.cycle(times=2, follow=True)
    stage.begin()
    await stage.cycle(times=2, follow=True)

    assert stage.replicas["a"] == 9
    await stage.cycle(times=2, follow=True)
    assert stage.replicas["a"] == 1


@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_a_window_does_not_end_early_because_the_status_is_old(*, is_new_leader: bool) -> None:
    """The load lasts for 45 s, and only the first decision is written; the window begins at the last."""
    rules = {
        "scaleUp": {"stablePolicy": {"period": "0s"}},
        "scaleDown": {"period": "0s", "stabilizationWindow": "120s"},
    }
    stage = Stage(loads={"a": 10.0}, policies=[policy(behavior=rules)], replicas={"a": 9})
    await stage.cycle(times=4)
    assert len(stage.written) == 1
    if is_new_leader:
        stage.begin()
    stage.loads["a"] = 0.1
    await stage.cycle(times=8)
    assert stage.published() == {"a": 9}
    await stage.cycle()

    assert stage.published() == {"a": 1}


@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_panic_mode_does_not_end_early_because_the_status_is_old(*, is_new_leader: bool) -> None:
    """A surge lasts for 45 s, because the HPA is late; the hold time begins at its last moment."""
    stage = Stage(loads={"a": 45.0}, policies=[PANICKY])
    await stage.cycle(times=4)
    assert len(stage.written) == 1
    if is_new_leader:
        stage.begin()
    stage.replicas["a"], stage.loads["a"] = 9, 1.0
    await stage.cycle(times=8)
    assert stage.published() == {"a": 9}
    assert stage.status()["decision"]["panicSince"] == "2026-01-01T12:00:00Z"
    await stage.cycle()

    assert stage.published() == {"a": 1}


@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_a_new_leader_does_not_prolong_panic_mode_without_a_surge(*, is_new_leader: bool) -> None:
    """After the surge no metric is known, and the written statuses repeat its end and recommendation."""
    stage = Stage(loads={"a": 45.0}, policies=[PANICKY])
    await stage.cycle(follow=True)
    stage.loads = {}
    await stage.cycle(times=6, follow=True)
    assert len(stage.written) == 3
    if is_new_leader:
        stage.begin()
    stage.loads = {"a": 1.0}
    await stage.cycle(times=2, follow=True)
    assert stage.published() == {"a": 9}
    await stage.cycle()

    assert stage.published() == {"a": 1}


async def test_an_outage_does_not_prolong_panic_mode() -> None:
    """The load of the last 20 minutes is unknown: panic mode and window ended while no controller ran."""
    stage = Stage(loads={"a": 45.0}, policies=[PANICKY])
    await stage.cycle(times=2)
    assert "panicSince" in stage.status()["decision"]
    stage.time += timedelta(minutes=20)
    stage.begin()
    stage.replicas["a"], stage.loads["a"] = 9, 1.0
    await stage.cycle()

    assert "panicSince" not in stage.status()["decision"]
    assert stage.published() == {"a": 1}


async def test_panic_mode_does_not_resume_when_a_missing_policy_returns() -> None:
    """Nothing was decided without the policy, so the surge did not continue."""
    panic = {"panicPolicy": {"period": "0s", "panicModeHold": "60s"}}
    rules = {"scaleUp": panic, "scaleDown": AT_ONCE}
    stage = Stage(loads={"a": 45.0}, policies=[policy(behavior=rules)])
    await stage.cycle()
    assert "panicSince" in stage.status()["decision"]
    kept, stage.policies, stage.replicas["a"], stage.loads["a"] = stage.policies, [], 9, 10.0
    await stage.cycle(times=6)
    stage.policies = kept
    await stage.cycle()

    assert "panicSince" not in stage.status()["decision"]


@pytest.mark.parametrize("is_new_leader", [False, True])
async def test_a_grace_period_does_not_end_early_because_the_status_is_old(*, is_new_leader: bool) -> None:
    """A load for one replica lasts for 45 s; the grace period begins at its last moment."""
    lone = binding()
    lone["spec"]["scalingConfiguration"]["minReplicas"] = 0
    stage = Stage(
        bindings={"b": lone},
        policies=[policy(behavior={"scaleUp": {"stablePolicy": AT_ONCE}, "scaleDown": AT_ONCE})],
        loads={"a": 5.0},
        replicas={"a": 1},
        settings=BindingSettings(grace_seconds=120.0),
    )
    await stage.cycle(times=4)
    assert len(stage.written) == 1
    if is_new_leader:
        stage.begin()
    stage.loads["a"] = 0.0
    await stage.cycle(times=7)
    assert stage.published() == {"a": 1}
    await stage.cycle()

    assert stage.published() == {"a": 0}


@pytest.mark.parametrize(("bindings", "replicas"), [(1, 1), (200, 9)])
async def test_a_new_leader_of_many_bindings_assumes_that_statuses_are_older(
    bindings: int, replicas: int
) -> None:
    """One status is written per second, so with 200 bindings the surge can have lasted 3 minutes longer."""
    stage = Stage(loads={"a": 45.0}, policies=[PANICKY])
    await stage.cycle()
    stage.bindings |= {f"b{place}": binding(f"b{place}", f"absent{place}") for place in range(bindings - 1)}
    stage.time += timedelta(minutes=4)
    stage.begin()
    stage.replicas["a"], stage.loads["a"] = 9, 1.0
    await stage.cycle()

    assert stage.published() == {"a": replicas}


NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
BOUND = {"type": "ScalingActive", "status": "True", "reason": "Scaling", "message": "3 replicas"}
UNREAD = {
    "type": "TargetsResolved",
    "status": "False",
    "reason": "NotReadable",
    "message": "the scale of Deployment/llm was not read yet",
}
FORBIDDEN = UNREAD | {"message": "the scale of Deployment/llm may not be read"}
THEIRS = {"type": "Healthy", "status": "False", "reason": "Busy", "message": "it is busy"}
LATE = UNREAD | {"message": "the scale of Deployment/llm was not read for 12 s"}
LATER = UNREAD | {"message": "the scale of Deployment/llm was not read for 27 s"}


def _status(*conditions: Json, age_seconds: float = 5.0, **more: object) -> Json:
    written = (NOW - timedelta(seconds=age_seconds)).isoformat()
    return {"conditions": list(conditions), "history": "h", "lastDecisionTime": written} | more


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(_status(BOUND), _status(BOUND), None, id="nothing changed"),
        pytest.param(
            _status(THEIRS, BOUND), _status(BOUND), None, id="a condition of another controller, which stays"
        ),
        pytest.param(_status(BOUND, age_seconds=-90.0), _status(BOUND), Urgency.URGENT, id="a time to come"),
        pytest.param(
            _status(BOUND) | {"lastDecisionTime": None}, _status(BOUND), Urgency.URGENT, id="no time"
        ),
        pytest.param(
            _status(UNREAD), _status(UNREAD | {"reason": "NotFound"}), Urgency.URGENT, id="another reason"
        ),
        pytest.param(
            _status(UNREAD), _status(FORBIDDEN), Urgency.ORDINARY, id="another cause of the same reason"
        ),
        pytest.param(_status(LATE), _status(LATER), None, id="another number in the same cause"),
        pytest.param(
            _status(BOUND),
            _status(BOUND | {"message": "4 replicas, within a window"}),
            None,
            id="another message of a condition that holds",
        ),
        pytest.param(_status(BOUND), _status(BOUND, history="i"), None, id="figures of a recent status"),
        pytest.param(
            _status(BOUND, age_seconds=REFRESH_SECONDS),
            _status(BOUND, history="i"),
            Urgency.ORDINARY,
            id="figures of an old status",
        ),
    ],
)
def test_a_status_is_written_if_its_content_changed(old: Json, new: Json, expected: Urgency | None) -> None:
    """It is written at once, in turn or not at all, depending on what differs."""
    assert binding_news(old, new, now=NOW) is expected
