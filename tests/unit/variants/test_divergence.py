"""Differences between a plan and the scheduler's placement, and messages about pending replicas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from controller.planning.cluster import Node
from controller.planning.decision import NodePlacement
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.variants.placement_following import (
    REMEDY,
    Divergence,
    Expectation,
    WaitingReplica,
    divergence,
    sentences,
)

A, B = (Node(name=name, accelerator="A100", accelerators_allocatable=8) for name in ("node-a", "node-b"))


def variant(name: str, size: int, **bound: str | None) -> Variant:
    """Return a variant; the keywords are its pods and their nodes."""
    return Variant(
        namespace="ns",
        name=name,
        model_id=name,
        accelerator="A100",
        accelerators_per_replica=size,
        cost_per_replica=Decimal(1),
        current_replicas=len(bound),
        replicas=tuple(Replica(name=pod, node=node) for pod, node in sorted(bound.items())),
    )


def snapshot(*variants: Variant, nodes: tuple[Node, ...] = (A, B)) -> Snapshot:
    """Return the state of the cluster at one moment."""
    return Snapshot(nodes=nodes, variants=variants)


BEFORE = snapshot(variant("big", 8), variant("chat", 2, chat1="node-b"))
PLAN = Expectation(
    snapshot=BEFORE,
    placements=(
        NodePlacement(namespace="ns", name="big", node="node-a", pods=1),
        NodePlacement(namespace="ns", name="chat", node="node-b", pods=1),
    ),
)
RUNS_TWO = snapshot(variant("big", 8), variant("chat", 2, chat1="node-b", chat2="node-a"))
BIG_WAITS = WaitingReplica(variant=("ns", "big"), pod="big1", node="node-a", takers=("chat2",))


@dataclass(frozen=True, kw_only=True)
class Case:
    """The state at some time after the plan, and the expected differences."""

    now: Snapshot
    expected: Divergence
    last: Expectation | None = PLAN
    known: tuple[WaitingReplica, ...] = ()


CASES = {
    "replicas placed as planned are no difference": Case(
        now=snapshot(variant("big", 8, big1="node-a"), variant("chat", 2, chat1="node-b", chat2="node-b")),
        expected=Divergence(),
    ),
    "a pod that took the place of a pending replica is named": Case(
        now=snapshot(variant("big", 8, big1=None), variant("chat", 2, chat1="node-b", chat2="node-a")),
        expected=Divergence(elsewhere=1, waiting=(BIG_WAITS,)),
    ),
    "a pod bound to another node is only counted if no replica is pending": Case(
        now=snapshot(variant("big", 8), variant("chat", 2, chat1="node-b", chat2="node-a")),
        expected=Divergence(elsewhere=1),
    ),
    "a pod whose place is free is not reported as pending": Case(
        now=snapshot(variant("big", 8, big1=None), variant("chat", 2, chat1="node-b", chat2="node-b")),
        expected=Divergence(),
    ),
    "a pod that fits another node is not reported as pending": Case(
        now=snapshot(variant("big", 4, big1=None), variant("chat", 3, chat1="node-b", chat2="node-a")),
        expected=Divergence(elsewhere=1),
    ),
    "a pod without room in the plan is a shortage and no difference": Case(
        now=snapshot(variant("big", 8, big1="node-a", big2=None), variant("chat", 2, chat1="node-b")),
        expected=Divergence(),
    ),
    "new pods of other workloads are not named": Case(
        now=snapshot(
            variant("big", 8, big1=None),
            variant("chat", 2, chat1="node-b"),
            nodes=(replace(A, accelerators_used_by_others=3), B),
        ),
        expected=Divergence(waiting=(replace(BIG_WAITS, takers=()),)),
    ),
    "a node that has become unschedulable has no room": Case(
        now=snapshot(
            variant("big", 8, big1=None),
            variant("chat", 2, chat1="node-b"),
            nodes=(replace(A, schedulable=False), B),
        ),
        expected=Divergence(waiting=(replace(BIG_WAITS, takers=()),)),
    ),
    "a variant that runs more replicas than decided and holds the place is named": Case(
        now=snapshot(
            variant("big", 8, big1=None),
            replace(variant("chat", 2, chat1="node-b", chat2="node-a"), desired_replicas=1),
        ),
        last=Expectation(snapshot=RUNS_TWO, placements=PLAN.placements[:1]),
        expected=Divergence(
            waiting=(replace(BIG_WAITS, takers=(), late=("chat still runs 2 replicas instead of 1",)),)
        ),
    ),
    "a variant that runs the decided replicas is not named": Case(
        now=snapshot(
            variant("big", 8, big1=None),
            replace(variant("chat", 2, chat1="node-b", chat2="node-a"), desired_replicas=2),
        ),
        last=Expectation(snapshot=RUNS_TWO, placements=PLAN.placements[:1]),
        expected=Divergence(waiting=(replace(BIG_WAITS, takers=()),)),
    ),
    "a known pending replica stays pending if the next plan has no room for it": Case(
        now=snapshot(variant("big", 8, big1=None), variant("chat", 2, chat1="node-b", chat2="node-a")),
        last=Expectation(snapshot=BEFORE, placements=()),
        known=(BIG_WAITS,),
        expected=Divergence(elsewhere=1, waiting=(BIG_WAITS,)),
    ),
    "a known pending replica that is bound or deleted is no longer reported": Case(
        now=snapshot(variant("big", 8, big1="node-a"), variant("chat", 2, chat1="node-b")),
        known=(BIG_WAITS, replace(BIG_WAITS, pod="big2")),
        expected=Divergence(),
    ),
    "pods without accelerators are not in a plan and can run on any node": Case(
        now=snapshot(
            variant("big", 8), variant("chat", 2, chat1="node-b"), variant("tiny", 0, tiny1="node-a")
        ),
        expected=Divergence(),
    ),
    "there is no difference before the first plan": Case(
        now=snapshot(variant("big", 8, big1=None), variant("chat", 2, chat1="node-a")),
        last=None,
        expected=Divergence(),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_differences_to_the_plan_and_pending_replicas_are_found(case: Case) -> None:
    """The id of each case describes the state of the cluster."""
    assert divergence(case.last, case.known, case.now) == case.expected


def test_a_message_names_count_node_and_pods_in_the_way() -> None:
    """Replicas that are pending for the same node are reported together."""
    second = replace(BIG_WAITS, pod="big2", takers=("chat3", "chat2"))
    third = replace(BIG_WAITS, pod="big3", node="node-c", takers=())
    fourth = replace(BIG_WAITS, variant=("ns", "x"), takers=("a", "b", "c", "d", "e"))

    assert sentences([BIG_WAITS, second, third, fourth]) == {
        ("ns", "big"): "2 replicas planned on node-a wait: the scheduler assigned chat2 and chat3 to it and"
        f" 1 replica planned on node-c waits: other pods use the place; {REMEDY}",
        (
            "ns",
            "x",
        ): f"1 replica planned on node-a waits: the scheduler assigned a, b, c and 2 more to it; {REMEDY}",
    }


LATE = "chat still runs 2 replicas instead of 1"
SENTENCES = {
    "no scheduling gate is advised if autoscalers have not applied the plan": (
        [replace(BIG_WAITS, takers=(), late=(LATE,))],
        f"1 replica planned on node-a waits: {LATE}, because autoscalers have not followed the plan yet",
    ),
    "the scheduler's choice takes precedence over late autoscalers": (
        [replace(BIG_WAITS, late=(LATE,))],
        f"1 replica planned on node-a waits: the scheduler assigned chat2 to it; {REMEDY}",
    ),
    "the scheduling gate is advised if the scheduler is one of several causes": (
        [replace(BIG_WAITS, takers=(), late=(LATE,)), replace(BIG_WAITS, pod="big2", node="node-b")],
        f"1 replica planned on node-a waits: {LATE}, because autoscalers have not followed the plan yet and"
        f" 1 replica planned on node-b waits: the scheduler assigned chat2 to it; {REMEDY}",
    ),
}


@pytest.mark.parametrize(("waiting", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_a_message_distinguishes_the_causes(waiting: list[WaitingReplica], expected: str) -> None:
    """The advice to use the scheduling gate follows only causes that it prevents."""
    assert sentences(waiting) == {("ns", "big"): expected}


def test_late_variants_of_other_namespaces_are_not_named() -> None:
    """A user with access to one namespace must not learn names from another."""
    stranger = replace(variant("chat", 2, chat1="node-b", chat2="node-a"), namespace="elsewhere")
    last = Expectation(snapshot=snapshot(variant("big", 8), stranger), placements=PLAN.placements[:1])
    now = snapshot(variant("big", 8, big1=None), replace(stranger, desired_replicas=1))

    (waiting,) = divergence(last, (), now).waiting

    assert waiting.late == ("variants of other namespaces still run more replicas than planned",)


def test_each_pod_of_a_replica_counts_on_its_own_node() -> None:
    """Half of a group was bound to another node than planned, and takes the place of another replica."""
    group = replace(variant("group", 16), pods_per_replica=2)
    whole = replace(group, replicas=(Replica(name="g0", node="node-a", further_nodes=("node-b",)),))
    big = variant("big", 8, big1=None)
    last = Expectation(
        snapshot=snapshot(group, variant("big", 8)),
        placements=(
            NodePlacement(namespace="ns", name="group", node="node-a", pods=1),
            NodePlacement(namespace="ns", name="big", node="node-b", pods=1),
        ),
    )

    found = divergence(last, (), snapshot(whole, big))

    assert found.elsewhere == 1
    assert [(item.pod, item.node, item.takers) for item in found.waiting] == [("big1", "node-b", ("g0",))]


def test_pods_of_other_namespaces_are_not_named() -> None:
    """A user with access to one namespace must not learn names from another."""
    stranger = replace(variant("chat", 2, chat1="node-b", chat2="node-a"), namespace="elsewhere")
    before = replace(variant("chat", 2, chat1="node-b"), namespace="elsewhere")
    last = Expectation(
        snapshot=snapshot(variant("big", 8), before),
        placements=(NodePlacement(namespace="ns", name="big", node="node-a", pods=1),),
    )

    (waiting,) = divergence(last, (), snapshot(variant("big", 8, big1=None), stranger)).waiting

    assert waiting.takers == ("pods of other namespaces",)
