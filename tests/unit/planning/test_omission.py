"""Prices and replica numbers that are too large: the others are planned."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from support.planning_builders import load, node, variant

from controller.planning.checker import check
from controller.planning.cluster import Budget, NodePool, Quota
from controller.planning.decision import BoundBy, Plan, Reason, SolverStatus
from controller.planning.inputs import Settings
from controller.planning.load import ModelLoad
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot, Variant

NODES = (node("n1", 8), node("n2", 8))
NORMAL = variant("normal", "n1", serves=12_800, model_id="normal", priority=1)
LOADS = (load(25_000, "normal"), load(30_000, "absurd"))
COST = "1000000"


def _absurd(*hosts: str | None, **changes: Any) -> Variant:
    given: dict[str, Any] = {"model_id": "absurd", "cost": COST, "serves": 1.0}
    return variant("absurd", *hosts, **given | changes)


def _planned(*variants: Variant, **changes: Any) -> Plan:
    given: dict[str, Any] = {"nodes": NODES, "variants": variants, "loads": LOADS}
    snapshot = Snapshot(**given | changes)
    made = plan(snapshot, Settings())
    assert made.solver.is_answered, made.solver.message
    assert check(snapshot, made) == ()
    return made


def _replicas(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


ABSURD = {
    "a minimum of many replicas": (_absurd(min_replicas=10_000), "its minReplicas of 10000"),
    "a minimum of more replicas than are planned": (
        _absurd(min_replicas=900_000),
        "its minReplicas of 900000",
    ),
    "a demand for many replicas": (_absurd(), "its maxReplicas"),
    "many current replicas without pods": (
        _absurd(current_replicas=900_000, serves=30_000.0),
        "its maxReplicas",
    ),
    "a start that takes days": (
        _absurd(cost="10000", start_seconds=1_000_000.0),
        "its start time of 1000000 s or its maxReplicas",
    ),
    "the highest cost that a record may contain": (_absurd(cost="1000000000"), "at 1000000000 per hour"),
}


@pytest.mark.parametrize(("absurd", "remedy"), ABSURD.values(), ids=ABSURD.keys())
def test_one_variant_with_absurd_numbers_is_left_out_by_itself(absurd: Variant, remedy: str) -> None:
    """It keeps its replicas, with a message that names the fields to change; the others are planned."""
    made = _planned(absurd, NORMAL)
    alone = _planned(NORMAL, loads=LOADS[:1])
    left_out = made.decisions[0]

    assert _replicas(made) == {"absurd": absurd.current_replicas, "normal": 3}
    assert made.decisions[1] == alone.decisions[0]
    assert (left_out.bound_by, left_out.reason) == (BoundBy.SOLVER, Reason.HOLDING)
    assert left_out.message.startswith(f"absurd stays at {absurd.current_replicas} replicas: ")
    assert "cost too much to be compared exactly" in left_out.message
    assert remedy in left_out.message
    assert "spec.variantCost" in left_out.message
    (omission,) = made.omissions
    assert omission.startswith("variant llm/absurd is left out: ")
    assert made.solver.status is SolverStatus.OPTIMAL


def test_replicas_that_are_left_out_keep_their_nodes_and_serve_their_model() -> None:
    """The other variant of the model serves the rest of the demand, on the accelerators that are free."""
    absurd = _absurd("n1", "n1", "n1", size=2, serves=10_000.0, min_replicas=10_000)
    other = variant("other", model_id="absurd", serves=10_000.0, size=2)

    made = _planned(absurd, other, nodes=NODES[:1])

    # 30,000 at a utilization of 85 % requires 35,294, of which three replicas serve 30,000.
    assert _replicas(made) == {"absurd": 3, "other": 1}
    assert [(place.name, place.pods) for place in made.placements] == [("other", 1)]
    assert made.cost == 3 * Decimal(COST) + 10


def test_replicas_that_are_left_out_count_against_quotas_and_budgets() -> None:
    """Nothing starts under a quota or budget that they use up."""
    absurd = _absurd("n1", "n1", serves=10_000.0, min_replicas=10_000)
    quota = Quota(name="q", namespace="llm", accelerators=4)
    dear = Budget(name="b", cost_per_hour=2 * Decimal(COST) + 20)

    assert _replicas(_planned(absurd, NORMAL)) == {"absurd": 2, "normal": 3}
    assert _replicas(_planned(absurd, NORMAL, quotas=(quota,))) == {"absurd": 2, "normal": 2}
    assert _replicas(_planned(absurd, NORMAL, budgets=(dear,))) == {"absurd": 2, "normal": 2}
    small = replace(dear, cost_per_hour=Decimal(500))
    assert _replicas(_planned(absurd, NORMAL, budgets=(small,))) == {"absurd": 2, "normal": 1}


@pytest.mark.parametrize("replicas", [0, 900_000], ids=["nothing runs", "an absurd variant runs"])
def test_a_quota_or_budget_with_an_absurd_amount_allows_everything(replicas: int) -> None:
    """Users write many nines for no limit."""
    limits: dict[str, Any] = {
        "quotas": (Quota(name="q", namespace="llm", accelerators=10**30),),
        "budgets": (Budget(name="b", cost_per_hour=Decimal("9" * 30)),),
    }
    absurd = _absurd(current_replicas=replicas, serves=30_000.0)

    assert _replicas(_planned(absurd, NORMAL, **limits))["normal"] == 3


def test_pods_without_a_node_stay_although_their_variant_is_left_out() -> None:
    """Two of five have a place; the number of replicas does not change."""
    made = _planned(_absurd("n1", *[None] * 4, size=4, min_replicas=10_000), nodes=NODES[:1])

    assert _replicas(made) == {"absurd": 5}


def test_the_dearest_of_many_are_left_out_until_the_sum_of_the_others_is_exact() -> None:
    """Twelve variants cost too much together, and eleven do not; of equal ones, the first is left out."""
    many = [variant(f"v{n:02}", model_id=f"m{n:02}", cost="76000", serves=1.0) for n in range(12)]
    loads = tuple(load(30_000, f"m{n:02}") for n in range(12))

    made = _planned(*many, NORMAL, loads=(*loads, LOADS[0]))

    assert [text.partition(" is")[0] for text in made.omissions] == ["variant llm/v00"]
    assert _replicas(made)["normal"] == 3


def test_decisions_for_others_do_not_name_a_variant_that_is_left_out() -> None:
    """It may be in another namespace; only the plan's omissions, which administrators see, name it."""
    made = _planned(_absurd(min_replicas=10_000, namespace="other"), NORMAL)

    assert [item.key for item in made.decisions if "absurd" in item.message] == [("other", "absurd")]
    assert "other/absurd" in made.omissions[0]


def test_a_node_pool_with_an_absurd_price_is_left_out_by_itself() -> None:
    """Another pool adds the nodes."""
    dear = NodePool(
        name="dear",
        accelerator="H100",
        accelerators_per_node=8,
        price_per_node=Decimal(COST),
        nodes_addable=100_000,
    )
    cheap = replace(dear, name="cheap", price_per_node=Decimal(20), nodes_addable=3)

    made = _planned(NORMAL, nodes=(node("n1", 1),), pools=(dear, cheap))

    assert _replicas(made) == {"normal": 3}
    assert [request.pool for request in made.requests] == ["cheap"]
    assert made.omissions == (
        "node pool dear is left out: 100000 nodes at 1000000 per hour each cost too much to be compared"
        " exactly with others; lower pricePerNode or nodesAddable",
    )


KNOWN = 10_000


def _known(name: str, **changes: Any) -> Variant:
    return variant(name, **{"serves": KNOWN, "may_scale_to_zero": True} | changes)


def _planned_beside(*variants: Variant, loads: tuple[ModelLoad, ...] = ()) -> Plan:
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
    many = [_known(f"v{i}", model_id=f"m{i}", cost="20000", priority=50, **stated) for i in range(15)]
    made = _planned_beside(
        _known("good", model_id="good", priority=1), *many, loads=(load(2 * KNOWN * 0.8, "good"),)
    )

    assert {decision.name: decision.replicas for decision in made.decisions}["good"] == 2


def test_replicas_beyond_the_planned_maximum_are_reported() -> None:
    """The variant uses no accelerators, so there is room for all of them."""
    made = _planned_beside(_known("a", size=0, accelerator="", pinned_replicas=12_000))

    assert made.decisions[0].replicas >= 9_990
    assert "of a variant at most 10000 replicas are planned" in made.decisions[0].message
