"""Complete messages of decisions, for each cause that can limit a variant."""

from __future__ import annotations

import pytest
from support.explain_builders import (
    LIMITED,
    NOBODY_KNOWS,
    SURGE,
    Case,
    asked,
    check,
    decide,
    growing,
    llama,
    nodes_of,
    small,
)
from support.planning_builders import load, node, variant

from controller.planning.decision import BoundBy, Reason
from controller.planning.inputs import Settings
from controller.planning.load import CapacitySource, Signal
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot

CHAT = small("chat", "n2", "n2", "n2", size=2, priority=1, model_id="chat")

CASES: dict[str, Case] = {
    "demand increases": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1")],
        SURGE,
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "a backlog is expected": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1")],
        (growing(34, 41, backlog_requests=119.6),),
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 120 will wait by then, 85 % of 3 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "inside the dead band": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1")],
        (asked(24),),
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "llama-70b stays at 2 replicas: 24 requests/s, 75 % of 2 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "demand decreases": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1")],
        (asked(9),),
        (1, 1, Reason.SCALE_DOWN, BoundBy.DEMAND),
        "llama-70b goes from 2 to 1 replica: 9 requests/s, 56 % of 1 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "a higher priority holds the accelerators": (
        [*nodes_of(8, 8), node("n2", 8)],
        [llama("n0", "n1"), CHAT],
        (growing(34, 41), asked(30, model_id="chat")),
        (2, 3, Reason.SHORTAGE, BoundBy.PRIORITY),
        "llama-70b needs 3 replicas for 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 2, and 5.3 % of the present load is not covered: no H100 node has 8 free, "
        "16 are held by its own replicas "
        "and 6 are held by priority 1 chat; +1 free 8-accelerator H100 node would help",
    ),
    "enough in total, but on no node": (
        nodes_of(8, 8, 2, 2, 2, 2),
        [llama("n0", "n1")],
        (asked(41),),
        (2, 3, Reason.SHORTAGE, BoundBy.NODE_SIZE),
        "llama-70b needs 3 replicas for 41 requests/s, "
        "85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 2, and 21.5 % of the present load is not covered: no H100 node has 8 free, "
        "8 are spread over 6 nodes, 16 are held by its own replicas "
        "and 24 are held by other workloads; +1 free 8-accelerator H100 node would help",
    ),
    "too few in total": (
        nodes_of(8, 8, 1),
        [llama("n0", "n1")],
        (asked(41),),
        (2, 3, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b needs 3 replicas for 41 requests/s, "
        "85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 2, and 21.5 % of the present load is not covered: no H100 node has 8 free, "
        "16 are held by its own replicas "
        "and 7 are held by other workloads; +1 free 8-accelerator H100 node would help",
    ),
    "no node is large enough": (
        [node("n0", 4)],
        [llama(None)],
        NOBODY_KNOWS,
        (1, 1, Reason.SHORTAGE, BoundBy.NODE_SIZE),
        "llama-70b stays at 1 replica: llama must keep one replica; "
        "no H100 node has 8 in all, the largest has 4",
    ),
    "no node of the type": (
        [node("n0", 8, accelerator="A100")],
        [llama()],
        NOBODY_KNOWS,
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; no node has H100",
    ),
    "no eligible node": (
        nodes_of(8),
        [llama(node_selector=frozenset({("pool", "x")}))],
        NOBODY_KNOWS,
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; "
        "no H100 node meets its node selector and tolerations",
    ),
    "all nodes cordoned": (
        [node("n0", 8, schedulable=False)],
        [llama()],
        NOBODY_KNOWS,
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; no H100 node is schedulable",
    ),
    "its own maxReplicas": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1", max_replicas=2)],
        SURGE,
        (2, 2, Reason.SHORTAGE, BoundBy.MAX_REPLICAS),
        "llama-70b stays at 2 replicas: llama lacks 33.3 % of the 48.2 requests/s of capacity that it needs, "
        "and 5.3 % of the present load is not covered; "
        "maxReplicas is 2; maxReplicas of llama-70b raised to 3 would help",
    ),
    "its autoscaler is disabled, which counts as a maximum of 0": (
        nodes_of(8, 8, 8),
        [llama(max_replicas=0)],
        SURGE,
        (0, 0, Reason.SHORTAGE, BoundBy.MAX_REPLICAS),
        "llama-70b stays at 0 replicas: llama must keep one replica; its autoscaler starts none; "
        "an enabled autoscaler of llama-70b would help",
    ),
    "only the margin is missing": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1", max_replicas=2)],
        (growing(31, 41),),
        (2, 2, Reason.SHORTAGE, BoundBy.MAX_REPLICAS),
        "llama-70b stays at 2 replicas: llama lacks 33.3 % of the 48.2 requests/s of capacity that it needs, "
        "while the present load is covered; maxReplicas is 2; "
        "maxReplicas of llama-70b raised to 3 would help",
    ),
    "nothing is required beyond the present load: its share is stated once": (
        nodes_of(8),
        [llama("n0")],
        (asked(32, required_requests_per_second=32.0),),
        (1, 2, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b needs 2 replicas for 32 requests/s, "
        "99 % of 2 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 1: no H100 node has 8 free, 8 are held by its own replicas; "
        "+1 free 8-accelerator H100 node would help",
    ),
    "its own minReplicas": (
        nodes_of(8, 8),
        [llama("n0", "n1", min_replicas=2)],
        (asked(0.1),),
        (2, 2, Reason.STEADY, BoundBy.MIN_REPLICAS),
        "llama-70b stays at 2 replicas: minReplicas is 2, 0.1 requests/s, 0 % of 2 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "minReplicas without room": (
        nodes_of(8),
        [llama(min_replicas=2)],
        NOBODY_KNOWS,
        (1, 2, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b goes from 0 to 1 replica: minReplicas is 2; no H100 node has 8 free, "
        "8 are held by its own replicas",
    ),
    "one replica is kept": (
        nodes_of(8, 8),
        [llama("n0", "n1")],
        (asked(0),),
        (1, 1, Reason.SCALE_DOWN, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 2 to 1 replica: one replica keeps llama warm, no requests come",
    ),
    "another namespace holds the accelerators": (
        nodes_of(1),
        [small("a", "n0", namespace="team-b", priority=1), small("b", model_id="b")],
        (asked(10, namespace="team-b"),),
        (0, 1, Reason.SHORTAGE, BoundBy.PRIORITY),
        "b stays at 0 replicas: b must keep one replica; no H100 is free, "
        "1 is held by priority 1 team-b/a and 7 are held by other workloads",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_message_explains_the_decision(case: Case) -> None:
    """Each case checks its last variant, or llama-70b if chat is the last one."""
    check(case, "llama-70b" if CHAT in case[1] else "")


def test_the_message_names_a_substitute() -> None:
    """Demand is met, but not by the variant that would be used on unlimited nodes."""
    nodes = [node("n0", 8, used=7), node("n1", 8, accelerator="L40S")]
    h100 = small("h100", "n0", cost="10")
    l40s = small("l40s", cost="12", accelerator="L40S")

    decisions = decide(nodes, h100, l40s, loads=(asked(15),))

    assert decisions["h100"].message == (
        "h100 needs 2 replicas for 15 requests/s, 59 % of 2 x 12.8; one serves 12.8; granted 1, "
        "l40s instead: no H100 is free, 1 is held by its own replicas and 7 are held by other workloads"
    )
    assert decisions["l40s"].message == (
        "l40s goes from 0 to 1 replica: 15 requests/s, 59 % of 1 x 12.8 + 1 x 12.8 h100; one serves 12.8"
    )


def test_the_message_names_a_substitute_while_replicas_of_the_cheaper_variant_leave() -> None:
    """The cheaper one has room on another node, but starts no replica before the leaving one has left."""
    variants = (
        variant("cheap", "n0", size=4, serves=1000),
        variant("dear", size=1, cost="30", serves=1000, accelerator="L40S"),
        variant("first", size=8, serves=1000, model_id="first", priority=1),
    )
    nodes = (node("n0", 8), node("n1", 4), node("n2", 1, accelerator="L40S"))
    loads = (load(500), load(500, "first"))
    made = plan(Snapshot(nodes=nodes, variants=variants, loads=loads), Settings())
    cheap, dear, _ = made.decisions

    assert (cheap.replicas, dear.replicas) == (0, 1)
    assert cheap.message.endswith(
        "granted 0, dear instead: none is started while others of its own leave their nodes"
    )


def test_a_decision_also_has_the_numbers_of_its_message_as_fields() -> None:
    """They include the shortfall, and the load and capacity of the model."""
    decision = decide(nodes_of(8, 8), llama("n0", "n1"), loads=SURGE)["llama-70b"]

    assert decision.load == SURGE[0]
    assert decision.required_requests_per_second == 48.235295
    assert decision.capacity == LIMITED
    assert (decision.signal, decision.capacity_source) == (Signal.FRESH, CapacitySource.LEARNED)
    assert decision.unmet_per_mille == 333


def test_holders_in_other_namespaces_are_given_by_priority_if_names_are_hidden() -> None:
    """Readers of one namespace must not learn names in another; names in their own are shown."""
    others = [small(name, "n0", namespace="team-b", priority=1, model_id=name) for name in ("x", "y")]
    own = small("c", "n0", priority=1, model_id="c")
    snapshot = Snapshot(
        nodes=tuple(nodes_of(3)),
        variants=(*others, own, small("b", model_id="b")),
        loads=(
            *(asked(10, namespace="team-b", model_id=name) for name in ("x", "y")),
            asked(10, model_id="c"),
        ),
    )

    made = plan(snapshot, Settings(names_all=False))

    (message,) = [item.message for item in made.decisions if item.name == "b"]
    assert "2 are held by workloads of priority 1 in other namespaces" in message
    assert "1 is held by priority 1 c" in message
    assert "team-b" not in message
