"""The weights of demand rows: what serving them costs at least, relative to others of their priority."""

from __future__ import annotations

import pytest
from planning_builders import load, node, variant

from controller.planning.demand import model_demands
from controller.planning.formulation import formulate
from controller.planning.problem import Stage
from controller.planning.settings import Settings, UnmetUnit
from controller.planning.snapshot import Snapshot, Variant

FULL = 0.85
"""The share of its capacity that a load may take: so the requirement is one replica of the capacity."""

CASES: dict[str, tuple[tuple[tuple[float, str], ...], tuple[int, ...]]] = {
    "as many replicas as are needed, times their cost": (((100.0, "10"), (400.0, "10")), (250, 1000)),
    "the price of the replicas": (((100.0, "40"), (100.0, "10")), (1000, 250)),
    "a small model counts a quarter of the mean": (((1.0, "10"), (900.0, "10")), (125, 1000)),
}
"""(requirement in replicas of capacity 1, cost) of each model, and the weights."""


def _weights(models: tuple[tuple[float, str], ...], settings: Settings) -> tuple[int, ...]:
    variants: list[Variant] = []
    loads = []
    for index, (needed, cost) in enumerate(models):
        name = f"m{index}"
        variants.append(variant(name, serves=1000, cost=cost, model_id=name))
        loads.append(load(needed * 1000 * FULL, name))
    snapshot = Snapshot(nodes=(node("n", 8),), variants=tuple(variants), loads=tuple(loads))
    problem = formulate(snapshot, model_demands(snapshot), settings=settings)
    return tuple(row.weight for row in problem.rows if row.stage is Stage.DEMAND)


@pytest.mark.parametrize(("models", "want"), CASES.values(), ids=CASES)
def test_by_value_a_model_weighs_what_serving_it_costs(
    models: tuple[tuple[float, str], ...], want: tuple[int, ...]
) -> None:
    """In thousandths of the most valuable model of its priority."""
    assert _weights(models, Settings()) == want


def test_by_model_all_weigh_the_same() -> None:
    """Whatever they cost."""
    assert _weights(((1.0, "40"), (900.0, "10")), Settings(unmet_unit=UnmetUnit.MODEL)) == (1, 1)
