"""Joint decisions over all models, on cases that can be checked by hand, and the weights of their demand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.planning_builders import EFFORT, capacity, demand, load, node, variant, world

from controller.planning.demand import model_demands
from controller.planning.engine import place
from controller.planning.formulation import formulate
from controller.planning.inputs import Settings
from controller.planning.load import Signal
from controller.planning.problem import NumbersTooLargeError, Stage
from controller.planning.snapshot import Snapshot, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.cluster import Node
    from controller.planning.demand import ModelDemand


def _place(
    nodes: Sequence[Node],
    demands: Sequence[ModelDemand],
    rates: dict[str, int] | None = None,
    settings: Settings | None = None,
) -> dict[str, int]:
    """Return the replicas per variant; a replica serves a rate of 100 unless given."""
    equipped = [
        replace(
            item,
            variants=tuple(
                replace(v, capacity=capacity((rates or {}).get(v.name, 100))) for v in item.variants
            ),
        )
        for item in demands
    ]
    problem = formulate(world(nodes, equipped), equipped, settings=settings or Settings())
    solution = place(problem, effort=EFFORT)
    assert solution.unproven is None
    variants = [v for item in equipped for v in item.variants]
    return {v.name: count for v, count in zip(variants, solution.replicas, strict=True)}


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param(
            [node(f"n{i}", 8, used=6) for i in range(4)], 0, id="2+2+2+2 free on four nodes: no room for 8"
        ),
        pytest.param([node("n0", 8, used=1), node("n1", 8)], 1, id="8 free on one node: room for 8"),
        pytest.param([node("n0", 16)], 2, id="16 free on one node: room for two"),
        pytest.param([node("n0", 8, schedulable=False)], 0, id="8 free on a cordoned node: no room"),
        pytest.param([node("n0", 8, accelerator="A100")], 0, id="8 free of another type: no room"),
    ],
)
def test_a_replica_needs_all_its_accelerators_on_one_node(nodes: list[Node], want: int) -> None:
    """Free accelerators count per node, not in total."""
    big = variant("a", size=8)

    assert _place(nodes, [demand(big, lower=200)]) == {"a": want}


def test_the_cheapest_cover_is_chosen_over_the_best_ratio() -> None:
    """For a rate of 100: 200 for 10 has the better ratio, but 100 for 6 is cheaper."""
    a, b = variant("a", cost="10"), variant("b", cost="6")

    assert _place([node("n", 8)], [demand(a, b, lower=100)], {"a": 200, "b": 100}) == {"a": 0, "b": 1}


def test_a_mix_is_cheaper_than_rounding_either_variant_alone() -> None:
    """100 req/s on at most 3 H100 (26.8955 each, cost 100) and L40S (2.0141, cost 32): 3 + 10 cost 620."""
    h100 = variant("h100", cost="100", max_replicas=3)
    l40s = variant("l40s", cost="32", accelerator="L40S")
    nodes = [node("n1", 8), *(node(f"l{i}", 8, accelerator="L40S") for i in range(8))]
    rates = {"h100": 26_895_500, "l40s": 2_014_100}

    assert _place(nodes, [demand(h100, l40s, lower=100_000_000)], rates) == {"h100": 3, "l40s": 10}


def test_the_model_with_the_cheaper_substitute_leaves_scarce_accelerators_to_the_other() -> None:
    """One model can move to the other type at little cost, the other one cannot."""
    nodes = [node("h", 1), node("l", 4, accelerator="L40S")]
    movable = [variant("m-h100", cost="10"), variant("m-l40s", cost="11", accelerator="L40S")]
    bound = [variant("b-h100", cost="10"), variant("b-l40s", cost="90", accelerator="L40S", size=4)]
    demands = [
        demand(*bound, lower=100, model_id="b"),
        demand(*movable, lower=100, model_id="m"),
    ]

    assert _place(nodes, demands) == {"b-h100": 1, "b-l40s": 0, "m-h100": 0, "m-l40s": 1}


def _two(low: int, high: int) -> list[ModelDemand]:
    chat = demand(variant("chat", model_id="chat"), lower=high, model_id="chat", priority=1)
    batch = demand(
        variant("batch", "n", "n", "n", model_id="batch"), lower=low, model_id="batch", priority=50
    )
    return [batch, chat]


@pytest.mark.parametrize(
    ("accelerators", "want"),
    [
        pytest.param(5, {"chat": 2, "batch": 3}, id="enough for both"),
        pytest.param(4, {"chat": 2, "batch": 2}, id="one replica is preempted"),
        pytest.param(2, {"chat": 2, "batch": 0}, id="all replicas are preempted"),
        pytest.param(1, {"chat": 1, "batch": 0}, id="not enough even for the higher priority"),
    ],
)
def test_under_shortage_lower_priorities_are_preempted(accelerators: int, want: dict[str, int]) -> None:
    """Running replicas are removed for a higher priority, but no more than needed."""
    used = 0
    nodes = [node("n", accelerators, used=used)]

    assert _place(nodes, _two(low=300, high=200)) == want


def test_minimum_replicas_come_before_all_demand() -> None:
    """The autoscaler keeps minReplicas anyway, so the plan does not count on their accelerators."""
    chat = demand(variant("chat", model_id="chat"), lower=300, model_id="chat", priority=1)
    low = variant("low", "n", model_id="low", min_replicas=1)

    assert _place([node("n", 3)], [chat, demand(low, lower=0, model_id="low")]) == {"chat": 2, "low": 1}


def test_the_last_replica_of_a_model_is_of_its_cheapest_variant() -> None:
    """Without demand one replica stays, unless the model may scale to zero."""
    a, b = variant("a", "n", cost="9"), variant("b", "n", cost="3")

    assert _place([node("n", 8)], [demand(a, b, lower=0, may_scale_to_zero=False)]) == {"a": 0, "b": 1}
    assert _place([node("n", 8)], [demand(a, b, lower=0)]) == {"a": 0, "b": 0}


def test_removal_frees_the_nodes_that_the_replicaset_controller_empties() -> None:
    """The low priority loses only its first two pods in removal order, which free all of n1."""
    low = variant("low", "n1", "n1", "n2", size=4, model_id="low")
    big = variant("big", size=8, model_id="big")
    nodes = [node("n1", 8), node("n2", 8, used=4)]
    demands = [
        demand(big, lower=100, model_id="big", priority=1),
        demand(low, lower=300, model_id="low", priority=9),
    ]

    assert _place(nodes, demands) == {"big": 1, "low": 1}


def test_nothing_is_preempted_if_that_frees_no_whole_node() -> None:
    """Another workload holds 4 of each node, so a replica of 8 never fits."""
    low = variant("low", "n1", "n2", size=4, model_id="low")
    big = variant("big", size=8, model_id="big")
    nodes = [node("n1", 8, used=4), node("n2", 8, used=4)]
    demands = [
        demand(big, lower=100, model_id="big", priority=1),
        demand(low, lower=200, model_id="low", priority=9),
    ]

    assert _place(nodes, demands) == {"big": 0, "low": 2}


def test_a_pending_replica_needs_a_slot() -> None:
    """A pending pod may never be bound, so the other variant is used."""
    pending = variant("a", None, size=8, cost="1")
    other = variant("b", size=4, cost="9")

    assert _place([node("n", 4)], [demand(pending, other, lower=100)]) == {"a": 0, "b": 1}


def test_an_overcommitted_node_keeps_its_pods_and_gets_no_new_ones() -> None:
    """Its pods request more accelerators than it has, for instance after a device failed."""
    running = variant("a", "n", "n", size=4, model_id="a")
    small = variant("b", model_id="b")
    demands = [
        demand(running, lower=200, model_id="a", priority=1),
        demand(small, lower=100, model_id="b"),
    ]

    assert _place([node("n", 6)], demands) == {"a": 2, "b": 0}


def test_a_replica_on_an_unknown_node_stays_and_frees_nothing() -> None:
    """A pod may be bound to a node that is not in the snapshot."""
    lost = variant("a", "gone", model_id="a")
    new = variant("b", model_id="b")
    demands = [
        demand(lost, lower=100, model_id="a", priority=9),
        demand(new, lower=100, model_id="b", priority=1),
    ]

    assert _place([], demands) == {"a": 1, "b": 0}


@pytest.mark.parametrize(
    ("cost", "start_seconds", "standing_seconds", "want"),
    [
        pytest.param("9.5", 60, 600, {"a": 1, "b": 0}, id="9.5 plus a tenth for the start: not worth it"),
        pytest.param(
            "9.5", 60, 3600, {"a": 0, "b": 1}, id="9.5 plus a sixtieth, as the mix stands longer: worth it"
        ),
        pytest.param("7", 60, 600, {"a": 0, "b": 1}, id="7 plus a tenth: worth it"),
        pytest.param("7", 300, 600, {"a": 1, "b": 0}, id="7 plus a half, as the start is slow: not worth it"),
    ],
)
def test_a_replacement_has_to_be_worth_its_start(
    cost: str, start_seconds: float, standing_seconds: float, want: dict[str, int]
) -> None:
    """The variant that was asked for costs 10; a start costs the share of the standing time that it takes."""
    asked = variant("a", None, cost="10")
    other = variant("b", cost=cost, start_seconds=start_seconds)
    settings = Settings(standing_seconds=standing_seconds)

    assert _place([node("n", 2)], [demand(asked, other, lower=100)], settings=settings) == want


def test_ready_replicas_stay_until_their_replacement_is_ready() -> None:
    """The dearer variant is removed only after the cheaper one serves."""
    dear, cheap = variant("a", "n", cost="10"), variant("b", cost="2")
    served_by_dear = demand(dear, cheap, lower=100, anticipated_rate=100, supply_rate=100)

    assert _place([node("n", 2)], [served_by_dear]) == {"a": 1, "b": 0}

    both = demand(dear, variant("b", "n", cost="2"), lower=100, anticipated_rate=200, supply_rate=200)

    assert _place([node("n", 2)], [both]) == {"a": 0, "b": 1}


@pytest.mark.parametrize("signal", [Signal.HELD, Signal.UNKNOWN])
def test_replicas_of_a_model_without_data_are_kept(signal: Signal) -> None:
    """Missing data never scales down, not even for a higher priority."""
    dark = demand(variant("dark", "n", "n", model_id="d"), lower=0, model_id="d", signal=signal)
    chat = demand(variant("chat", model_id="c"), lower=200, model_id="c", priority=1)

    assert _place([node("n", 3)], [chat, dark]) == {"chat": 1, "dark": 2}


def test_maximum_replicas_bind_even_without_data() -> None:
    """The user's limit is never relaxed."""
    dark = demand(variant("dark", "n", "n", max_replicas=1), lower=0, signal=Signal.UNKNOWN)

    assert _place([node("n", 3)], [dark]) == {"dark": 1}


def test_replicas_without_accelerators_always_have_room() -> None:
    """A variant on CPUs needs no node with accelerators."""
    assert _place([], [demand(variant("cpu", size=0), lower=300)]) == {"cpu": 3}


def test_sizes_that_do_not_divide_each_other_are_packed_on_each_node() -> None:
    """Two nodes of 8 hold four replicas of 3 and then two of 2, though 16 would be enough for five of 3."""
    threes, twos = variant("a", size=3, model_id="a"), variant("b", size=2, model_id="b")
    demands = [
        demand(threes, lower=500, model_id="a", priority=1),
        demand(twos, lower=300, model_id="b"),
    ]

    assert _place([node("n1", 8), node("n2", 8)], demands) == {"a": 4, "b": 2}


def test_ties_are_broken_by_name() -> None:
    """The solution is deterministic."""
    twins = [variant(name) for name in ("a", "b", "c")]

    assert _place([node("n", 8)], [demand(*twins, lower=200)]) == {"a": 2, "b": 0, "c": 0}


def test_numbers_too_large_for_exact_sums_are_rejected() -> None:
    """A sum beyond 2^53 would be rounded silently; the error names the variant."""
    absurd = variant("a", cost="1000000", max_replicas=900_000, current_replicas=900_000)

    with pytest.raises(NumbersTooLargeError, match="llm/a: the cost of up to 10000 replicas is too large"):
        _place([], [demand(absurd, lower=100)])


def test_a_huge_cost_does_not_hide_differences_of_other_costs() -> None:
    """Costs beyond a million count as a million, so that the plan for other models is unaffected."""
    absurd = variant("a", cost="999999999", model_id="a")
    normal = [variant("b", cost="1.0001", model_id="b"), variant("c", cost="1.0002", model_id="b")]
    demands = [demand(absurd, lower=100, model_id="a"), demand(*normal, lower=100, model_id="b")]

    assert _place([node("n", 8)], demands) == {"a": 1, "b": 1, "c": 0}


def test_a_huge_demand_is_counted_in_coarser_units() -> None:
    """Sums stay exact for a million requests per second."""
    assert _place([node("n", 8)], [demand(variant("a"), lower=10**12)], {"a": 2 * 10**11}) == {"a": 5}


FULL = 0.85
"""The maximum utilization: a load of this share of a replica's capacity requires exactly one replica."""

WEIGHED: dict[str, tuple[tuple[tuple[float, str], ...], tuple[int, ...]]] = {
    "the number of required replicas times their cost": (((100.0, "10"), (400.0, "10")), (250, 1000)),
    "the cost per replica": (((100.0, "40"), (100.0, "10")), (1000, 250)),
    "at least a quarter of the mean for a small model": (((1.0, "10"), (900.0, "10")), (125, 1000)),
}
"""(requirement in replicas of capacity 1, cost) of each model, and the weights."""


def _weights(models: tuple[tuple[float, str], ...]) -> tuple[int, ...]:
    variants: list[Variant] = []
    loads = []
    for index, (needed, cost) in enumerate(models):
        name = f"m{index}"
        variants.append(variant(name, serves=1000, cost=cost, model_id=name))
        loads.append(load(needed * 1000 * FULL, name))
    snapshot = Snapshot(nodes=(node("n", 8),), variants=tuple(variants), loads=tuple(loads))
    problem = formulate(snapshot, model_demands(snapshot), settings=Settings())
    return tuple(row.weight for row in problem.rows if row.stage is Stage.DEMAND)


@pytest.mark.parametrize(("models", "want"), WEIGHED.values(), ids=WEIGHED)
def test_the_weight_by_value_is_the_cost_of_serving_a_model(
    models: tuple[tuple[float, str], ...], want: tuple[int, ...]
) -> None:
    """Weights are in thousandths of the most valuable model of the same priority."""
    assert _weights(models) == want
