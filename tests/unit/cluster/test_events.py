"""Events, and their aggregation to series."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support.logs import capture_logs

from apiserver.cluster.events import (
    BURST,
    REMEMBERED_OBJECTS,
    EventRecorder,
    EventSeries,
    EventWrite,
    Occurrence,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from unit.cluster.conftest import Clock, FakeApiServer

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.timing import Timing

VARIANT = {
    "apiVersion": "llmd.ai/v1alpha2",
    "kind": "VariantAutoscaling",
    "metadata": {"name": "v", "namespace": "ns", "uid": "u", "resourceVersion": "9", "labels": {"a": "b"}},
}


class Desk:
    """A recorder, a settable date, and the server's events."""

    def __init__(self, cluster: Cluster, api: FakeApiServer, timing: Timing) -> None:
        """Start with a fixed date."""
        self.now = datetime(2026, 7, 1, tzinfo=UTC)
        self.api = api
        self.recorder = EventRecorder(
            cluster, controller="llmd.ai/stowplan", instance="pod-1", now=lambda: self.now, timing=timing
        )

    def record(self, note: str = "n", **more: Any) -> None:
        """Record an occurrence, by default about the variant."""
        about = more.pop("regarding", VARIANT)
        words = {"type": "Normal", "reason": "Scaled", "action": "Scale"} | more
        self.recorder.record(about, note=note, **words)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run the recorder during the block; at its end all events have been written."""
        task = asyncio.create_task(self.recorder.run())
        try:
            async with asyncio.timeout(60):
                yield
                await self.recorder.flush()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def events(self) -> list[dict[str, Any]]:
        """Return the events at the server."""
        return [obj for key, obj in self.api.objects.items() if key[0] == "apis/events.k8s.io/v1/events"]


@pytest.fixture
def desk(cluster: Cluster, api: FakeApiServer, timing: Timing) -> Desk:
    """Return a recorder with its server."""
    return Desk(cluster, api, timing)


async def test_an_event_has_all_required_members(desk: Desk) -> None:
    """The object reference has identifying members only."""
    async with desk.open():
        desk.record("grew from 1 to 2", type="Warning")
    (event,) = desk.events()

    assert event["metadata"]["namespace"] == "ns"
    assert event["regarding"] == {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "namespace": "ns",
        "name": "v",
        "uid": "u",
    }
    wanted = {
        "eventTime": "2026-07-01T00:00:00.000000Z",
        "reportingController": "llmd.ai/stowplan",
        "reportingInstance": "pod-1",
        "type": "Warning",
        "reason": "Scaled",
        "action": "Scale",
        "note": "grew from 1 to 2",
    }
    assert event.items() >= wanted.items()
    assert "series" not in event


async def test_cluster_scoped_objects_have_their_events_in_default(desk: Desk) -> None:
    """The API requires the namespace `default` for them."""
    async with desk.open():
        desk.record(regarding={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}})

    assert desk.events()[0]["metadata"]["namespace"] == "default"


async def test_repetitions_become_a_series(desk: Desk) -> None:
    """A note with other numbers but the same meaning only increases the count."""
    async with desk.open():
        for minute in range(6):
            desk.now += timedelta(minutes=1)
            desk.record(f"demand {minute}", meaning="steady")
    (event,) = desk.events()

    assert event["series"] == {"count": 6, "lastObservedTime": "2026-07-01T00:06:00.000000Z"}
    assert event["note"] == "demand 0"


async def test_an_expired_event_of_a_series_is_created_again(desk: Desk) -> None:
    """The new event has the count of the whole series."""
    async with desk.open():
        desk.record()
        await desk.recorder.flush()
        desk.api.drop(f"/apis/events.k8s.io/v1/namespaces/ns/events/{desk.events()[0]['metadata']['name']}")
        desk.now += timedelta(hours=2)
        desk.record()

    assert [event["series"]["count"] for event in desk.events()] == [2]


async def test_notes_are_truncated_to_the_limit_in_bytes(desk: Desk) -> None:
    """The API's limit is 1024 bytes, and no character is split."""
    async with desk.open():
        desk.record("é" * 1024)
    note = desk.events()[0]["note"]

    assert len(note.encode()) <= 1024
    assert note == "é" * 510 + "…"


async def test_event_names_of_long_object_names_are_valid(desk: Desk) -> None:
    """A name at the API's limit is truncated, and not at a separator."""
    metadata = {"name": "a" * 199 + "." + "b" * 53, "namespace": "ns", "uid": "u"}
    async with desk.open():
        desk.record(regarding=VARIANT | {"metadata": metadata})
    name = desk.events()[0]["metadata"]["name"]

    assert len(name) <= 253
    assert ".." not in name


async def test_an_event_is_written_again_after_server_errors(
    desk: Desk, api: FakeApiServer, clock: Clock
) -> None:
    """The delay increases."""
    api.fail("POST", times=2, code=503)
    async with desk.open():
        desk.record()

    assert len(desk.events()) == 1
    assert clock.waits == [1.0, 2.0]


async def test_a_retry_of_a_written_event_creates_no_second_event(
    desk: Desk, cluster: Cluster, api: FakeApiServer, timing: Timing
) -> None:
    """An existing event of the same name counts as success; recorders of the same start have equal names."""
    for recording in (desk, Desk(cluster, api, timing)):
        async with recording.open():
            recording.record()

    assert len(desk.events()) == 1


@pytest.mark.parametrize("code", [400, 403, 404, 422])
async def test_a_rejected_event_is_dropped(desk: Desk, api: FakeApiServer, code: int) -> None:
    """Later events are still written."""
    api.fail("POST", code=code)
    async with desk.open():
        desk.record("first")
        desk.record("second")

    assert [event["note"] for event in desk.events()] == ["second"]


async def test_events_beyond_the_limit_are_counted_in_one_line(desk: Desk) -> None:
    """Recording does not block, and the queue is bounded.

    A new leader has something to say of every object at once; thousands of lines would not help.
    """
    with capture_logs() as lines:
        for number in range(1050):
            desk.record(
                regarding=VARIANT | {"metadata": {"name": "v", "namespace": "ns", "uid": f"u{number}"}}
            )
        async with desk.open():
            pass

    assert [(line["event"], line["number"]) for line in lines] == [("events dropped", 50)]
    assert len(desk.events()) == 1000


async def test_many_dropped_events_are_logged_before_the_queue_is_empty(desk: Desk) -> None:
    """While the API server does not respond, the queue may stay full for hours."""
    for number in range(2000):
        desk.record(regarding=VARIANT | {"metadata": {"name": f"v{number}", "namespace": "ns", "uid": "u"}})

    with capture_logs(lambda: {"written": len(desk.events())}) as lines:
        async with desk.open():
            pass

    assert [(line["event"], line["number"], line["written"]) for line in lines] == [
        ("events dropped", 1000, 1)
    ]


NOW = datetime(2026, 7, 1, tzinfo=UTC)


def occurrence(meaning: str = "m", *, name: str = "a", action: str = "Scale") -> Occurrence:
    """Return an occurrence."""
    return Occurrence(
        regarding=(("name", name),), type="Normal", reason="Why", action=action, note="note", meaning=meaning
    )


def test_a_repetition_is_sent_only_as_a_count_every_five_minutes() -> None:
    """The first occurrence of a meaning is sent at once."""
    series = EventSeries()
    said = [series.decide(occurrence(), NOW + timedelta(minutes=minute)) for minute in range(11)]

    assert said == [EventWrite(1, 1), *[None] * 4, EventWrite(1, 6), *[None] * 4, EventWrite(1, 11)]


def test_every_change_of_meaning_is_sent() -> None:
    """This includes a change back to an earlier meaning."""
    series = EventSeries()
    said = [series.decide(occurrence(meaning), NOW) for meaning in "aabba"]

    assert said == [EventWrite(1, 1), None, EventWrite(2, 1), None, EventWrite(3, 1)]


def test_different_actions_and_objects_have_separate_series() -> None:
    """Alternating actions on one object count as no change of meaning."""
    series = EventSeries()
    for _ in range(3):
        series.decide(occurrence("a", action="Scale"), NOW)
        series.decide(occurrence("b", action="Place"), NOW)
        series.decide(occurrence("c", name="other"), NOW)

    assert series.decide(occurrence("new"), NOW) == EventWrite(4, 1)


def test_events_beyond_the_burst_are_limited_per_object() -> None:
    """After the burst an object gets one event every five minutes; other objects are not affected."""
    series = EventSeries()
    said = [series.decide(occurrence(str(number)), NOW) for number in range(2 * BURST)]
    assert [s is not None for s in said] == [True] * BURST + [False] * BURST
    assert series.decide(occurrence("x", name="other"), NOW)

    assert series.decide(occurrence("y"), NOW + timedelta(minutes=4)) is None
    assert series.decide(occurrence("y"), NOW + timedelta(minutes=5)) is not None
    assert series.decide(occurrence("z"), NOW + timedelta(minutes=6)) is None


def test_a_clock_set_back_does_not_change_the_event_budget() -> None:
    """The budget is neither refilled nor used up."""
    series = EventSeries()
    for number in range(BURST - 1):
        series.decide(occurrence(str(number)), NOW)
    assert series.decide(occurrence("x"), NOW - timedelta(days=1)) is not None
    assert series.decide(occurrence("y"), NOW - timedelta(days=1)) is None


def test_the_number_of_remembered_objects_is_bounded() -> None:
    """The latest ones are kept."""
    series = EventSeries()
    for number in range(REMEMBERED_OBJECTS + 10):
        series.decide(occurrence(name=str(number)), NOW)

    assert series.decide(occurrence(name=str(REMEMBERED_OBJECTS + 9)), NOW) is None
    assert series.decide(occurrence(name="0"), NOW) is not None
