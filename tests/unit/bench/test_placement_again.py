"""Repeated plans of the same snapshot, with its lists in the same and in a shuffled order."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from hack.bench.cores import Cores
from hack.bench.placement.repeating import COLUMNS, Again, again, again_goals, digest, shuffled
from hack.bench.table import tabulated
from hack.fleets.worlds import world


def test_every_list_is_shuffled() -> None:
    """No item is lost, and the pods of each variant keep their order."""
    found = world("plan-scarce", 100, seed=0)
    other = shuffled(found, order=1)

    assert (other.nodes != found.nodes, other.variants != found.variants, other.loads != found.loads) == (
        True, True, True,
    )  # fmt: skip
    assert sorted(other.variants, key=lambda v: v.key) == sorted(found.variants, key=lambda v: v.key)
    assert {*other.nodes} == {*found.nodes}
    assert {*other.loads} == {*found.loads}
    assert shuffled(found, order=0) is found
    assert shuffled(found, order=2) != other


def test_different_snapshots_have_different_digests() -> None:
    """Otherwise, equal digests would prove nothing."""
    first = digest("again-plenty", 5, seed=0, order=0)

    assert digest("again-plenty", 5, seed=0, order=1) == first
    assert digest("again-plenty", 5, seed=1, order=0) != first


def test_plans_of_different_processes_are_equal() -> None:
    """There is one run in each order, each in its own process."""
    cores = Cores.split(frozenset(os.sched_getaffinity(0)))
    found = again(cores, "again-plenty", 5, seed=0, repeats=1)

    assert (len(found.plain), len(found.shuffled), found.different) == (1, 1, 1)


def test_a_failed_process_is_an_error() -> None:
    """The family does not exist."""
    cores = Cores.split(frozenset(os.sched_getaffinity(0)))

    with pytest.raises(OSError, match=r"planning again-nothing/5/0 again: KeyError: 'again-nothing'"):
        again(cores, "again-nothing", 5, seed=0, repeats=1)


def test_the_goal_is_one_result_for_each_snapshot() -> None:
    """The largest number of results counts, and snapshots are counted separately."""
    same = Again(family="again-plenty", size=20, seed=0, plain=("a", "a"), shuffled=("a", "a"))
    other = replace(same, seed=1, plain=("b", "b"), shuffled=("b", "c"))

    assert [goal.is_met for goal in again_goals([same])] == [True]
    assert [goal.line() for goal in again_goals([same, other])] == [
        "goal: T9_different_plans_of_the_same_world 2.00 plans, wanted <= 1: missed"
    ]
    assert [line.split() for line in tabulated(COLUMNS, [same, other])[1:]] == [
        ["again-plenty", "20", "0", "2", "2", "1"],
        ["again-plenty", "20", "1", "2", "2", "2"],
    ]
    assert list(again_goals([])) == []
