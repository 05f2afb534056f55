"""What the Lease says of cycles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apiserver.cluster.heartbeat import LAST_CYCLE, MOST_UNCONFIRMED, Heartbeat, heartbeat_of
from apiserver.schema.json import Json
from controller.reconcilers.heartbeat import Pulse
from controller.reconcilers.publishing import Published

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def stored(number: int, *, decided: object = NOW.isoformat()) -> Json:
    """Return a VariantAutoscaling that was decided on some time."""
    return {
        "metadata": {"namespace": "ns", "name": f"v{number}"},
        "status": {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": decided}},
    }


def statuses(*autoscalings: Json) -> dict[tuple[str, str], Json]:
    """Return decisions that say what is known."""
    return {("ns", item["metadata"]["name"]): item["status"] for item in autoscalings}


def told(pulse: Pulse) -> Heartbeat | None:
    """Return what a reader of the Lease finds."""
    return heartbeat_of({"metadata": {"annotations": dict(pulse.annotations())}})


def test_a_heartbeat_comes_back_as_it_was_written() -> None:
    """With fractions of a second, and names."""
    beat = Heartbeat(
        time=NOW + timedelta(microseconds=5),
        newest_decision=NOW,
        unconfirmed=frozenset({("ns", "a"), ("other", "b.c")}),
    )

    assert heartbeat_of({"metadata": {"annotations": beat.annotations()}}) == beat


@pytest.mark.parametrize("text", ["", "soon", "12", "0001-01-01T00:00:00+23:59"])
def test_an_annotation_that_says_no_time_says_nothing(text: str) -> None:
    """Nor does none at all."""
    assert heartbeat_of({"metadata": {"annotations": {LAST_CYCLE: text}}}) is None
    assert heartbeat_of({"metadata": {}}) is None


def test_what_nobody_decided_on_is_not_confirmed() -> None:
    """Its number grows old, and the others' do not."""
    pulse, known = Pulse(), [stored(0), stored(1)]

    pulse.beat(known, statuses(known[0]), Published(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=NOW, unconfirmed=frozenset({("ns", "v1")}))


def test_a_cycle_that_left_many_behind_counts_for_nothing() -> None:
    """The last good one stands."""
    pulse, known = Pulse(), [stored(number) for number in range(MOST_UNCONFIRMED + 1)]
    pulse.beat(known, statuses(*known), Published(), time=NOW)

    pulse.beat(known, {}, Published(), time=NOW + timedelta(minutes=1))

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=NOW)


@pytest.mark.parametrize("decided", ["soon", 7, None, "9999-12-31T23:59:59-23:59"])
def test_a_time_that_somebody_else_wrote_stops_nothing(decided: object) -> None:
    """It is passed over."""
    pulse, known = Pulse(), [stored(0, decided=decided), stored(1)]

    pulse.beat(known, statuses(*known), Published(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=NOW)


def test_a_decision_whose_writing_waits_is_confirmed_as_it_stands() -> None:
    """Readers must not wait for a time that is not in the store yet."""
    pulse, old = Pulse(), stored(0)
    later = (NOW + timedelta(minutes=5)).isoformat()
    new = {("ns", "v0"): {"desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": later}}}

    pulse.beat([old], new, Published(), time=NOW)
    waiting = told(pulse)
    pulse.beat([old], new, Published(written=frozenset(new)), time=NOW)
    written = told(pulse)

    assert waiting == Heartbeat(time=NOW, newest_decision=NOW)
    assert written == Heartbeat(time=NOW, newest_decision=NOW + timedelta(minutes=5))


def test_advice_is_no_decision_that_readers_wait_for() -> None:
    """It has a time and no number: the metrics API would never see it, and believe no cycle any more."""
    pulse, acted = Pulse(), NOW - timedelta(seconds=60)
    acting = {"metadata": {"namespace": "ns", "name": "a"}, "status": _desired(acted, 1)}
    advised = {"metadata": {"namespace": "ns", "name": "b"}, "status": _desired(NOW, None)}

    pulse.beat([acting, advised], statuses(acting, advised), Published(), time=NOW)

    assert told(pulse) == Heartbeat(time=NOW, newest_decision=acted)


def _desired(decided: datetime, replicas: int | None) -> Json:
    number = {} if replicas is None else {"numReplicas": replicas}
    return {"desiredOptimizedAlloc": {"lastRunTime": decided.isoformat()} | number}
