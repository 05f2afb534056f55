"""Snapshots of fleets that run, what plans make of them, and how loads change."""

from __future__ import annotations

import pytest

from controller.planning.checker import check
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from hack.fleets.worlds import FACTORS, carried_out, changed, world

SMALL = 20
QUICK = Settings(relief_solves=0)


def rates_of(found: Snapshot) -> dict[str, float]:
    """Return the requests per second that each model is asked for."""
    return {load.model_id: load.requests_per_second or 0.0 for load in found.loads}


@pytest.mark.parametrize("family", FACTORS)
def test_name_size_and_seed_tell_a_snapshot(family: str) -> None:
    """The same three make the same one, in which no node has more than it holds."""
    found = world(family, SMALL, seed=3)
    room = {node.name: node.accelerators_allocatable for node in found.nodes}
    for variant in found.variants:
        for pod in variant.replicas:
            room[pod.node or ""] -= variant.accelerators_per_replica

    assert world(family, SMALL, seed=3) == found != world(family, SMALL, seed=4)
    assert len({variant.model_id for variant in found.variants}) == SMALL
    assert min(room.values()) >= 0


def test_who_has_no_room_is_asked_all_the_same() -> None:
    """In scarcity some run nothing; there is one load for every model."""
    found = world("plan-scarce", 100, seed=0)
    running = {variant.model_id for variant in found.variants if variant.replicas}
    rates = rates_of(found)

    assert set(rates) == {variant.model_id for variant in found.variants}
    assert any(rate for model, rate in rates.items() if model not in running)


@pytest.mark.parametrize("family", FACTORS)
def test_a_plan_that_is_carried_out_runs_what_it_says_for_the_same_demand(family: str) -> None:
    """Everybody has the replicas decided, on nodes with room, and is asked for what was asked before."""
    found = world(family, SMALL, seed=1)
    made, state = plan(found, PlanningState(), QUICK)
    after = carried_out(found, made)
    again, _ = plan(after, state, QUICK)

    counts = [decision.replicas for decision in made.decisions]
    assert [len(v.replicas) for v in sorted(after.variants, key=lambda v: v.key)] == counts
    assert after.loads == found.loads
    assert check(after, again) == ()


def test_few_loads_change() -> None:
    """Those of one model of a hundred, by a quarter."""
    found = world("plan-plenty", 100, seed=0)
    before, after = rates_of(found), rates_of(changed(found, share=0.01, seed=0))
    other = [after[model] / before[model] for model in before if before[model] != after[model]]

    assert len(other) == 1
    assert other[0] in (pytest.approx(0.75), pytest.approx(1.25))
