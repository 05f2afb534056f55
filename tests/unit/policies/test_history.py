"""The text format of a history: written histories are read, and invalid ones are rejected."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.policies.history import (
    LONGEST_CHARACTERS,
    Entry,
    History,
    UnreadableHistoryError,
    read_history,
)

MOMENTS = st.integers(0, 10**12).map(lambda milliseconds: milliseconds / 1000)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a history whose times are whole milliseconds."""
    history, now = History(), 0.0
    steps = st.tuples(st.integers(0, 60_000), st.integers(0, 9), st.integers(0, 10**9))
    for milliseconds, requested, recommended in draw(st.lists(steps, max_size=100)):
        now = round(now + milliseconds / 1000, 3)
        history = history.at(now).add_request(now, requested).add_recommendation(now, recommended)
    silent = draw(st.dictionaries(st.text(max_size=256), MOMENTS, max_size=32))
    return History(
        highs=history.highs,
        lows=history.lows,
        peaks=history.peaks,
        dips=history.dips,
        decided_seconds=draw(st.none() | MOMENTS),
        recommended_seconds=history.recommended_seconds,
        panic_since_seconds=draw(st.none() | MOMENTS),
        panic_until_seconds=draw(st.none() | MOMENTS),
        active_seconds=draw(st.none() | MOMENTS),
        silent=silent,
    )


@given(histories())
def test_a_history_is_read_as_it_was_written(history: History) -> None:
    """The next leader continues with the same history; the number of characters is bounded."""
    text = history.document()

    assert read_history(text) == history
    assert len(text) <= LONGEST_CHARACTERS


GOOD = json.loads(History().document())
UNREADABLE = {
    "invalid JSON": "{",
    "not an object": "[]",
    "an unknown format": json.dumps(GOOD | {"format": 3}),
    "the previous format": json.dumps(GOOD | {"format": 1, "counts": [[1.0, 2]]}),
    "a missing part": json.dumps({key: value for key, value in GOOD.items() if key != "lows"}),
    "an invalid time": json.dumps(GOOD | {"active": "yesterday"}),
    "an infinite time": json.dumps(GOOD | {"highs": [[float("inf"), 1]]}),
    "a negative number of replicas": json.dumps(GOOD | {"peaks": [[1.0, -1]]}),
    "a fraction of a replica": json.dumps(GOOD | {"peaks": [[1.0, 1.5]]}),
    "a boolean": json.dumps(GOOD | {"peaks": [[1.0, True]]}),
    "entries not in order": json.dumps(GOOD | {"peaks": [[2.0, 2], [1.0, 1]]}),
    "highs that do not decrease": json.dumps(GOOD | {"highs": [[1.0, 1], [2.0, 2]]}),
    "peaks that do not decrease": json.dumps(GOOD | {"peaks": [[1.0, 1], [2.0, 2]]}),
    "too many entries": json.dumps(GOOD | {"dips": [[float(n), n] for n in range(65)]}),
    "too many metrics": json.dumps(GOOD | {"silent": {str(n): 1.0 for n in range(33)}}),
    "too many characters": " " * (LONGEST_CHARACTERS + 1),
    "too deeply nested": "[" * 5000,
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_invalid_history_is_rejected(text: str) -> None:
    """Other clients may have changed it."""
    with pytest.raises(UnreadableHistoryError):
        read_history(text)


STORED = replace(History(), decided_seconds=100.0).add_recommendation(100.0, 9)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(list(GOOD)), inner),
    )
)
def test_any_document_is_either_read_or_rejected(value: object) -> None:
    """There is no other exception."""
    try:
        read_history(json.dumps(GOOD | value if isinstance(value, dict) else value))
    except UnreadableHistoryError:
        return


def test_times_in_the_future_are_replaced_by_the_current_time() -> None:
    """If the clock was set back, windows and panic mode must not last for hours."""
    ahead = History(
        highs=(Entry(9000.0, 5),),
        peaks=(Entry(9000.0, 5),),
        dips=(Entry(9000.0, 5),),
        recommended_seconds=9000.0,
        panic_since_seconds=9000.0,
        panic_until_seconds=9060.0,
        active_seconds=9000.0,
    ).at(100.0)

    assert ahead.highs == ahead.peaks == ahead.dips == (Entry(100.0, 5),)
    assert (ahead.recommended_seconds, ahead.active_seconds) == (100.0, 100.0)
    assert ahead.panic_until_seconds == 1900.0


STORED = replace(History(), decided_seconds=100.0).add_recommendation(100.0, 9)


def test_the_state_at_the_last_stored_decision_is_continued() -> None:
    """This applies to the recommendation, a surge and activity; what had ended before it is not continued."""
    going_on = replace(STORED, panic_since_seconds=70.0, panic_until_seconds=160.0)
    active = replace(going_on, active_seconds=100.0).resume(145.0, hold_seconds=60.0)
    idle = replace(going_on, active_seconds=40.0, panic_until_seconds=130.0).resume(145.0, hold_seconds=60.0)

    assert active.highs == active.lows == (Entry(145.0, 9),)
    assert (active.recommended_seconds, active.panic_since_seconds) == (100.0, 70.0)
    assert (active.panic_until_seconds, active.active_seconds) == (205.0, 145.0)
    assert (idle.panic_until_seconds, idle.active_seconds) == (130.0, 40.0)


def test_what_had_ended_before_the_last_stored_decision_is_not_continued() -> None:
    """Without metrics for 45 s, the last recommendation and the surge are older than the decision."""
    surged = replace(STORED, panic_since_seconds=100.0, panic_until_seconds=160.0, active_seconds=100.0)
    unknown = replace(surged, decided_seconds=145.0)
    active = replace(unknown, active_seconds=145.0).resume(190.0, hold_seconds=60.0)

    assert unknown.resume(190.0, hold_seconds=60.0) == unknown
    assert active == replace(unknown, active_seconds=190.0)


def test_a_history_that_was_just_stored_or_has_no_decision_is_unchanged() -> None:
    """Nothing can have happened since, or it is unknown what did."""
    assert STORED.resume(100.0, hold_seconds=60.0) is STORED
    assert History().resume(100.0, hold_seconds=60.0) == History()


def test_a_history_without_the_time_of_its_decision_ends_with_its_recommendation() -> None:
    """Older processes did not store this time."""
    older = {key: value for key, value in json.loads(STORED.document()).items() if key != "decided"}

    assert read_history(json.dumps(older)) == STORED
