"""The two saturation rules of the reference autoscaler, compared with cases of its own tests."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from controller.simulation.profile import EngineProfile
from controller.simulation.run import play
from controller.simulation.scenario import VariantSetup
from hack.decisions.rows import rows
from hack.decisions.saturation import (
    RULES,
    CapacityHistory,
    ReplicaTokens,
    VariantSaturation,
    VariantTokens,
    derived_tokens,
    kept_alive,
    optimize,
    required_and_spare,
    spare_of,
    targets,
)


def variant(
    name: str, cost: float, *seen: tuple[float, int], current: int | None = None
) -> VariantSaturation:
    """Return a variant with as many replicas as desired."""
    replicas = len(seen) if current is None else current
    return VariantSaturation(name=name, cost=cost, replicas=replicas, desired=replicas, seen=list(seen))


@pytest.mark.parametrize(
    ("seen", "is_short", "may_lose_one"),
    [
        pytest.param([(0.75, 2), (0.76, 2)], True, False, id="caches nearly full"),
        pytest.param([(0.5, 3), (0.5, 3)], True, False, id="queues nearly full"),
        pytest.param(
            [(0.2, 1), (0.3, 1), (0.25, 1)],
            False,
            True,
            id="enough spare capacity if one of three is removed",
        ),
        pytest.param(
            [(0.7, 2), (0.75, 2)], True, False, id="not enough spare capacity if one of two is removed"
        ),
        pytest.param([(0.85, 2), (0.5, 6), (0.9, 7)], True, False, id="all are saturated"),
        pytest.param([(0.1, 0)], False, False, id="the last replica is kept"),
    ],
)
def test_v1_scales_up_or_down_depending_on_spare_capacity(
    seen: list[tuple[float, int]], is_short: bool, may_lose_one: bool
) -> None:
    """Averages are over the replicas that are not saturated."""
    spare = spare_of([variant("v", 10, *seen)])

    assert (spare.is_short, spare.may_lose_one) == (is_short, may_lose_one)


def test_v1_averages_leave_out_saturated_replicas() -> None:
    """One is saturated by its cache, one by its queue, and two are exactly at a threshold."""
    spare = spare_of([variant("v", 10, (0.85, 2), (0.5, 6), (0.8, 2), (0.5, 5), (0.6, 2))])

    assert (spare.replicas, spare.kv, spare.queue) == (1, pytest.approx(0.2), 3)


def test_v1_adds_to_the_cheapest_and_removes_from_the_most_expensive_variant() -> None:
    """Each of the three variants has two replicas."""
    full, idle = [(0.78, 4)] * 2, [(0.1, 0)] * 2

    assert targets([variant("a", 20, *full), variant("b", 5, *full), variant("c", 15, *full)]) == {
        "a": 2,
        "b": 3,
        "c": 2,
    }
    assert targets([variant("a", 20, *idle), variant("b", 5, *idle), variant("c", 15, *idle)]) == {
        "a": 1,
        "b": 2,
        "c": 2,
    }


def test_v1_changes_nothing_while_a_replica_does_not_report() -> None:
    """Two of three replicas of one variant report; nothing changes, although all are nearly full."""
    full = [(0.78, 4)] * 2

    assert targets([variant("a", 20, *full, current=3), variant("b", 5, *full)]) == {"a": 3, "b": 2}


SETUP = VariantSetup(
    name="v",
    profile=EngineProfile(
        model_id="m",
        alpha_ms=8,
        beta_ms=0.05,
        gamma_ms=0,
        delta_ms=0.03,
        num_gpu_blocks=1000,
        max_num_seqs=256,
        max_num_batched_tokens=200_000,
    ),
    accelerator="H100",
    price_per_hour=100,
)


def tokens(in_use: float, queue: int = 0, inputs: float = 0, outputs: float = 0) -> ReplicaTokens:
    """Return a replica with a cache of 16,000 tokens."""
    return ReplicaTokens(
        kv_tokens=16_000, in_use=in_use, queue=queue, input_tokens=inputs, output_tokens=outputs
    )


def test_v2_capacity_is_that_of_memory_until_a_lower_one_is_observed_and_stored() -> None:
    """It is observed while a queue exists, and stored per class of output length."""
    history = CapacityHistory()

    assert history.capacity(tokens(5000), SETUP) == 12_800
    assert history.capacity(tokens(8000, queue=6, outputs=200), SETUP) == 8000
    assert history.capacity(tokens(6000, queue=2, outputs=200), SETUP) == 8000
    assert history.capacity(tokens(6000, queue=2, outputs=600), SETUP) == 12_800


def test_v2_batch_limits_bound_the_tokens_of_a_replica() -> None:
    """The limits are tokens per step and sequences; the requests have constant input and output lengths."""
    assert derived_tokens(batched_tokens=2048, sequences=256, inputs=500, outputs=100) == 140_800
    assert derived_tokens(batched_tokens=8192, sequences=64, inputs=100, outputs=200) == 64 * 200


@pytest.mark.parametrize(
    ("demand", "current", "pending", "required", "spare"),
    [
        pytest.param(11_300, 1, 0, 494.12, 0, id="above 85 percent"),
        pytest.param(10_000, 1, 0, 0, 0, id="between the thresholds"),
        pytest.param(1000, 3, 1, 0, 24_171.43, id="a starting replica is no supply yet"),
    ],
)
def test_v2_computes_required_and_spare_capacity(
    demand: float, current: int, pending: int, required: float, spare: float
) -> None:
    """The variant has 12,800 tokens per replica."""
    state = VariantTokens(name="v", cost=10, capacity=12_800, current=current, pending=pending)

    assert required_and_spare(demand, [state]) == (pytest.approx(required, abs=0.01), pytest.approx(spare))


@pytest.mark.parametrize(
    ("required", "spare", "variants", "expected"),
    [
        pytest.param(5000, 0, [("cheap", 5, 10_000, 2), ("dear", 15, 20_000, 1)], {"cheap": 3, "dear": 1}),
        pytest.param(25_000, 0, [("cheap", 5, 10_000, 1)], {"cheap": 4}),
        pytest.param(0, 30_000, [("dear", 15, 20_000, 1), ("cheap", 5, 10_000, 1)], {"dear": 0, "cheap": 1}),
        pytest.param(0, 15_000, [("dear", 15, 20_000, 1), ("cheap", 5, 10_000, 1)], {"dear": 1, "cheap": 0}),
    ],
)
def test_v2_optimizer_adds_and_removes_whole_replicas(
    required: float,
    spare: float,
    variants: list[tuple[str, float, float, int]],
    expected: dict[str, int],
) -> None:
    """Added are those with the best cost per token, removed the most expensive; one replica remains."""
    states = [
        VariantTokens(name=name, cost=cost, capacity=capacity, current=current)
        for name, cost, capacity, current in variants
    ]

    assert optimize(required, spare, states) == expected


def test_v2_keeps_a_replica_of_the_cheapest_variant() -> None:
    """The optimizer removes the last replica of an idle model if it is not of the cheapest variant."""
    states = [
        VariantTokens(name="dear", cost=15, capacity=20_000, current=1),
        VariantTokens(name="cheap", cost=5, capacity=10_000, current=0),
    ]

    replicas = optimize(0, 30_000, states)

    assert replicas == {"dear": 0, "cheap": 0}
    assert kept_alive(replicas, states) == {"dear": 0, "cheap": 1}
    assert kept_alive({"dear": 1, "cheap": 0}, states) == {"dear": 1, "cheap": 0}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_serves_a_constant_load_and_is_reproducible(rule: str) -> None:
    """The simulation lasts five minutes; a second one has an equal outcome."""
    scenario = replace(rows()["constant-28"].scenario, warm_up_seconds=0.0, duration_seconds=300.0)

    outcome = asyncio.run(play(scenario, RULES[rule](scenario=scenario)))

    assert outcome == asyncio.run(play(scenario, RULES[rule](scenario=scenario)))
    assert outcome.policy == rule
    assert outcome.requests == sum(map(len, scenario.requests().values())) > 0
    assert outcome.cost > 0
