"""Fallback plans where the solver has no result, and solved plans of small random snapshots."""

from __future__ import annotations

from random import Random

from support.campaign import often
from support.planning_builders import load, node, variant
from support.small_snapshots import small_snapshot

from controller.planning.assemble import hold
from controller.planning.decision import SolverStatus
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot

WORLD = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", serves=12_800),), loads=(load(25_000),))


def test_plans_of_small_snapshots_are_solved_and_accepted() -> None:
    """They include pins on old data without room, and quotas that are already exceeded."""
    for seed in (72, 119, 374, 404, *range(often(20))):
        made = plan(small_snapshot(Random(seed)), Settings())
        assert made.solver.is_answered, (seed, made.solver.message)


def test_a_minimum_of_several_replicas_is_kept_without_demand() -> None:
    """The load is zero, and minReplicas is 3."""
    idle = variant("a", "n", "n", "n", serves=12_800, min_replicas=3)
    world = Snapshot(nodes=WORLD.nodes, variants=(idle,), loads=(load(0),))
    made = plan(world, Settings())

    assert made.decisions[0].replicas == 3


def test_a_held_plan_is_not_reported_as_solved() -> None:
    """The current replicas are kept, and the message states why."""
    made = hold(WORLD, Settings(), status=SolverStatus.TIMED_OUT, message="it ended")

    assert (made.solver.is_answered, made.solver.gap, made.solver.levels) == (False, 1.0, ())
    assert made.decisions[0].replicas == 1
    assert made.decisions[0].message == "a stays at 1 replica: it ended"


def test_decisions_have_error_details_only_if_names_all_is_set() -> None:
    """Details may name workloads of other namespaces; the message of the solver always has them."""
    detail = "refused: other/b may not go to node n"
    for names_all, want in ((False, "refused"), (True, detail)):
        settings = Settings(names_all=names_all)
        made = hold(WORLD, settings, status=SolverStatus.FAILED, message="refused", detail=detail)

        assert made.solver.message == detail
        assert made.decisions[0].message == f"a stays at 1 replica: {want}"
