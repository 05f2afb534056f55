"""Replica numbers that no cluster can hold, but that any user can state."""

from __future__ import annotations

from typing import Any

import pytest
from support.planning_builders import load, node, variant

from controller.planning.decision import Plan, SolverStatus
from controller.planning.inputs import Settings
from controller.planning.load import ModelLoad
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot, Variant

KNOWN = 10_000


def _variant(name: str, **changes: Any) -> Variant:
    return variant(name, **{"serves": KNOWN, "may_scale_to_zero": True} | changes)


def _plan(*variants: Variant, loads: tuple[ModelLoad, ...] = ()) -> Plan:
    nodes = (node("n1", 8), node("n2", 8))
    made = plan(Snapshot(nodes=nodes, variants=variants, loads=loads), Settings())
    assert made.solver.status is not SolverStatus.FAILED, made.solver.message
    return made


ENDLESS: dict[str, dict[str, Any]] = {
    "pinned": {"pinned_replicas": 10**6},
    "requested by a scale target": {"current_replicas": 10**6},
    "required by the minimum of an autoscaler": {"min_replicas": 10**6},
}


@pytest.mark.parametrize("stated", ENDLESS.values(), ids=ENDLESS)
def test_a_million_replicas_of_one_tenant_do_not_stop_the_plan_of_others(stated: dict[str, Any]) -> None:
    """Fifteen variants state a million expensive replicas each, and another model gets its two."""
    many = [_variant(f"v{i}", model_id=f"m{i}", cost="20000", priority=50, **stated) for i in range(15)]
    made = _plan(_variant("good", model_id="good", priority=1), *many, loads=(load(2 * KNOWN * 0.8, "good"),))

    assert {decision.name: decision.replicas for decision in made.decisions}["good"] == 2


def test_replicas_beyond_the_planned_maximum_are_reported() -> None:
    """The variant uses no accelerators, so there is room for all of them."""
    made = _plan(_variant("a", size=0, accelerator="", pinned_replicas=12_000))

    assert made.decisions[0].replicas >= 9_990
    assert "of a variant at most 10000 replicas are planned" in made.decisions[0].message
