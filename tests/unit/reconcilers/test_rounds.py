"""When pods are evicted: one round at a time, not at the first shortage, and so many in an hour."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from apiserver.schema.json import Json
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Move, Plan, SolverReport, SolverStatus
from controller.reconcilers.rounds import (
    FRUITLESS_SECONDS,
    ROUND_SECONDS,
    EvictionRules,
    Rounds,
    after_plan,
    begun,
    may_begin,
    targets,
)

RULES = EvictionRules(enabled=True, interval_seconds=300.0, per_hour=2)
SOLVED = SolverReport(status=SolverStatus.OPTIMAL, unproven="", gap=0.0, message="")
LARGE, HUGE = ("ns", "large"), ("ns", "huge")
STOOD = Rounds(short=frozenset({LARGE}), plans=2)


def pod(name: str, node: str = "n1", *, owner: str = "small-abc", **metadata: object) -> Json:
    """Return a pod of a ReplicaSet."""
    owners = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    base = {"namespace": "ns", "name": name, "uid": name, "ownerReferences": owners}
    return {"metadata": base | metadata, "spec": {"nodeName": node} if node else {}, "status": {}}


def planned(*benefits: tuple[str, str], replicas: int = 1, name: str = "small", other: bool = False) -> Plan:
    """Return a plan that moves replicas from one node for somebody; for nobody it moves none."""
    move = Move(namespace="ns", name=name, node="n1", replicas=replicas, benefits=benefits, is_other=other)
    return Plan(
        decisions=(), placements=(), cost=Decimal(0), solver=SOLVED, moves=(move,) if benefits else ()
    )


BEGINNINGS = {
    "a shortage that has stood is acted on": (STOOD, RULES, planned(LARGE), True),
    "not at its first plan": (replace(STOOD, plans=1), RULES, planned(LARGE), False),
    "not where evictions are off": (STOOD, replace(RULES, enabled=False), planned(LARGE), False),
    "not where nothing would move": (STOOD, RULES, planned(), False),
    "not soon after the last round": (replace(STOOD, last_seconds=9800.0), RULES, planned(LARGE), False),
    "some time after the last round": (replace(STOOD, last_seconds=9700.0), RULES, planned(LARGE), True),
    "up to as many as an hour may see": (
        replace(STOOD, evictions=(9000.0,)),
        RULES,
        planned(LARGE),
        True,
    ),
    "and not one more": (replace(STOOD, evictions=(9000.0,)), RULES, planned(LARGE, replicas=2), False),
    "not while a round is under way": (
        begun(STOOD, targets(planned(LARGE), {("ns", "small"): [pod("a")]}, []), [], now_seconds=9.0),
        RULES,
        planned(LARGE),
        False,
    ),
}


@pytest.mark.parametrize("sentence", BEGINNINGS)
def test_when_a_round_begins(sentence: str) -> None:
    """At ten thousand seconds."""
    rounds, rules, plan, expected = BEGINNINGS[sentence]

    assert may_begin(rounds, rules, plan, now_seconds=10_000.0) is expected


def test_plans_in_a_row_are_counted_for_the_same_only() -> None:
    """Another shortage starts anew, and one that is over is forgotten."""
    counts, rounds = [], Rounds()
    for plan in (planned(LARGE), planned(LARGE), planned(HUGE), planned(), planned(LARGE)):
        rounds = after_plan(rounds, plan, (), now_seconds=0.0)
        counts.append(rounds.plans)

    assert counts == [1, 2, 1, 0, 1]


def test_evictions_older_than_an_hour_are_forgotten() -> None:
    """What counts against the hour is what lies in it."""
    rounds = after_plan(Rounds(evictions=(0.0, 3000.0)), planned(), (), now_seconds=4000.0)

    assert rounds.evictions == (3000.0,)


def test_a_round_ends_when_as_many_are_bound_as_before() -> None:
    """Not while the new pod waits, and not because of the pod that is going."""
    gone, stays = pod("gone"), pod("stays", "n2")
    chosen = targets(planned(LARGE), {("ns", "small"): [gone, stays]}, [])
    rounds = begun(STOOD, chosen, [gone, stays], now_seconds=0.0)
    assert rounds.current is not None
    leaving = pod("gone", deletionTimestamp="2026-01-01T00:00:00Z")

    pending = after_plan(rounds, planned(), [gone, stays, pod("new", "")], now_seconds=1.0)
    assert pending.current is not None
    bound = after_plan(rounds, planned(), [leaving, stays, pod("new", "n3")], now_seconds=2.0)
    assert (bound.current, bound.last_seconds) == (None, 2.0)


def test_a_round_that_ran_out_of_time_is_followed_by_a_long_rest() -> None:
    """What is made anew found no place, for a reason that the plan did not see."""
    gone = pod("gone")
    chosen = targets(planned(LARGE), {("ns", "small"): [gone]}, [])
    rounds = begun(STOOD, chosen, [gone], now_seconds=0.0)
    for _ in range(3):
        rounds = after_plan(rounds, planned(LARGE), [pod("new", "")], now_seconds=ROUND_SECONDS)

    assert rounds.current is None
    soon, late = ROUND_SECONDS + RULES.interval_seconds, ROUND_SECONDS + FRUITLESS_SECONDS
    assert not may_begin(rounds, RULES, planned(LARGE), now_seconds=soon)
    assert may_begin(rounds, RULES, planned(LARGE), now_seconds=late)


def test_a_round_in_which_nobody_was_evicted_is_given_up_until_the_next_is_due() -> None:
    """A budget that refuses is not asked again at once."""
    rounds = begun(STOOD, (), (), now_seconds=50.0)

    assert (rounds.current, rounds.last_seconds, rounds.evictions) == (None, 50.0, ())


def test_the_long_rest_is_over_with_the_round_after_it() -> None:
    """One that was given up is followed by the usual pause."""
    tired = replace(STOOD, last_seconds=0.0, rest_seconds=FRUITLESS_SECONDS)
    rounds = begun(tired, (), (), now_seconds=4000.0)

    assert may_begin(rounds, RULES, planned(LARGE), now_seconds=4000.0 + RULES.interval_seconds)


@pytest.mark.parametrize(("asked_for", "ends"), [(3, False), (2, False), (1, True), (0, True)])
def test_a_round_waits_for_no_more_than_are_still_asked_for(asked_for: int, ends: bool) -> None:
    """Who is scaled down in the meantime never has as many as before."""
    gone, stays = (pod(name, labels={"pod-template-hash": "abc"}) for name in ("gone", "stays"))
    chosen = targets(planned(LARGE), {("ns", "small"): [gone]}, [])
    rounds = begun(STOOD, chosen, [gone, stays], now_seconds=0.0)
    asked = {TargetKey(TargetKind.DEPLOYMENT, "ns", "small"): {"spec": {"replicas": asked_for}}}

    later = after_plan(rounds, planned(), [stays], now_seconds=9.0, asked=asked)

    assert (later.current is None) is ends


OWNED = {("ns", "small"): [pod("first"), pod("elsewhere", "n2"), pod("second")]}
CHOSEN: dict[str, tuple[Plan, list[Json], list[str]]] = {
    "those of the node, in the order in which they would go": (planned(LARGE, replicas=1), [], ["first"]),
    "as many as the plan says": (planned(LARGE, replicas=2), [], ["first", "second"]),
    "none where there are no longer enough": (planned(LARGE, replicas=3), [], []),
    "a pod of others by its name": (
        planned(LARGE, name="job", other=True),
        [pod("job", owner="jobs")],
        ["job"],
    ),
    "no pod of others that is gone": (planned(LARGE, name="job", other=True), [], []),
    "none that nobody makes anew": (
        planned(LARGE, name="job", other=True),
        [pod("job", ownerReferences=[])],
        [],
    ),
}


@pytest.mark.parametrize("sentence", CHOSEN)
def test_which_pods_are_evicted(sentence: str) -> None:
    """By name."""
    plan, others, expected = CHOSEN[sentence]

    found = targets(plan, OWNED, others)

    assert [target.pod["metadata"]["name"] for target in found] == expected
