"""What a decision says: the whole sentence, with its numbers, for each thing that can bind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from planning_builders import capacity, load, node, variant

from controller.planning.decision import BoundBy, Decision, Reason
from controller.planning.load import CapacitySource, RateLimit, Signal, Target
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState

if TYPE_CHECKING:
    from controller.planning.cluster import Node
    from controller.planning.load import ModelLoad
    from controller.planning.snapshot import Variant

PER_SECOND = 10**6
"""Millionths."""

LIMITED = replace(
    capacity(16.1 * PER_SECOND),
    limits=(
        RateLimit(target=Target.TTFT, text="TTFT 2 s", requests_per_second=16.1),
        RateLimit(target=Target.ITL, text="ITL 80 ms", requests_per_second=19.2),
        RateLimit(target=Target.BATCH, text="a batch of 256", requests_per_second=30.0),
    ),
)


def _decide(nodes: list[Node], *variants: Variant, loads: tuple[ModelLoad, ...] = ()) -> dict[str, Decision]:
    snapshot = Snapshot(nodes=tuple(nodes), variants=variants, loads=loads)
    made, _ = plan(snapshot, PlanningState(), Settings())
    return {decision.name: decision for decision in made.decisions}


def _asked(rate: float, **changes: object) -> ModelLoad:
    """Return a load of so many requests per second with a dead band around it."""
    return load(rate * PER_SECOND, **changes)


def _growing(now: float, upper: float, **changes: object) -> ModelLoad:
    """Return a load that is forecast for the 140 s of a start."""
    return _asked(upper, requests_per_second=now, start_seconds=140.0, **changes)


def _llama(*hosts: str | None, **changes: object) -> Variant:
    return variant("llama-70b", *hosts, **{"size": 8, "capacity": LIMITED} | changes)


def _small(name: str, *hosts: str | None, **changes: object) -> Variant:
    return variant(name, *hosts, **{"serves": 12.8 * PER_SECOND} | changes)


def _nodes(*free: int) -> list[Node]:
    return [node(f"n{i}", 8, used=8 - room) for i, room in enumerate(free)]


CHAT = _small("chat", "n2", "n2", "n2", size=2, priority=1, model_id="chat")
NOBODY_KNOWS: tuple[ModelLoad, ...] = ()
SURGE = (_growing(34, 41),)
TOO_SLOW = replace(
    capacity(12.8 * PER_SECOND),
    is_usable=False,
    unreachable=("ITL 80 ms cannot be met: the best that an idle replica reaches is 125 ms",),
)
ESTIMATED = replace(capacity(12.8 * PER_SECOND, source=CapacitySource.ESTIMATED), is_usable=False)

CASES = {
    "demand decides": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1")],
        SURGE,
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "a quorum decides": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1")],
        (_growing(34, 41, signal=Signal.QUORUM, silent_replicas=1),),
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "some will wait": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1")],
        (_growing(34, 41, backlog_requests=119.6),),
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 120 will wait by then, 85 % of 3 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "inside the dead band": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1")],
        (_asked(24),),
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "llama-70b stays at 2 replicas: 24 requests/s, 75 % of 2 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "less demand": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1")],
        (_asked(9),),
        (1, 1, Reason.SCALE_DOWN, BoundBy.DEMAND),
        "llama-70b goes from 2 to 1 replica: 9 requests/s, 56 % of 1 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "a higher priority holds what is missing": (
        [*_nodes(8, 8), node("n2", 8)],
        [_llama("n0", "n1"), CHAT],
        (_growing(34, 41), _asked(30, model_id="chat")),
        (2, 3, Reason.SHORTAGE, BoundBy.PRIORITY),
        "llama-70b needs 3 replicas for 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 2: no H100 node has 8 free, 6 are held by priority 1 chat "
        "and 16 are held by its own replicas; +1 free 8-accelerator H100 node would help",
    ),
    "enough in sum, but on no node": (
        _nodes(8, 8, 2, 2, 2, 2),
        [_llama("n0", "n1")],
        (_asked(41),),
        (2, 3, Reason.SHORTAGE, BoundBy.NODE_SIZE),
        "llama-70b needs 3 replicas for 41 requests/s, "
        "85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 2: no H100 node has 8 free, 8 are spread over 6 nodes, 16 are held by its own replicas "
        "and 24 are held by other workloads; +1 free 8-accelerator H100 node would help",
    ),
    "too few in sum": (
        _nodes(8, 8, 1),
        [_llama("n0", "n1")],
        (_asked(41),),
        (2, 3, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b needs 3 replicas for 41 requests/s, "
        "85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2); "
        "granted 2: no H100 node has 8 free, 16 are held by its own replicas "
        "and 7 are held by other workloads; +1 free 8-accelerator H100 node would help",
    ),
    "no node is large enough": (
        [node("n0", 4)],
        [_llama(None)],
        NOBODY_KNOWS,
        (1, 1, Reason.SHORTAGE, BoundBy.NODE_SIZE),
        "llama-70b stays at 1 replica: llama must keep one replica; "
        "no H100 node has 8 in all, the largest has 4",
    ),
    "no node of the type": (
        [node("n0", 8, accelerator="A100")],
        [_llama()],
        NOBODY_KNOWS,
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; no node has H100",
    ),
    "no node that it may use": (
        _nodes(8),
        [_llama(node_selector=frozenset({("pool", "x")}))],
        NOBODY_KNOWS,
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; "
        "no H100 node meets its node selector and tolerations",
    ),
    "all nodes cordoned": (
        [node("n0", 8, schedulable=False)],
        [_llama()],
        NOBODY_KNOWS,
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b stays at 0 replicas: llama must keep one replica; no H100 node is schedulable",
    ),
    "its own maximum": (
        _nodes(8, 8, 8),
        [_llama("n0", "n1", max_replicas=2)],
        SURGE,
        (2, 2, Reason.SHORTAGE, BoundBy.MAX_REPLICAS),
        "llama-70b stays at 2 replicas: llama lacks 33.3 % of the 48.2 requests/s of capacity that it needs; "
        "maxReplicas is 2; maxReplicas of llama-70b above 2 would help",
    ),
    "nobody knows what one serves": (
        _nodes(8, 8),
        [_llama("n0", capacity=None)],
        (_asked(15),),
        (1, 1, Reason.SHORTAGE, BoundBy.CAPACITY_UNKNOWN),
        "llama-70b stays at 1 replica: llama lacks 100 % of the 17.6 requests/s of capacity that it needs; "
        "what one replica serves is not known yet",
    ),
    "its own minimum": (
        _nodes(8, 8),
        [_llama("n0", "n1", min_replicas=2)],
        (_asked(0.1),),
        (2, 2, Reason.STEADY, BoundBy.MIN_REPLICAS),
        "llama-70b stays at 2 replicas: minReplicas is 2, 0.1 requests/s, 0 % of 2 x 16.1; "
        "one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "a minimum without room": (
        _nodes(8),
        [_llama(min_replicas=2)],
        NOBODY_KNOWS,
        (1, 2, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b goes from 0 to 1 replica: minReplicas is 2; no H100 node has 8 free, "
        "8 are held by its own replicas",
    ),
    "kept warm": (
        _nodes(8, 8),
        [_llama("n0", "n1")],
        (_asked(0),),
        (1, 1, Reason.SCALE_DOWN, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 2 to 1 replica: one replica keeps llama warm, no requests come",
    ),
    "warmed up": (
        _nodes(8),
        [_llama()],
        NOBODY_KNOWS,
        (1, 1, Reason.SCALE_UP, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 0 to 1 replica: one replica keeps llama warm, "
        "demand is unknown while nothing is ready",
    ),
    "asleep": (
        _nodes(8),
        [_llama(may_scale_to_zero=True)],
        NOBODY_KNOWS,
        (0, 0, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 0 replicas: nothing runs, demand is unknown",
    ),
    "starting": (
        _nodes(8, 8),
        [_llama(None, None)],
        NOBODY_KNOWS,
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: no replica of llama is ready yet",
    ),
    "starting, without room for all": (
        _nodes(8),
        [_llama(None, None)],
        NOBODY_KNOWS,
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: no replica of llama is ready yet; 1 without a place: "
        "no H100 node has 8 free, 8 are held by its own replicas",
    ),
    "its engines have answered once": (
        _nodes(8, 8),
        [_llama("n0", "n1")],
        (load(None, ready_replicas=2),),
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: "
        "the load of llama is not known before its engines have answered twice",
    ),
    "one engine is silent": (
        _nodes(8, 8),
        [_small("a", "n0", "n1")],
        (_asked(1, signal=Signal.HELD, silent_replicas=1),),
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "a stays at 2 replicas: 1 of 2 ready replicas of llama does not report, so nothing is scaled down",
    ),
    "two engines are silent": (
        _nodes(8, 8),
        [_small("a", "n0", "n1")],
        (load(None, silent_replicas=2),),
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "a stays at 2 replicas: 2 of 2 ready replicas of llama do not report, so nothing is scaled down",
    ),
    "the report is old": (
        _nodes(8, 8),
        [_small("a", "n0", "n1")],
        (_asked(1, signal=Signal.HELD, signal_age_seconds=130.0),),
        (2, 2, Reason.HOLDING, BoundBy.STALE_METRICS),
        "a stays at 2 replicas: the oldest report is 130 s old, so nothing is scaled down",
    ),
    "an old report of an overload still scales up": (
        _nodes(8, 8, 8),
        [_small("a", "n0")],
        (_asked(15, signal=Signal.HELD, signal_age_seconds=130.0),),
        (2, 2, Reason.SCALE_UP, BoundBy.DEMAND),
        "a goes from 1 to 2 replicas: 15 requests/s, 59 % of 2 x 12.8; one serves 12.8",
    ),
    "pinned while its engines have answered once": (
        _nodes(8, 8),
        [_small("a", "n0", "n1", pinned_replicas=3)],
        (load(None, ready_replicas=2),),
        (3, 3, Reason.SCALE_UP, BoundBy.ORDERED),
        "a goes from 2 to 3 replicas: pinned to 3 replicas, "
        "the load of llama is not known before its engines have answered twice",
    ),
    "paused while an engine is silent": (
        _nodes(8, 8),
        [_small("a", "n0", "n1", is_paused=True)],
        (load(None, silent_replicas=1),),
        (2, 2, Reason.STEADY, BoundBy.ORDERED),
        "a stays at 2 replicas: scaling is paused, 1 of 2 ready replicas of llama does not report",
    ),
    "pinned while nothing is ready": (
        _nodes(8, 8),
        [_small("a", None, pinned_replicas=1)],
        NOBODY_KNOWS,
        (1, 1, Reason.STEADY, BoundBy.ORDERED),
        "a stays at 1 replica: pinned to 1 replica, demand is unknown while nothing is ready",
    ),
    "spare replicas while the trend is young": (
        _nodes(8, 8),
        [_small("a", "n0", "n1")],
        (_asked(1, releasable_requests_per_second=None),),
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "a stays at 2 replicas: 1 requests/s, 4 % of 2 x 12.8; one serves 12.8; "
        "spare replicas stay until there are enough rates for a trend",
    ),
    "no spare replica while the trend is young": (
        _nodes(8, 8),
        [_small("a", "n0", "n1")],
        (_asked(15, releasable_requests_per_second=None),),
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "a stays at 2 replicas: 15 requests/s, 59 % of 2 x 12.8; one serves 12.8",
    ),
    "another one that cannot meet the targets": (
        _nodes(8),
        [_small("a", "n0", max_replicas=1), _small("slow", capacity=TOO_SLOW)],
        (_asked(15),),
        (0, 0, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "slow stays at 0 replicas: llama lacks 27.5 % of the 17.6 requests/s of capacity that it needs; "
        "ITL 80 ms cannot be met: the best that an idle replica reaches is 125 ms; "
        "maxReplicas of a above 1 would help",
    ),
    "another one that never ran": (
        _nodes(8),
        [_small("a", "n0", max_replicas=1), _small("new", capacity=ESTIMATED)],
        (_asked(15),),
        (0, 0, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "new stays at 0 replicas: llama lacks 27.5 % of the 17.6 requests/s of capacity that it needs; "
        "it never ran, and nothing is started on an estimate alone; "
        "maxReplicas of a above 1 would help",
    ),
    "another namespace holds it": (
        _nodes(1),
        [_small("a", "n0", namespace="team-b", priority=1), _small("b", model_id="b")],
        (_asked(10, namespace="team-b"),),
        (0, 1, Reason.SHORTAGE, BoundBy.PRIORITY),
        "b stays at 0 replicas: b must keep one replica; no H100 is free, "
        "1 is held by priority 1 team-b/a and 7 are held by other workloads",
    ),
}


@pytest.mark.parametrize(("nodes", "variants", "loads", "want", "message"), CASES.values(), ids=CASES.keys())
def test_the_last_variant_says_why(
    nodes: list[Node],
    variants: list[Variant],
    loads: tuple[ModelLoad, ...],
    want: tuple[int, int, Reason, BoundBy],
    message: str,
) -> None:
    """Granted and unconstrained replicas, reason, bound, and the sentence."""
    name = variants[-1].name if variants[-1].name != "chat" else "llama-70b"

    decision = _decide(nodes, *variants, loads=loads)[name]

    assert decision.message == message
    assert (decision.replicas, decision.unconstrained_replicas, decision.reason, decision.bound_by) == want


SOURCES = {
    CapacitySource.STATED: "a stays at 1 replica: 8 requests/s, 83 % of 1 x 9.6; one serves 9.6",
    CapacitySource.LEARNED: "a stays at 1 replica: 8 requests/s, 83 % of 1 x 9.6; one serves 9.6",
    CapacitySource.PROFILE: (
        "a stays at 1 replica: 8 requests/s, 83 % of 1 x 9.6; one serves 9.6, by its profile"
    ),
    CapacitySource.ESTIMATED: (
        "a stays at 1 replica: 8 requests/s, 83 % of 1 x 9.6; one serves 9.6, by an estimate"
    ),
    CapacitySource.LAST_KNOWN: (
        "a stays at 1 replica: 8 requests/s, 83 % of 1 x 9.6; one serves 9.6, by what it showed before"
    ),
}


@pytest.mark.parametrize(("source", "message"), SOURCES.items(), ids=SOURCES.keys())
def test_where_the_capacity_comes_from_is_said(source: CapacitySource, message: str) -> None:
    """Except where its engines show it now, or a person said so."""
    running = variant("a", "n0", capacity=capacity(9.6 * PER_SECOND, source=source))

    assert _decide(_nodes(8), running, loads=(_asked(8),))["a"].message == message


def test_a_substitute_is_named() -> None:
    """Demand is met, but not by the variant that unlimited nodes would use."""
    nodes = [node("n0", 8, used=7), node("n1", 8, accelerator="L40S")]
    h100 = _small("h100", "n0", cost="10")
    l40s = _small("l40s", cost="12", accelerator="L40S")

    decisions = _decide(nodes, h100, l40s, loads=(_asked(15),))

    assert decisions["h100"].message == (
        "h100 needs 2 replicas for 15 requests/s, 59 % of 2 x 12.8; one serves 12.8; granted 1, "
        "l40s instead: no H100 is free, 1 is held by its own replicas and 7 are held by other workloads"
    )
    assert decisions["l40s"].message == (
        "l40s goes from 0 to 1 replica: 15 requests/s, 59 % of 1 x 12.8 + 1 x 12.8 h100; one serves 12.8"
    )


def test_the_numbers_behind_the_sentence() -> None:
    """A shortage carries its size, and the model's load and capacity as machine data."""
    decision = _decide(_nodes(8, 8), _llama("n0", "n1"), loads=SURGE)["llama-70b"]

    assert decision.load == SURGE[0]
    assert decision.required_requests_per_second == 48.235295
    assert decision.capacity == LIMITED
    assert (decision.signal, decision.capacity_source) == (Signal.FRESH, CapacitySource.LEARNED)
    assert decision.unmet_per_mille == 333


def test_without_a_capacity_its_source_is_unknown() -> None:
    """There is nothing in its place."""
    decision = _decide(_nodes(8), _llama("n0", capacity=None))["llama-70b"]

    assert (decision.capacity, decision.capacity_source) == (None, CapacitySource.UNKNOWN)
