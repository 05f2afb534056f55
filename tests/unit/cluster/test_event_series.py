"""Aggregation of occurrences to events and event series, with a limit per object."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apiserver.cluster.events import BURST, REMEMBERED_OBJECTS, EventSeries, Occurrence, Send

NOW = datetime(2026, 7, 1, tzinfo=UTC)


def occurrence(meaning: str = "m", *, name: str = "a", action: str = "Scale") -> Occurrence:
    """Return an occurrence."""
    return Occurrence(
        regarding=(("name", name),),
        type="Normal",
        reason="Why",
        action=action,
        note="note",
        meaning=meaning,
    )


def test_a_repetition_is_sent_only_as_a_count_every_five_minutes() -> None:
    """The first occurrence of a meaning is sent at once."""
    series = EventSeries()
    said = [series.decide(occurrence(), NOW + timedelta(minutes=minute)) for minute in range(11)]

    assert said == [Send(1, 1), *[None] * 4, Send(1, 6), *[None] * 4, Send(1, 11)]


def test_every_change_of_meaning_is_sent() -> None:
    """This includes a change back to an earlier meaning."""
    series = EventSeries()
    said = [series.decide(occurrence(meaning), NOW) for meaning in "aabba"]

    assert said == [Send(1, 1), None, Send(2, 1), None, Send(3, 1)]


def test_different_actions_and_objects_have_separate_series() -> None:
    """Alternating actions on one object count as no change of meaning."""
    series = EventSeries()
    for _ in range(3):
        series.decide(occurrence("a", action="Scale"), NOW)
        series.decide(occurrence("b", action="Place"), NOW)
        series.decide(occurrence("c", name="other"), NOW)

    assert series.decide(occurrence("new"), NOW) == Send(4, 1)


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
