"""Models whose requests need pods of two roles: one role without the other is of no use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.planning_builders import node, variant

from controller.planning.checker import check
from controller.planning.inputs import Settings
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.plan import plan
from controller.planning.snapshot import RoleRatio, Snapshot, Variant

PREFILL_RATE, DECODE_RATE = 8.0, 2.0
"""Requests per second of one replica: for 16 of them, 2 replicas of prefill and 8 of decode are needed."""


def per_second(rate: float) -> Capacity:
    """Return the capacity of a replica."""
    return Capacity(requests_per_second=rate, source=CapacitySource.LEARNED)


def pair(name: str = "m", *, prefill: float = PREFILL_RATE, decode: float = DECODE_RATE) -> list[Variant]:
    """Return a variant of each role, without replicas."""
    return [
        variant(
            f"{name}-{role}",
            model_id=f"{name} ({role})",
            role=role,
            pair=name,
            capacity=per_second(rate),
            accelerators_per_replica=1,
            may_scale_to_zero=True,
            current_replicas=0,
        )
        for role, rate in (("prefill", prefill), ("decode", decode))
    ]


def steady(rate: float, model_id: str) -> ModelLoad:
    """Return a load of which nothing changes, in requests per second."""
    return ModelLoad(
        namespace="llm",
        model_id=model_id,
        requests_per_second=rate,
        upper_requests_per_second=rate,
        required_requests_per_second=rate,
        releasable_requests_per_second=rate,
    )


def replicas_of(
    accelerators: int, *variants: Variant, rate: float = 16.0, ratios: tuple[RoleRatio, ...] = ()
) -> dict[str, int]:
    """Return the planned replicas by variant, if each model has the same rate."""
    snapshot = Snapshot(
        nodes=(node("n1", accelerators),),
        variants=variants,
        loads=tuple(steady(rate, model_id) for model_id in sorted({item.model_id for item in variants})),
        ratios=ratios,
    )
    made = plan(snapshot, Settings())
    assert check(snapshot, made) == ()
    return {item.name: item.replicas for item in made.decisions}


ROOM = {
    "enough room": (10, {"m-prefill": 2, "m-decode": 8}),
    "half of the room": (5, {"m-prefill": 1, "m-decode": 4}),
    "room for one of each": (2, {"m-prefill": 1, "m-decode": 1}),
    "room for one role only": (1, {"m-prefill": 0, "m-decode": 0}),
    "no room": (0, {"m-prefill": 0, "m-decode": 0}),
}


@pytest.mark.parametrize(("accelerators", "want"), ROOM.values(), ids=ROOM)
def test_both_roles_serve_the_same_share(accelerators: int, want: dict[str, int]) -> None:
    """The role of which a replica serves more is not filled first."""
    assert replicas_of(accelerators, *pair()) == want


def test_a_model_without_a_pair_is_not_affected() -> None:
    """Each of two models of one priority is short, and the other has its own share."""
    alone = variant("alone", model_id="alone", capacity=per_second(4.0), accelerators_per_replica=1)
    planned = replicas_of(9, *pair(), alone)

    assert sum(planned.values()) == 9
    assert abs(planned["m-prefill"] * PREFILL_RATE - planned["m-decode"] * DECODE_RATE) <= PREFILL_RATE


RATIOS = {
    "at least one for four": ((0.25, None), {"m-prefill": 2, "m-decode": 8}),
    "at least one for two": ((0.5, None), {"m-prefill": 4, "m-decode": 8}),
    "at most one for sixteen": ((0.01, 1 / 16), {"m-prefill": 2, "m-decode": 32}),
}


@pytest.mark.parametrize(("bounds", "want"), RATIOS.values(), ids=RATIOS)
def test_a_stated_ratio_of_replicas_is_kept(bounds: tuple[float, float | None], want: dict[str, int]) -> None:
    """The role of which there are too few for it gets more replicas."""
    ratio = RoleRatio(namespace="llm", pair="m", least=bounds[0], most=bounds[1])

    assert replicas_of(64, *pair(), ratios=(ratio,)) == want


SHORT_RATIOS = {
    "more prefill where only decode is needed": ((1.0, None), 4),
    "no more than half as many": ((0.01, 0.5), 3),
    "exactly a quarter": ((0.25, 0.25), 5),
}


@pytest.mark.parametrize(("bounds", "accelerators"), SHORT_RATIOS.values(), ids=SHORT_RATIOS)
def test_under_shortage_a_ratio_takes_no_room_from_requests(
    bounds: tuple[float, float], accelerators: int
) -> None:
    """Requests are served first, and the ratio is kept as far as there is room left."""
    ratio = RoleRatio(namespace="llm", pair="m", least=bounds[0], most=bounds[1])

    def served(planned: dict[str, int]) -> float:
        return min(planned["m-prefill"] * PREFILL_RATE, planned["m-decode"] * DECODE_RATE)

    planned, without = (replicas_of(accelerators, *pair(), ratios=ratios) for ratios in ((ratio,), ()))
    assert served(planned) >= served(without)


def test_the_maximum_of_one_role_limits_the_other() -> None:
    """What decode pods cannot answer needs no prompts, and another model uses the room."""
    prefill, decode = pair()
    other = variant("other", model_id="other", capacity=per_second(1.0), accelerators_per_replica=1)
    planned = replicas_of(12, prefill, replace(decode, max_replicas=4), other)

    assert planned["m-prefill"] == 1
    assert sum(planned.values()) == 12


@given(
    st.integers(0, 24),
    st.floats(0.5, 10.0),
    st.floats(0.5, 10.0),
    st.floats(1.0, 60.0),
)
@settings(max_examples=often(15), deadline=None)
def test_no_other_split_of_the_accelerators_serves_more(
    accelerators: int, prefill: float, decode: float, rate: float
) -> None:
    """But for a sixteenth of the requests, and what a replica of the other role serves more than it needs."""
    planned = replicas_of(accelerators, *pair(prefill=prefill, decode=decode), rate=rate)

    def served(first: int, second: int) -> float:
        return min(rate, first * prefill, second * decode)

    best = max(served(first, accelerators - first) for first in range(accelerators + 1))
    assert served(planned["m-prefill"], planned["m-decode"]) >= best - rate / 16 - 1e-3
