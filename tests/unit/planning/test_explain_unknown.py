"""Messages of decisions about unknown facts: loads, silent engines, and capacities of replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.explain_builders import (
    NOBODY_KNOWS,
    PER_SECOND,
    Case,
    asked,
    check,
    decide,
    growing,
    llama,
    nodes_of,
    small,
)
from support.planning_builders import capacity, load, variant

from controller.planning.decision import BoundBy, Reason
from controller.planning.load import CapacitySource, Signal

TOO_SLOW = replace(
    capacity(12.8 * PER_SECOND),
    is_usable=False,
    unreachable=("ITL 80 ms cannot be met: a step of an idle engine takes 125 ms",),
)
ESTIMATED = replace(capacity(12.8 * PER_SECOND, source=CapacitySource.ESTIMATED), is_usable=False)

CASES: dict[str, Case] = {
    "a quorum of engines reports": (
        nodes_of(8, 8, 8),
        [llama("n0", "n1")],
        (growing(34, 41, signal=Signal.QUORUM, silent_replicas=1),),
        (3, 3, Reason.SCALE_UP, BoundBy.DEMAND),
        "llama-70b goes from 2 to 3 replicas: 34 requests/s now, up to 41 in the 140 s that a replica needs "
        "to start, 85 % of 3 x 16.1; one serves 16.1 within TTFT 2 s (ITL 80 ms would allow 19.2)",
    ),
    "the capacity is unknown": (
        nodes_of(8, 8),
        [llama("n0", capacity=None)],
        (asked(15),),
        (1, 1, Reason.HOLDING, BoundBy.CAPACITY_UNKNOWN),
        "llama-70b stays at 1 replica: 15 requests/s; what one replica serves is not known yet",
    ),
    "the capacity is unknown, and no replica is on a node yet": (
        nodes_of(8, 8),
        [llama(None, None, capacity=None)],
        (asked(15),),
        (2, 2, Reason.HOLDING, BoundBy.CAPACITY_UNKNOWN),
        "llama-70b stays at 2 replicas: 15 requests/s; what one replica serves is not known yet",
    ),
    "the capacity is unknown, and one replica has no place": (
        nodes_of(8),
        [llama("n0", None, capacity=None)],
        (asked(15),),
        (1, 2, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "llama-70b goes from 2 to 1 replica: 15 requests/s; what one replica serves is not known yet; "
        "no H100 node has 8 free, 8 are held by its own replicas",
    ),
    "the capacity is unknown, and nothing runs": (
        nodes_of(8),
        [llama(capacity=None, may_scale_to_zero=True)],
        (asked(15),),
        (0, 0, Reason.SHORTAGE, BoundBy.CAPACITY_UNKNOWN),
        "llama-70b stays at 0 replicas: llama lacks 100 % of the 17.6 requests/s of capacity that it needs; "
        "what one replica serves is not known yet",
    ),
    "the capacity is unknown, and the minimum was raised": (
        nodes_of(8, 8),
        [llama("n0", capacity=None, min_replicas=2)],
        (asked(15),),
        (2, 2, Reason.SCALE_UP, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 1 to 2 replicas: minReplicas is 2, 15 requests/s",
    ),
    "the capacity is unknown, and fewer replicas are pinned": (
        nodes_of(8, 8),
        [llama("n0", "n1", capacity=None, pinned_replicas=1)],
        (asked(15),),
        (1, 1, Reason.SCALE_DOWN, BoundBy.ORDERED),
        "llama-70b goes from 2 to 1 replica: pinned to 1 replica, 15 requests/s",
    ),
    "one replica is kept without any data": (
        nodes_of(8),
        [llama()],
        NOBODY_KNOWS,
        (1, 1, Reason.SCALE_UP, BoundBy.MIN_REPLICAS),
        "llama-70b goes from 0 to 1 replica: one replica keeps llama warm, "
        "demand is unknown while nothing is ready",
    ),
    "asleep": (
        nodes_of(8),
        [llama(may_scale_to_zero=True)],
        NOBODY_KNOWS,
        (0, 0, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 0 replicas: nothing runs, demand is unknown",
    ),
    "starting": (
        nodes_of(8, 8),
        [llama(None, None)],
        NOBODY_KNOWS,
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: no replica of llama is ready yet",
    ),
    "starting, without room for all": (
        nodes_of(8),
        [llama(None, None)],
        NOBODY_KNOWS,
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: no replica of llama is ready yet; 1 without a place: "
        "no H100 node has 8 free, 8 are held by its own replicas",
    ),
    "the engines have answered once": (
        nodes_of(8, 8),
        [llama("n0", "n1")],
        (load(None, ready_replicas=2),),
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "llama-70b stays at 2 replicas: "
        "the load of llama is not known before its engines have answered twice",
    ),
    "one engine is silent": (
        nodes_of(8, 8),
        [small("a", "n0", "n1")],
        (asked(1, signal=Signal.HELD, silent_replicas=1),),
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "a stays at 2 replicas: 1 of 2 ready replicas of llama does not report, so nothing is scaled down",
    ),
    "two engines are silent": (
        nodes_of(8, 8),
        [small("a", "n0", "n1")],
        (load(None, silent_replicas=2),),
        (2, 2, Reason.HOLDING, BoundBy.MISSING_METRICS),
        "a stays at 2 replicas: 2 of 2 ready replicas of llama do not report, so nothing is scaled down",
    ),
    "the report is old": (
        nodes_of(8, 8),
        [small("a", "n0", "n1")],
        (asked(1, signal=Signal.HELD, signal_age_seconds=130.0),),
        (2, 2, Reason.HOLDING, BoundBy.STALE_METRICS),
        "a stays at 2 replicas: the oldest report is 130 s old, so nothing is scaled down",
    ),
    "an old report of an overload still scales up": (
        nodes_of(8, 8, 8),
        [small("a", "n0")],
        (asked(15, signal=Signal.HELD, signal_age_seconds=130.0),),
        (2, 2, Reason.SCALE_UP, BoundBy.DEMAND),
        "a goes from 1 to 2 replicas: 15 requests/s, 59 % of 2 x 12.8; one serves 12.8",
    ),
    "pinned while the engines have answered once": (
        nodes_of(8, 8),
        [small("a", "n0", "n1", pinned_replicas=3)],
        (load(None, ready_replicas=2),),
        (3, 3, Reason.SCALE_UP, BoundBy.ORDERED),
        "a goes from 2 to 3 replicas: pinned to 3 replicas, "
        "the load of llama is not known before its engines have answered twice",
    ),
    "paused while an engine is silent": (
        nodes_of(8, 8),
        [small("a", "n0", "n1", is_paused=True)],
        (load(None, silent_replicas=1),),
        (2, 2, Reason.STEADY, BoundBy.ORDERED),
        "a stays at 2 replicas: scaling is paused, 1 of 2 ready replicas of llama does not report",
    ),
    "pinned while nothing is ready": (
        nodes_of(8, 8),
        [small("a", None, pinned_replicas=1)],
        NOBODY_KNOWS,
        (1, 1, Reason.STEADY, BoundBy.ORDERED),
        "a stays at 1 replica: pinned to 1 replica, demand is unknown while nothing is ready",
    ),
    "spare replicas before there is a trend": (
        nodes_of(8, 8),
        [small("a", "n0", "n1")],
        (asked(1, releasable_requests_per_second=None),),
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "a stays at 2 replicas: 1 request/s, 4 % of 2 x 12.8; one serves 12.8; "
        "spare replicas stay until the load is known for some minutes",
    ),
    "no spare replica before there is a trend": (
        nodes_of(8, 8),
        [small("a", "n0", "n1")],
        (asked(15, releasable_requests_per_second=None),),
        (2, 2, Reason.STEADY, BoundBy.DEMAND),
        "a stays at 2 replicas: 15 requests/s, 59 % of 2 x 12.8; one serves 12.8",
    ),
    "a further variant that cannot meet the targets": (
        nodes_of(8),
        [small("a", "n0", max_replicas=1), small("slow", capacity=TOO_SLOW)],
        (asked(15),),
        (0, 0, Reason.SHORTAGE, BoundBy.TARGETS),
        "slow stays at 0 replicas: llama lacks 27.5 % of the 17.6 requests/s of capacity that it needs, "
        "and 14.7 % of the present load is not covered; "
        "ITL 80 ms cannot be met: a step of an idle engine takes 125 ms; "
        "maxReplicas of a raised to 2 would help",
    ),
    "unknown capacity, and no node of the type": (
        nodes_of(8),
        [variant("b", None, accelerator="B200")],
        (asked(15),),
        (0, 1, Reason.SHORTAGE, BoundBy.ACCELERATORS),
        "b goes from 1 to 0 replicas: llama must keep one replica; no node has B200; "
        "+1 free 1-accelerator B200 node would help",
    ),
    "a further variant that never ran": (
        nodes_of(8),
        [small("a", "n0", max_replicas=1), small("new", capacity=ESTIMATED)],
        (asked(15),),
        (0, 0, Reason.SHORTAGE, BoundBy.CAPACITY_UNKNOWN),
        "new stays at 0 replicas: llama lacks 27.5 % of the 17.6 requests/s of capacity that it needs, "
        "and 14.7 % of the present load is not covered; "
        "it never ran, and nothing is started on an estimate alone; "
        "maxReplicas of a raised to 2 would help",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_message_states_what_is_unknown(case: Case) -> None:
    """Missing data is not taken for zero; each case checks its last variant."""
    check(case)


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
        "a stays at 1 replica: 8 requests/s, 83 % of 1 x 9.6; one serves 9.6, "
        "from step times recorded earlier"
    ),
}


@pytest.mark.parametrize(("source", "message"), SOURCES.items(), ids=SOURCES.keys())
def test_the_message_states_the_source_of_the_capacity(source: CapacitySource, message: str) -> None:
    """The source is omitted if engines show the capacity now or a user stated it."""
    running = variant("a", "n0", capacity=capacity(9.6 * PER_SECOND, source=source))

    assert decide(nodes_of(8), running, loads=(asked(8),))["a"].message == message


def test_without_a_capacity_its_source_is_unknown() -> None:
    """The decision has no capacity either."""
    decision = decide(nodes_of(8), llama("n0", capacity=None))["llama-70b"]

    assert (decision.capacity, decision.capacity_source) == (None, CapacitySource.UNKNOWN)
