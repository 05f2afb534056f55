"""The time from decisions that add replicas until these are ready."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.variants.telemetry import ReadyTimes

KEY = ("ns", "chat")

CASES: dict[str, tuple[list[tuple[int, int] | None], list[tuple[int, float]]]] = {
    "the wait ends when all added replicas are ready": ([(1, 1), (3, 1), (3, 2), (3, 3), (3, 3)], [(3, 20)]),
    "more ready replicas than decided end it, too": ([(1, 1), (3, 1), (3, 4)], [(2, 10)]),
    "the first decision that is seen may be old": ([(3, 1), (3, 3)], []),
    "replicas that are ready before the decision are not timed": ([(1, 3), (3, 3), (3, 3)], []),
    "a decision for fewer replicas ends the wait": ([(1, 1), (3, 1), (2, 1), (2, 2), (2, 3)], []),
    "a decision for more again starts a new wait": ([(1, 1), (3, 1), (2, 1), (3, 1), (3, 3)], [(4, 10)]),
    "a decision that grows while waiting has its own wait": (
        [(1, 1), (2, 1), (4, 1), (4, 2), (4, 4)],
        [(3, 20), (4, 20)],
    ),
    "decisions that are ready together are two observations": (
        [(1, 1), (2, 1), (4, 1), (4, 4)],
        [(3, 20), (3, 10)],
    ),
    "a smaller decision leaves the wait for what it still grants": (
        [(1, 1), (2, 1), (4, 1), (3, 1), (3, 3)],
        [(4, 30)],
    ),
    "replicas that fail after they were ready start no wait": (
        [(1, 1), (2, 1), (2, 2), (2, 1), (2, 2)],
        [(2, 10)],
    ),
    "an object that goes ends the wait": ([(1, 1), (3, 1), None, (3, 3)], []),
}


@pytest.mark.parametrize("sentence", CASES)
def test_waits(sentence: str) -> None:
    """The cycles are 10 seconds apart: (granted, ready), or None without the object."""
    cycles, want = CASES[sentence]
    times = ReadyTimes()

    found = [
        (number, seconds)
        for number, cycle in enumerate(cycles)
        for key, seconds in times.advance(
            {} if cycle is None else {KEY: cycle[0]},
            {} if cycle is None else {KEY: cycle[1]},
            now_seconds=10.0 * number,
        )
        if key == KEY
    ]

    assert found == want


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_there_are_at_most_as_many_observations_as_decisions_that_grow(cycles: list[tuple[int, int]]) -> None:
    """Each takes at least one cycle."""
    times, found = ReadyTimes(), list[float]()
    for number, (granted, ready) in enumerate(cycles):
        found += [
            seconds for _, seconds in times.advance({KEY: granted}, {KEY: ready}, now_seconds=10.0 * number)
        ]
    grown = sum(after > before for (before, _), (after, _) in pairwise(cycles))

    assert len(found) <= grown
    assert all(seconds >= 10 for seconds in found)
