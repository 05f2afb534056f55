"""What a decision says: the whole sentence, with its numbers, for each thing that can bind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planning_builders import node, sample, variant

from controller.planning.decision import BoundBy, Decision, Reason
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot
from controller.planning.state import PlanningState

if TYPE_CHECKING:
    from controller.planning.cluster import Node
    from controller.planning.snapshot import ReplicaSample, Variant


def _decide(nodes: list[Node], *variants: Variant) -> dict[str, Decision]:
    snapshot = Snapshot(nodes=tuple(nodes), variants=variants)
    made, _ = plan(snapshot, PlanningState(), Settings())
    return {decision.name: decision for decision in made.decisions}


def _busy(tokens: float) -> ReplicaSample:
    """Return the report of an engine with 16.1k tokens of capacity that has this many in demand."""
    return sample(
        20_128, in_use=min(tokens, 20_000), waiting=max(0, int(tokens - 20_000)), avg_input_tokens=1.0
    )


def _llama(*hosts: str | None, tokens: float = 41_000, **changes: object) -> Variant:
    return variant("llama-70b", *hosts, size=8, report=_busy(tokens / max(1, len(hosts))), **changes)


def _nodes(*free: int) -> list[Node]:
    return [node(f"n{i}", 8, used=8 - room) for i, room in enumerate(free)]


CHAT = variant("chat", "n2", "n2", "n2", size=2, priority=1, model_id="chat", report=sample(in_use=10_000))

CASES = {
    "demand decides": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1")],
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 41.0k tokens in demand are 85 % of 3 x 16.1k",
    ),
    "inside the dead band": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1", tokens=24_000)],
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "llama-70b stays at 2 replicas: 24.0k tokens in demand are 75 % of 2 x 16.1k",
    ),
    "less demand": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1", tokens=9_000)],
        (1, 1, Reason.SCALE_DOWN, BoundBy.DEMAND),
        "llama-70b goes from 2 to 1 replica: 9.0k tokens in demand are 56 % of 1 x 16.1k",
    ),
    "a higher priority holds what is missing": (
        [*_nodes(8, 8), node("n2", 8)],
        [_llama("n0", "n1"), CHAT],
        (2, 3, Reason.SHORTAGE, BoundBy.PRIORITY),
        "llama-70b needs 3 replicas for 41.0k tokens (85 % of 3 x 16.1k); granted 2: "
        "no H100 node has 8 free, 6 are held by priority 1 chat and 16 are held by its own replicas"
        "; +1 free 8-accelerator H100 node would help",
    ),
    "enough in sum, but on no node": (
        _nodes(8, 8, 2, 2, 2, 2),
        [_llama("n0", "n1")],
        (2, 3, Reason.SHORTAGE, BoundBy.NODE_SIZE),
        "llama-70b needs 3 replicas for 41.0k tokens (85 % of 3 x 16.1k); granted 2: "
        "no H100 node has 8 free, 8 are spread over 6 nodes, 16 are held by its own replicas "
        "and 24 are held by other workloads; +1 free 8-accelerator H100 node would help",
    ),
    "too few in sum": (
        _nodes(8, 8, 1),
        [_llama("n0", "n1")],
        (2, 3, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b needs 3 replicas for 41.0k tokens (85 % of 3 x 16.1k); granted 2: "
        "no H100 node has 8 free, 16 are held by its own replicas and 7 are held by other workloads"
        "; +1 free 8-accelerator H100 node would help",
    ),
    "no node is large enough": (
        [node("n0", 4)],
        [_llama(None, tokens=0)],
        (1, 1, Reason.SHORTAGE, BoundBy.NODE_SIZE),
        "llama-70b stays at 1 replica: llama must keep one replica; "
        "no H100 node has 8 in all, the largest has 4",
    ),
    "no node of the type": (
        [node("n0", 8, accelerator="A100")],
        [_llama()],
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; no node has H100",
    ),
    "no node that it may use": (
        _nodes(8),
        [_llama(node_selector=frozenset({("pool", "x")}))],
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; "
        "no H100 node meets its node selector and tolerations",
    ),
    "all nodes cordoned": (
        [node("n0", 8, schedulable=False)],
        [_llama()],
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; no H100 node is schedulable",
    ),
    "its own maximum": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1", max_replicas=2)],
        (2, 2, Reason.SHORTAGE, BoundBy.MAX_REPLICAS),
        "llama-70b stays at 2 replicas: llama lacks 33.3 % of the 48.2k tokens of capacity that it needs; "
        "maxReplicas is 2; maxReplicas of llama-70b above 2 would help",
    ),
    "its own minimum": (
        _nodes(8, 8),
        [_llama("n0", "n1", tokens=100, min_replicas=2)],
        (2, 2, Reason.STEADY, BoundBy.MIN_REPLICAS),
        "llama-70b stays at 2 replicas: minReplicas is 2, 100 tokens in demand are 0 % of 2 x 16.1k",
    ),
    "a minimum without room": (
        _nodes(8),
        [_llama(min_replicas=2)],
        (1, 2, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b goes from 0 to 1 replica: minReplicas is 2; no H100 node has 8 free, "
        "8 are held by its own replicas",
    ),
    "kept warm": (
        _nodes(8, 8),
        [_llama("n0", "n1", tokens=0)],
        (1, 1, Reason.SCALE_DOWN, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 2 to 1 replica: one replica keeps llama warm, no request runs or waits",
    ),
    "warmed up": (
        _nodes(8),
        [_llama()],
        (1, 1, Reason.SCALE_UP, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 0 to 1 replica: one replica keeps llama warm, "
        "demand is unknown while nothing is ready",
    ),
    "asleep": (
        _nodes(8),
        [_llama(may_scale_to_zero=True)],
        (0, 0, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 0 replicas: nothing runs, demand is unknown",
    ),
    "starting": (
        _nodes(8, 8),
        [_llama(None, None)],
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: no replica of llama is ready yet",
    ),
    "starting, without room for all": (
        _nodes(8),
        [_llama(None, None)],
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: no replica of llama is ready yet; 1 without a place: "
        "no H100 node has 8 free, 8 are held by its own replicas",
    ),
    "one engine is silent": (
        _nodes(8, 8),
        [
            variant(
                "a",
                current_replicas=2,
                replicas=(
                    Replica(name="a-0", node="n0", ready=True),
                    Replica(name="a-1", node="n1", ready=True, sample=sample()),
                ),
            )
        ],
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "a stays at 2 replicas: 1 of 2 ready replicas of llama does not report, so nothing is scaled down",
    ),
    "the report is old": (
        _nodes(8, 8),
        [variant("a", "n0", "n1", report=sample(age_seconds=130))],
        (2, 2, Reason.HOLDING, BoundBy.STALE_METRICS),
        "a stays at 2 replicas: the oldest report is 130 s old, and nothing is scaled down on one over 60 s",
    ),
    "an old report of an overload still scales up": (
        _nodes(8, 8, 8),
        [variant("a", "n0", report=sample(in_use=15_000, age_seconds=130))],
        (2, 2, Reason.SCALE_UP, BoundBy.DEMAND),
        "a goes from 1 to 2 replicas: 15.0k tokens in demand are 59 % of 2 x 12.8k",
    ),
    "another namespace holds it": (
        _nodes(1),
        [
            variant("a", "n0", namespace="team-b", priority=1, report=sample(in_use=10_000)),
            variant("b", model_id="b"),
        ],
        (0, 1, Reason.SHORTAGE, BoundBy.PRIORITY),
        "b stays at 0 replicas: b must keep one replica; no H100 is free, "
        "1 is held by priority 1 team-b/a and 7 are held by other workloads",
    ),
}


@pytest.mark.parametrize(("nodes", "variants", "want", "message"), CASES.values(), ids=CASES.keys())
def test_the_last_variant_says_why(
    nodes: list[Node], variants: list[Variant], want: tuple[int, int, Reason, BoundBy], message: str
) -> None:
    """Granted and unconstrained replicas, reason, bound, and the sentence."""
    name = variants[-1].name if variants[-1].name != "chat" else "llama-70b"

    decision = _decide(nodes, *variants)[name]

    assert decision.message == message
    assert (decision.replicas, decision.unconstrained_replicas, decision.reason, decision.bound_by) == want


def test_a_substitute_is_named() -> None:
    """Demand is met, but not by the variant that unlimited nodes would use."""
    nodes = [node("n0", 8, used=7), node("n1", 8, accelerator="L40S")]
    h100 = variant("h100", "n0", report=sample(in_use=15_000), cost="10")
    l40s = variant("l40s", cost="12", accelerator="L40S")

    decisions = _decide(nodes, h100, l40s)

    assert decisions["h100"].message == (
        "h100 needs 2 replicas for 15.0k tokens (59 % of 2 x 12.8k); granted 1, l40s instead: "
        "no H100 is free, 1 is held by its own replicas and 7 are held by other workloads"
    )
    assert decisions["l40s"].message == (
        "l40s goes from 0 to 1 replica: 15.0k tokens in demand are 59 % of 1 x 12.8k + 1 x 12.8k h100"
    )


def test_the_numbers_behind_the_sentence() -> None:
    """A shortage carries its size, and the model's demand and capacity as machine data."""
    decision = _decide(_nodes(8, 8), _llama("n0", "n1"))["llama-70b"]

    assert decision.demand_tokens == 41_000
    assert decision.required_tokens == 48_236
    assert decision.capacity_per_replica_tokens == 16_102
    assert decision.unmet_per_mille == 333
