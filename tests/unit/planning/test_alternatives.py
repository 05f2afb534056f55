"""The alternative mix of a model."""

from __future__ import annotations

from decimal import Decimal

from support.planning_builders import load, node, variant

from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState


def test_an_alternative_has_its_extra_cost_and_disruption() -> None:
    """The cheaper variant is chosen; using the other one as well costs 4 more and changes 2 more."""
    sizes = {"a": (2, "10"), "b": (4, "14")}
    world = Snapshot(
        nodes=(node("n1", 8), node("n2", 8)),
        variants=tuple(
            variant(name, serves=10_000, size=size, cost=cost) for name, (size, cost) in sizes.items()
        ),
        loads=(load(16_000),),
    )
    made, _ = plan(world, PlanningState(), Settings())

    alternative = made.decisions[0].alternative
    assert alternative is not None
    assert dict(alternative.replicas) == {"a": 1, "b": 1}
    assert (alternative.extra_cost, alternative.extra_disruption) == (Decimal(4), 2)
