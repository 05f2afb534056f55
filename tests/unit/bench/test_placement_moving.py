"""Fragmented clusters: generation, and the fewest evictions compared with another formulation."""

from __future__ import annotations

import numpy as np
import pytest

from controller.planning.moves import Kind
from hack.bench.placement.fragments import CLASSES, PER_NODE, SIZES, Fragments, Rule, fragments
from hack.bench.placement.moving import FAMILIES, Moving, most_for_least, moved, moving_goals, moving_table


def _world(rule: Rule, *, nodes: int = 50, used: int = 80, has_classes: bool = False) -> Fragments:
    return fragments(nodes=nodes, used_percent=used, rule=rule, has_classes=has_classes, seed=1)


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("used", [60, 80, 95])
def test_the_cluster_has_the_requested_utilization(rule: Rule, used: int) -> None:
    """It is exact, and no node is used beyond its accelerators."""
    world = _world(rule, used=used)
    lying = world.movable @ np.array([kind.accelerators for kind in world.kinds])

    assert ((world.free >= 0) & (world.free + lying <= PER_NODE)).all()
    assert int(world.free.sum()) == 50 * PER_NODE * (100 - used) // 100


def test_equal_arguments_give_equal_clusters() -> None:
    """Another seed gives another cluster."""
    first, again = _world(Rule.RANDOM), _world(Rule.RANDOM)
    other = fragments(nodes=50, used_percent=80, rule=Rule.RANDOM, has_classes=False, seed=2)

    assert (first.free == again.free).all()
    assert (first.movable == again.movable).all()
    assert (first.free != other.free).any()


def test_spreading_leaves_fewer_whole_nodes_free_than_packing() -> None:
    """With packing, the scheduler fills one node after the other."""
    assert _world(Rule.LEAST).whole < _world(Rule.MOST).whole


def test_classes_combine_every_size_with_every_price() -> None:
    """The pods are the same as without classes."""
    plain, classed = _world(Rule.LEAST), _world(Rule.LEAST, has_classes=True)

    assert {(kind.accelerators, kind.price) for kind in classed.kinds} == {
        (size, price) for size in SIZES[:-1] for price in CLASSES
    }
    assert (plain.free == classed.free).all()
    assert plain.movable.sum() == classed.movable.sum()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_formulation_with_variables_for_every_node_agrees(family: str) -> None:
    """It frees as many whole nodes at the same price."""
    for seed in range(3):
        found = moved(family, 10, 80, seed=seed, rounds=1, seconds=20.0)
        assert found.is_proven
        assert found.per_node_ms is not None
        assert not found.disagrees
        assert found.placed_before <= found.placed <= found.wanted


def test_the_formulation_with_variables_for_every_node_is_correct() -> None:
    """Nine nodes have four free accelerators each; moving one replica frees a node of eight."""
    world = Fragments(
        free=np.array([4] * 9), movable=np.array([[1]] * 9), kinds=(Kind(accelerators=4, price=3),)
    )

    assert most_for_least(world, 1, seconds=20.0) == (1, 3)


def _moving(**changes: object) -> Moving:
    fields = {
        "family": "F8-random",
        "nodes": 10_000,
        "used_percent": 80,
        "seed": 0,
        "wanted": 4,
        "placed_before": 1,
        "placed": 4,
        "evictions": 7,
        "price": 9,
        "is_proven": True,
        "cpu_ms": (30.0, 10.0, 20.0),
    }
    return Moving(**(fields | changes))  # type: ignore[arg-type]


def test_the_table_contains_means_over_seeds() -> None:
    """Columns are replicas without room before and after, evictions, price, proofs and time."""
    head, line = moving_table([_moving(), _moving(seed=1, evictions=9, is_proven=False, per_node_ms=500.0)])

    assert head.split()[:3] == ["fragmented", "nodes", "used"]
    assert line.split() == [
        "F8-random", "10000", "80", "4.00", "75.0", "0.00", "8.00", "9.00", "1/2", "20.0", "500",
    ]  # fmt: skip


def test_goals_are_scaled_to_the_pace_of_the_reference_machine() -> None:
    """A machine that is half as fast may take twice the time."""
    goals = {
        goal.name: goal for goal in moving_goals([_moving(disagrees=True, per_node_ms=1.0)], slowness=2.0)
    }

    assert (goals["T4_evictions_in_10000_nodes"].value, goals["T4_evictions_in_10000_nodes"].is_met) == (
        10.0,
        True,
    )
    assert goals["T4_evictions_not_proven_in_10000_nodes"].is_met
    assert not goals["evictions_another_model_disproves"].is_met
