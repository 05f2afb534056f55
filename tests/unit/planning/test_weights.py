"""Weights of demand rows: the least cost of serving a model, relative to other models of its priority."""

from __future__ import annotations

import pytest
from support.planning_builders import load, node, variant

from controller.planning.demand import model_demands
from controller.planning.formulation import formulate
from controller.planning.inputs import Settings
from controller.planning.problem import Stage
from controller.planning.snapshot import Snapshot, Variant

FULL = 0.85
"""The maximum utilization: a load of this share of a replica's capacity requires exactly one replica."""

CASES: dict[str, tuple[tuple[tuple[float, str], ...], tuple[int, ...]]] = {
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


@pytest.mark.parametrize(("models", "want"), CASES.values(), ids=CASES)
def test_the_weight_by_value_is_the_cost_of_serving_a_model(
    models: tuple[tuple[float, str], ...], want: tuple[int, ...]
) -> None:
    """Weights are in thousandths of the most valuable model of the same priority."""
    assert _weights(models) == want
