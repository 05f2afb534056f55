"""What stands where the solver has no answer, and that it has one for whatever small world there is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random

from planning_builders import load, node, variant
from small_snapshots import small_snapshot
from support.campaign import often

from controller.planning.decision import SolverStatus
from controller.planning.hold import hold
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState

NOTHING = PlanningState()
WORLD = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", serves=12_800),), loads=(load(25_000),))


def test_the_checker_accepts_the_answer() -> None:
    """Among others: pins on old data that find no place, quotas that are exceeded already."""
    for seed in (72, 119, 374, 404, *range(often(20))):
        made, _ = plan(small_snapshot(Random(seed)), NOTHING, Settings())
        assert made.solver.is_answered, (seed, made.solver.message)


def test_a_minimum_of_several_is_kept() -> None:
    """Nothing is in demand, and three are to stay."""
    idle = variant("a", "n", "n", "n", serves=12_800, min_replicas=3)
    world = Snapshot(nodes=WORLD.nodes, variants=(idle,), loads=(load(0),))
    made, _ = plan(world, NOTHING, Settings())

    assert made.decisions[0].replicas == 3


def test_what_runs_stands_where_the_solver_refuses() -> None:
    """Numbers that the solver cannot represent are no reason to change anything."""
    absurd = replace(WORLD.variants[0], cost_per_replica=Decimal(10) ** 6, min_replicas=900_000)
    made, _ = plan(replace(WORLD, variants=(absurd,)), NOTHING, Settings())

    assert (made.solver.status, made.solver.is_answered) == (SolverStatus.FAILED, False)
    assert made.decisions[0].replicas == 1
    assert made.decisions[0].message.startswith("a stays at 1 replica: ")


def test_holding_is_no_answer() -> None:
    """What runs stands, and the report says why."""
    made, _ = hold(WORLD, NOTHING, Settings(), status=SolverStatus.TIMED_OUT, message="it ended")

    assert (made.solver.is_answered, made.solver.gap, made.solver.levels) == (False, 1.0, ())
    assert made.decisions[0].replicas == 1
    assert made.decisions[0].message == "a stays at 1 replica: it ended"


def test_what_was_wrong_with_an_answer_is_not_told_to_everybody() -> None:
    """It may name workloads of anybody: the log has it, and who plans files."""
    detail = "refused: other/b may not go to node n"
    for names_all, want in ((False, "refused"), (True, detail)):
        settings = Settings(names_all=names_all)
        made, _ = hold(WORLD, NOTHING, settings, status=SolverStatus.FAILED, message="refused", detail=detail)

        assert made.solver.message == detail
        assert made.decisions[0].message == f"a stays at 1 replica: {want}"


def test_numbers_of_others_are_not_told() -> None:
    """That somebody's are too large is all that the rest is told."""
    absurd = replace(variant("b", cost_per_replica=Decimal(10) ** 6), namespace="other", min_replicas=900_000)
    world = replace(WORLD, variants=(*WORLD.variants, absurd))
    made, _ = plan(world, NOTHING, Settings(names_all=False))

    assert "other/b" in made.solver.message
    assert not any("other/b" in item.message for item in made.decisions)
