"""Fallback plans where the solver has no result, and solved plans of small random snapshots."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random

from support.campaign import often
from support.planning_builders import load, node, variant
from support.small_snapshots import small_snapshot

from controller.planning.decision import SolverStatus
from controller.planning.hold import hold
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState

NOTHING = PlanningState()
WORLD = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", serves=12_800),), loads=(load(25_000),))


def test_plans_of_small_snapshots_are_solved_and_accepted() -> None:
    """They include pins on old data without room, and quotas that are already exceeded."""
    for seed in (72, 119, 374, 404, *range(often(20))):
        made, _ = plan(small_snapshot(Random(seed)), NOTHING, Settings())
        assert made.solver.is_answered, (seed, made.solver.message)


def test_a_minimum_of_several_replicas_is_kept_without_demand() -> None:
    """The load is zero, and minReplicas is 3."""
    idle = variant("a", "n", "n", "n", serves=12_800, min_replicas=3)
    world = Snapshot(nodes=WORLD.nodes, variants=(idle,), loads=(load(0),))
    made, _ = plan(world, NOTHING, Settings())

    assert made.decisions[0].replicas == 3


def test_current_replicas_are_kept_if_the_solver_rejects_the_problem() -> None:
    """Numbers that the solver cannot represent are no reason for a change."""
    absurd = replace(WORLD.variants[0], cost_per_replica=Decimal(10) ** 6, min_replicas=900_000)
    made, _ = plan(replace(WORLD, variants=(absurd,)), NOTHING, Settings())

    assert (made.solver.status, made.solver.is_answered) == (SolverStatus.FAILED, False)
    assert made.decisions[0].replicas == 1
    assert made.decisions[0].message.startswith("a stays at 1 replica: ")


def test_a_held_plan_is_not_reported_as_solved() -> None:
    """The current replicas are kept, and the message states why."""
    made, _ = hold(WORLD, NOTHING, Settings(), status=SolverStatus.TIMED_OUT, message="it ended")

    assert (made.solver.is_answered, made.solver.gap, made.solver.levels) == (False, 1.0, ())
    assert made.decisions[0].replicas == 1
    assert made.decisions[0].message == "a stays at 1 replica: it ended"


def test_decisions_have_error_details_only_if_names_all_is_set() -> None:
    """Details may name workloads of other namespaces; the message of the solver always has them."""
    detail = "refused: other/b may not go to node n"
    for names_all, want in ((False, "refused"), (True, detail)):
        settings = Settings(names_all=names_all)
        made, _ = hold(WORLD, NOTHING, settings, status=SolverStatus.FAILED, message="refused", detail=detail)

        assert made.solver.message == detail
        assert made.decisions[0].message == f"a stays at 1 replica: {want}"


def test_decisions_do_not_name_variants_of_other_namespaces_with_too_large_numbers() -> None:
    """Only the message of the solver names such a variant."""
    absurd = replace(variant("b", cost_per_replica=Decimal(10) ** 6), namespace="other", min_replicas=900_000)
    world = replace(WORLD, variants=(*WORLD.variants, absurd))
    made, _ = plan(world, NOTHING, Settings(names_all=False))

    assert "other/b" in made.solver.message
    assert not any("other/b" in item.message for item in made.decisions)
