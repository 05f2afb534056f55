"""Snapshots of running fleets, applied plans, and changes of loads."""

from __future__ import annotations

import pytest

from controller.planning.checker import check
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from hack.fleets.worlds import FACTORS, carried_out, change_loads, world

SMALL = 20
QUICK = Settings(relief_solves=0)


def rates_of(found: Snapshot) -> dict[str, float]:
    """Return the requests per second of each model."""
    return {load.model_id: load.requests_per_second or 0.0 for load in found.loads}


@pytest.mark.parametrize("family", FACTORS)
def test_family_size_and_seed_determine_a_snapshot(family: str) -> None:
    """No node has more accelerators in use than it has."""
    found = world(family, SMALL, seed=3)
    room = {node.name: node.accelerators_allocatable for node in found.nodes}
    for variant in found.variants:
        for pod in variant.replicas:
            room[pod.node or ""] -= variant.accelerators_per_replica

    assert world(family, SMALL, seed=3) == found != world(family, SMALL, seed=4)
    assert len({variant.model_id for variant in found.variants}) == SMALL
    assert min(room.values()) >= 0


def test_models_without_room_have_a_load() -> None:
    """If accelerators are scarce, some models run no replica; each model has a load."""
    found = world("plan-scarce", 100, seed=0)
    running = {variant.model_id for variant in found.variants if variant.replicas}
    rates = rates_of(found)

    assert set(rates) == {variant.model_id for variant in found.variants}
    assert any(rate for model, rate in rates.items() if model not in running)


@pytest.mark.parametrize("family", FACTORS)
def test_an_applied_plan_runs_the_decided_replicas_with_unchanged_loads(family: str) -> None:
    """All replicas are on nodes with room, and the next plan is feasible."""
    found = world(family, SMALL, seed=1)
    made = plan(found, QUICK)
    after = carried_out(found, made)
    again = plan(after, QUICK)

    counts = [decision.replicas for decision in made.decisions]
    assert [len(v.replicas) for v in sorted(after.variants, key=lambda v: v.key)] == counts
    assert after.loads == found.loads
    assert check(after, again) == ()


def test_a_small_share_of_loads_changes() -> None:
    """Of 100 models, the load of one changes by a quarter."""
    found = world("plan-plenty", 100, seed=0)
    before, after = rates_of(found), rates_of(change_loads(found, share=0.01, seed=0))
    other = [after[model] / before[model] for model in before if before[model] != after[model]]

    assert len(other) == 1
    assert other[0] in (pytest.approx(0.75), pytest.approx(1.25))
