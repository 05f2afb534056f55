"""Rules for evictions, and their record on the Lease."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.decisions import plan_of

from apiserver.cluster.lease import LeaseOptions, with_annotation, with_holder
from apiserver.schema.json import Json
from controller.evictions.rounds import (
    ANNOTATION,
    FRUITLESS_SECONDS,
    ROUND_SECONDS,
    EvictionRules,
    Rounds,
    after_plan,
    begin,
    may_begin,
    moments_in,
    pods_to_evict,
    record_of,
)
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Move, Plan

RULES = EvictionRules(enabled=True, interval_seconds=300.0, per_hour=2)
LARGE, HUGE = ("ns", "large"), ("ns", "huge")
STOOD = Rounds(short=frozenset({LARGE}), plans=2)


def pod(name: str, node: str = "n1", *, owner: str = "small-abc", **metadata: object) -> Json:
    """Return a pod of a ReplicaSet."""
    owners = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    base = {"namespace": "ns", "name": name, "uid": name, "ownerReferences": owners}
    return {"metadata": base | metadata, "spec": {"nodeName": node} if node else {}, "status": {}}


def planned(*benefits: tuple[str, str], replicas: int = 1, name: str = "small", other: bool = False) -> Plan:
    """Return a plan that moves replicas from one node for some variants, or none if there are no variants."""
    move = Move(namespace="ns", name=name, node="n1", replicas=replicas, benefits=benefits, is_other=other)
    return plan_of(moves=(move,) if benefits else ())


BEGINNINGS = {
    "a round begins after a persistent shortage": (STOOD, RULES, planned(LARGE), True),
    "not at the first plan with the shortage": (replace(STOOD, plans=1), RULES, planned(LARGE), False),
    "not if evictions are disabled": (STOOD, replace(RULES, enabled=False), planned(LARGE), False),
    "not if the plan moves nothing": (STOOD, RULES, planned(), False),
    "not soon after the last round": (replace(STOOD, last_seconds=9800.0), RULES, planned(LARGE), False),
    "some time after the last round": (replace(STOOD, last_seconds=9700.0), RULES, planned(LARGE), True),
    "evictions up to the limit per hour": (replace(STOOD, evictions=(9000.0,)), RULES, planned(LARGE), True),
    "not one eviction more than the limit": (
        replace(STOOD, evictions=(9000.0,)),
        RULES,
        planned(LARGE, replicas=2),
        False,
    ),
    "not during another round": (
        begin(STOOD, pods_to_evict(planned(LARGE), {("ns", "small"): [pod("a")]}, []), [], now_seconds=9.0),
        RULES,
        planned(LARGE),
        False,
    ),
}


@pytest.mark.parametrize("sentence", BEGINNINGS)
def test_conditions_for_a_new_round(sentence: str) -> None:
    """The time is 10 000 s."""
    rounds, rules, plan, expected = BEGINNINGS[sentence]

    assert may_begin(rounds, rules, plan, now_seconds=10_000.0) is expected


def test_only_consecutive_plans_with_the_same_shortage_are_counted() -> None:
    """Counting restarts for another shortage, and ends with the shortage."""
    counts, rounds = [], Rounds()
    for plan in (planned(LARGE), planned(LARGE), planned(HUGE), planned(), planned(LARGE)):
        rounds = after_plan(rounds, plan, (), now_seconds=0.0)
        counts.append(rounds.plans)

    assert counts == [1, 2, 1, 0, 1]


def test_evictions_older_than_an_hour_are_dropped() -> None:
    """Only evictions within the last hour count against its limit."""
    rounds = after_plan(Rounds(evictions=(0.0, 3000.0)), planned(), (), now_seconds=4000.0)

    assert rounds.evictions == (3000.0,)


def test_a_round_ends_when_as_many_pods_are_bound_as_before() -> None:
    """It does not end while the new pod is pending, and the terminating pod does not count."""
    gone, stays = pod("gone"), pod("stays", "n2")
    chosen = pods_to_evict(planned(LARGE), {("ns", "small"): [gone, stays]}, [])
    rounds = begin(STOOD, chosen, [gone, stays], now_seconds=0.0)
    assert rounds.current is not None
    leaving = pod("gone", deletionTimestamp="2026-01-01T00:00:00Z")

    pending = after_plan(rounds, planned(), [gone, stays, pod("new", "")], now_seconds=1.0)
    assert pending.current is not None
    bound = after_plan(rounds, planned(), [leaving, stays, pod("new", "n3")], now_seconds=2.0)
    assert (bound.current, bound.last_seconds) == (None, 2.0)


def test_a_round_that_timed_out_is_followed_by_a_long_pause() -> None:
    """The recreated pods fit nowhere, for a reason unknown to the plan."""
    gone = pod("gone")
    chosen = pods_to_evict(planned(LARGE), {("ns", "small"): [gone]}, [])
    rounds = begin(STOOD, chosen, [gone], now_seconds=0.0)
    for _ in range(3):
        rounds = after_plan(rounds, planned(LARGE), [pod("new", "")], now_seconds=ROUND_SECONDS)

    assert rounds.current is None
    soon, late = ROUND_SECONDS + RULES.interval_seconds, ROUND_SECONDS + FRUITLESS_SECONDS
    assert not may_begin(rounds, RULES, planned(LARGE), now_seconds=soon)
    assert may_begin(rounds, RULES, planned(LARGE), now_seconds=late)


def test_a_round_without_evictions_is_abandoned_until_the_next_one_is_due() -> None:
    """A budget that refused an eviction is not tried again at once."""
    rounds = begin(STOOD, (), (), now_seconds=50.0)

    assert (rounds.current, rounds.last_seconds, rounds.evictions) == (None, 50.0, ())


def test_the_long_pause_is_followed_by_the_usual_one() -> None:
    """This also holds if the round in between was abandoned."""
    tired = replace(STOOD, last_seconds=0.0, rest_seconds=FRUITLESS_SECONDS)
    rounds = begin(tired, (), (), now_seconds=4000.0)

    assert may_begin(rounds, RULES, planned(LARGE), now_seconds=4000.0 + RULES.interval_seconds)


@pytest.mark.parametrize(("asked_for", "ends"), [(3, False), (2, False), (1, True), (0, True)])
def test_a_round_waits_only_for_the_replicas_that_the_target_still_wants(asked_for: int, ends: bool) -> None:
    """A target that was scaled down meanwhile never has as many pods as before."""
    gone, stays = (pod(name, labels={"pod-template-hash": "abc"}) for name in ("gone", "stays"))
    chosen = pods_to_evict(planned(LARGE), {("ns", "small"): [gone]}, [])
    rounds = begin(STOOD, chosen, [gone, stays], now_seconds=0.0)
    asked = {TargetKey(TargetKind.DEPLOYMENT, "ns", "small"): {"spec": {"replicas": asked_for}}}

    later = after_plan(rounds, planned(), [stays], now_seconds=9.0, targets=asked)

    assert (later.current is None) is ends


OWNED = {("ns", "small"): [pod("first"), pod("elsewhere", "n2"), pod("second")]}
CHOSEN: dict[str, tuple[Plan, list[Json], list[str]]] = {
    "pods of the node, in the order of removal": (planned(LARGE, replicas=1), [], ["first"]),
    "as many pods as the plan moves": (planned(LARGE, replicas=2), [], ["first", "second"]),
    "none if there are no longer enough": (planned(LARGE, replicas=3), [], []),
    "a pod of another workload by its name": (
        planned(LARGE, name="job", other=True),
        [pod("job", owner="jobs")],
        ["job"],
    ),
    "no pod of another workload that is deleted": (planned(LARGE, name="job", other=True), [], []),
    "no pod that no controller recreates": (
        planned(LARGE, name="job", other=True),
        [pod("job", ownerReferences=[])],
        [],
    ),
}


@pytest.mark.parametrize("sentence", CHOSEN)
def test_which_pods_are_evicted(sentence: str) -> None:
    """Pods are compared by name."""
    plan, others, expected = CHOSEN[sentence]

    found = pods_to_evict(plan, OWNED, others)

    assert [target.pod["metadata"]["name"] for target in found] == expected


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MOMENTS = [NOON.timestamp() + seconds for seconds in (0.2, 0.9, 600)]
LEASE = {"metadata": {"name": "lease", "annotations": {"theirs": "kept"}}, "spec": {"holderIdentity": "me"}}


def recorded(moments: list[float]) -> Json:
    """Return the Lease with a record."""
    return with_annotation(LEASE, ANNOTATION, record_of(moments))


def test_a_record_is_read_as_it_was_written() -> None:
    """Times are rounded up to seconds and grouped by second; other annotations are kept."""
    written = recorded(MOMENTS)

    assert written["spec"] == LEASE["spec"]
    told = "2026-01-01T12:00:01Z x2, 2026-01-01T12:10:00Z x1"
    assert written["metadata"]["annotations"] == {"theirs": "kept", ANNOTATION: told}
    assert moments_in(written) == (MOMENTS[2] - 599, MOMENTS[2] - 599, MOMENTS[2])


def test_a_lease_without_record_or_with_an_empty_one_has_no_evictions() -> None:
    """An old Lease has no record, and after an hour without evictions it is empty."""
    assert moments_in({"metadata": {}}) == moments_in(recorded([])) == ()


def test_renewing_the_lease_keeps_the_record() -> None:
    """This also holds if another process takes over the lease."""
    for identity in ("me", "other"):
        options = LeaseOptions(namespace="ns", name="lease", identity=identity)
        assert moments_in(with_holder(recorded(MOMENTS[2:]), options, NOON)) == (MOMENTS[2],)


@pytest.mark.parametrize("times", ["x0", "x-3", "x", "3", "x999999999999999", "x1.5", ""])
def test_an_implausible_count_is_rejected(times: str) -> None:
    """It must neither mean that there were no evictions, nor allocate a huge list."""
    lease = {"metadata": {"annotations": {ANNOTATION: f"2026-01-01T12:00:20Z {times}"}}}

    with pytest.raises(ValueError, match=r"must end in x1|does not match|unconverted"):
        moments_in(lease)
