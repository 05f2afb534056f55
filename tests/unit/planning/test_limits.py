"""What a plan does under quotas, budgets, ceilings, pins, pauses, and with nodes that could be added."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from planning_builders import capacity, load, node, variant

from controller.planning.cluster import Budget, NodePool, NodeRequirement, Quota
from controller.planning.decision import BoundBy, Plan, Reason, ReliefKind, SolverStatus
from controller.planning.load import CapacitySource, ModelLoad
from controller.planning.plan import plan
from controller.planning.settings import Settings, UnmetUnit
from controller.planning.snapshot import ModelRule, Snapshot, Variant
from controller.planning.state import PlanningState

KNOWN = 10_000


def _variant(name: str, *hosts: str | None, **changes: Any) -> Variant:
    return variant(name, *hosts, **{"serves": KNOWN, "may_scale_to_zero": True} | changes)


def _wants(model: str, replicas: int) -> ModelLoad:
    """Return a load that asks for so many replicas of the capacity that all variants here have."""
    return load(replicas * KNOWN * 0.8, model)


def _rule(**changes: Any) -> ModelRule:
    """Return what holds for the model."""
    return ModelRule(namespace="llm", model_id="llama", **changes)


def _plan(*variants: Variant, settings: Settings | None = None, **world: Any) -> Plan:
    fields: dict[str, Any] = {"nodes": (node("n1", 8), node("n2", 8)), "variants": variants} | world
    made, _ = plan(Snapshot(**fields), PlanningState(), settings or Settings())
    assert made.solver.status is not SolverStatus.FAILED, made.solver.message
    return made


def _granted(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


def test_a_quota_is_never_exceeded_and_is_named() -> None:
    """The namespace gets what its quota allows, and the sentence says which quota and how much."""
    made = _plan(
        _variant("a", size=2),
        loads=(_wants("llama", 4),),
        quotas=(Quota(name="gpus", namespace="llm", accelerators=5),),
    )

    decision = made.decisions[0]
    assert (decision.replicas, decision.reason, decision.bound_by) == (2, Reason.SHORTAGE, BoundBy.QUOTA)
    assert "quota llm/gpus allows 5 accelerators" in decision.message
    assert [(r.kind, r.text) for r in decision.reliefs] == [
        (ReliefKind.QUOTA, "quota llm/gpus raised to 6 accelerators")
    ]


def test_a_budget_is_never_exceeded_and_is_named() -> None:
    """Money runs out before accelerators do."""
    made = _plan(
        _variant("a", cost="12.5"),
        loads=(_wants("llama", 4),),
        budgets=(Budget(name="b", cost_per_hour=Decimal(30)),),
    )

    decision = made.decisions[0]
    assert (decision.replicas, decision.bound_by) == (2, BoundBy.BUDGET)
    assert "budget b allows 30 per hour" in decision.message
    assert made.cost == Decimal(25)


EXCEEDED = {
    "a quota": (
        {"quotas": (Quota(name="gpus", namespace="llm", accelerators=2),)},
        "quota llm/gpus of 2 accelerators",
        "4",
    ),
    "a budget": (
        {"budgets": (Budget(name="b", cost_per_hour=Decimal(20)),)},
        "budget b of 20 per hour",
        "10",
    ),
}


@pytest.mark.parametrize("name", EXCEEDED)
def test_a_limit_below_what_runs_takes_nothing_that_is_needed_and_starts_nothing(name: str) -> None:
    """The other model waits although it is more important, and by how much it is exceeded is said of both."""
    world, limit, excess = EXCEEDED[name]
    made = _plan(
        _variant("a", "n1", "n1", "n1", size=2, model_id="runs", priority=5),
        _variant("b", size=2, model_id="waits", priority=1),
        loads=(_wants("runs", 3), _wants("waits", 1)),
        **world,
    )

    assert _granted(made) == {"a": 3, "b": 0}
    told = f"what runs exceeds {limit} by {excess}: nothing new starts under it"
    assert {d.excess for d in made.decisions} == {(told,)}
    assert all(told in d.message for d in made.decisions)


def test_under_a_limit_below_what_runs_goes_what_is_not_needed() -> None:
    """Nothing else brings it back within the limit."""
    variants, quota = (
        _variant("a", "n1", "n1", "n1", size=2),
        Quota(name="q", namespace="llm", accelerators=1),
    )

    free = _plan(variants, loads=(_wants("llama", 1),))
    made = _plan(variants, loads=(_wants("llama", 1),), quotas=(quota,))

    assert _granted(made) == _granted(free)
    assert made.decisions[0].replicas < 3
    assert made.decisions[0].excess


def test_what_an_unlimited_cluster_would_need_respects_no_quota_and_no_budget() -> None:
    """Also if they concern one model only; a model's own ceiling stands."""
    limited = {
        "quotas": (Quota(name="gpus", namespace="llm", accelerators=5),),
        "budgets": (Budget(name="team", cost_per_hour=Decimal(25)),),
    }
    free = _plan(_variant("a", size=2), loads=(_wants("llama", 4),), **limited)
    capped = _plan(_variant("a", size=2, max_replicas=3), loads=(_wants("llama", 4),), **limited)

    assert (free.decisions[0].replicas, free.decisions[0].unconstrained_replicas) == (2, 4)
    assert (capped.decisions[0].replicas, capped.decisions[0].unconstrained_replicas) == (2, 3)


def test_a_replica_that_is_stated_to_serve_nothing_stops() -> None:
    """Only a user can state that; one whose capacity is not known stays."""
    nothing = capacity(0, source=CapacitySource.STATED)
    variants = (_variant("a", "n1", capacity=nothing), _variant("b"))

    assert _granted(_plan(*variants, loads=(_wants("llama", 2),))) == {"a": 0, "b": 2}
    assert _granted(_plan(_variant("a", "n1", serves=None), _variant("b"), loads=(_wants("llama", 2),))) == {
        "a": 1,
        "b": 2,
    }


def test_a_limit_between_what_is_granted_and_what_runs_is_told() -> None:
    """What is not needed goes, and nothing starts before it has gone; the sentence says what would help."""
    made = _plan(
        _variant("a", "n1", "n1", model_id="idle"),
        _variant("b", "n2", model_id="busy"),
        loads=(_wants("idle", 0), _wants("busy", 2)),
        budgets=(Budget(name="b", cost_per_hour=Decimal(25)),),
    )

    waits = made.decisions[1]
    told = "what runs exceeds budget b of 25 per hour by 5: nothing new starts under it"
    assert (_granted(made), made.cost) == ({"a": 0, "b": 1}, Decimal(10))
    assert (waits.bound_by, waits.excess) == (BoundBy.BUDGET, (told,))
    assert waits.message.endswith(f"; budget b raised to 40 per hour would help; {told}")


def test_a_strict_budget_is_kept_at_once() -> None:
    """Whoever runs has to go."""
    made = _plan(
        _variant("a", "n1", "n1", "n1", size=2),
        loads=(_wants("llama", 3),),
        budgets=(Budget(name="b", cost_per_hour=Decimal(10), is_strict=True),),
    )

    assert _granted(made) == {"a": 1}
    assert made.decisions[0].excess == ()


def test_a_model_has_a_ceiling_over_all_its_variants() -> None:
    """Two variants together stay within what the model may have."""
    made = _plan(
        _variant("a"), _variant("b", cost="11"), loads=(_wants("llama", 6),), models=(_rule(max_replicas=4),)
    )

    assert sum(_granted(made).values()) == 4
    assert made.decisions[0].bound_by is BoundBy.MAX_REPLICAS


def test_a_model_has_a_floor_over_all_its_variants() -> None:
    """Nothing is asked for, and yet three run, where it is cheapest."""
    made = _plan(
        _variant("a", cost="20"), _variant("b"), loads=(_wants("llama", 0),), models=(_rule(min_replicas=3),)
    )

    assert _granted(made) == {"a": 0, "b": 3}
    why = {decision.name: (decision.reason, decision.bound_by) for decision in made.decisions}
    assert why["b"] == (Reason.SCALE_UP, BoundBy.MIN_REPLICAS)
    assert "llama must keep 3 replicas" in made.decisions[1].message


def test_a_floor_that_is_not_met_is_a_shortage() -> None:
    """Whatever the load: what may not be fewer is needed."""
    made = _plan(
        _variant("a", size=8),
        _variant("b", size=8),
        loads=(_wants("llama", 0),),
        models=(_rule(min_replicas=3),),
    )

    assert sum(_granted(made).values()) == 2
    for decision in made.decisions:
        assert (decision.reason, decision.bound_by) == (Reason.SHORTAGE, BoundBy.ACCELERATORS)
        assert "llama must keep 3 replicas; no H100 node has 8 free" in decision.message


def test_a_replica_that_serves_nothing_is_said_to() -> None:
    """There is room for more of them, and nothing else would have it."""
    made = _plan(_variant("a", "n1", serves=0), loads=(_wants("llama", 1),))

    assert made.decisions[0].reason is Reason.SHORTAGE
    assert "a replica serves nothing" in made.decisions[0].message


@pytest.mark.parametrize(
    ("order", "granted", "says"),
    [
        ({"pinned_replicas": 3}, 3, "pinned to 3 replicas"),
        ({"pinned_replicas": 0}, 0, "pinned to 0 replicas"),
        ({"is_paused": True}, 1, "scaling is paused"),
    ],
    ids=["a pin to more", "a pin to nothing", "a pause"],
)
def test_what_a_person_ordered_stands(order: dict[str, Any], granted: int, says: str) -> None:
    """Whatever the demand; and the sentence says so."""
    made = _plan(_variant("a", "n1", **order), loads=(_wants("llama", 2),))

    decision = made.decisions[0]
    assert (decision.replicas, decision.bound_by) == (granted, BoundBy.ORDERED)
    assert says in decision.message


def test_a_pin_to_fewer_is_followed_whatever_is_known() -> None:
    """Nobody reports, so nothing would be scaled down; a person's word is another matter."""
    made = _plan(_variant("a", "n1", "n1", pinned_replicas=1))

    assert (_granted(made), made.decisions[0].bound_by) == ({"a": 1}, BoundBy.ORDERED)


@pytest.mark.parametrize(
    "order",
    [
        {"pinned_replicas": 0, "may_scale_to_zero": False},
        {"pinned_replicas": 1, "min_replicas": 2},
        {"is_paused": True, "min_replicas": 3},
        {"is_paused": True, "may_scale_to_zero": False, "current_replicas": 0, "replicas": ()},
    ],
    ids=[
        "a pin to nothing of what is to be kept warm",
        "a pin below the minimum",
        "a pause below it",
        "a pause at none",
    ],
)
def test_an_order_that_contradicts_a_bound_holds_up_nobody_else(order: dict[str, Any]) -> None:
    """The order stands, and the other model is planned as ever."""
    made = _plan(
        _variant("a", "n1", **order),
        _variant("other", model_id="other"),
        loads=(_wants("llama", 2), _wants("other", 3)),
    )

    assert _granted(made)["other"] == 3
    assert made.solver.status is SolverStatus.OPTIMAL


def test_young_replicas_do_not_go() -> None:
    """A load that went away leaves what has just been started until its time is up."""
    calm = _plan(_variant("a", "n1", "n1", "n2", held_replicas=2), loads=(_wants("llama", 0),))

    assert _granted(calm) == {"a": 2}


def test_a_protected_variant_gives_way_to_nobody() -> None:
    """A higher priority waits; without protection it would take the node."""
    low = {"size": 8, "model_id": "low", "priority": 50}
    high = _variant("high", size=8, model_id="high", priority=1)
    loads = (_wants("low", 2), _wants("high", 1))

    guarded = _plan(_variant("low", "n1", "n2", **low, may_be_preempted=False), high, loads=loads)
    open_to_all = _plan(_variant("low", "n1", "n2", **low), high, loads=loads)

    assert _granted(guarded) == {"low": 2, "high": 0}
    assert _granted(open_to_all) == {"low": 1, "high": 1}


def test_the_last_replica_stays_until_the_grace_is_over() -> None:
    """Zero demand is not yet zero replicas."""
    idle = (_wants("llama", 0),)
    within = _plan(_variant("a", "n1"), loads=idle, models=(_rule(idle_seconds=60.0, grace_seconds=600.0),))
    after = _plan(_variant("a", "n1"), loads=idle, models=(_rule(idle_seconds=900.0, grace_seconds=600.0),))

    assert (_granted(within), _granted(after)) == ({"a": 1}, {"a": 0})


def test_a_node_that_does_not_exist_yet_is_asked_for_at_its_price() -> None:
    """What is free is used first; what is missing is asked of the pool, and the plan says so."""
    pool = NodePool(
        name="burst",
        accelerator="H100",
        accelerators_per_node=8,
        price_per_node=Decimal(40),
        nodes_addable=3,
        lead_seconds=240,
    )
    made = _plan(_variant("a", size=8, max_replicas=9), loads=(_wants("llama", 4),), pools=(pool,))

    assert _granted(made) == {"a": 4}
    request = made.requests[0]
    assert (request.pool, request.nodes, request.price_per_hour, request.lead_seconds) == (
        "burst",
        2,
        Decimal(80),
        240,
    )
    assert request.pods == (("llm", "a", 2),)


def test_a_pool_that_cannot_grow_enough_leaves_a_shortage() -> None:
    """Its limit is kept."""
    pool = NodePool(
        name="burst", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(1), nodes_addable=1
    )
    made = _plan(_variant("a", size=8), loads=(_wants("llama", 5),), pools=(pool,))

    assert _granted(made) == {"a": 3}
    assert made.decisions[0].reason is Reason.SHORTAGE


def test_affinity_keeps_replicas_to_the_nodes_that_they_require() -> None:
    """One of the two nodes is in the zone."""
    zone = frozenset({("topology.kubernetes.io/zone", "b")})
    asked = ((NodeRequirement(key="topology.kubernetes.io/zone", operator="In", values=("b", "c")),),)
    made = _plan(
        _variant("a", size=8, node_affinity=asked),
        nodes=(node("n1", 8), node("n2", 8, labels=zone)),
        loads=(_wants("llama", 2),),
    )

    assert _granted(made) == {"a": 1}
    assert [place.node for place in made.placements] == ["n2"]


def test_who_goes_short_is_a_policy() -> None:
    """By value the large model is served and the small ones wait; by model it is the other way round."""
    large = _variant("large", size=8, cost="80", model_id="large")
    small = [_variant(f"small-{i}", size=4, cost="10", model_id=f"small-{i}") for i in range(2)]
    loads = (_wants("large", 1), *(_wants(f"small-{i}", 1) for i in range(2)))
    one_node = (node("n1", 8),)

    by_value = _plan(large, *small, nodes=one_node, loads=loads)
    by_model = _plan(
        large, *small, nodes=one_node, loads=loads, settings=Settings(unmet_unit=UnmetUnit.MODEL)
    )

    assert _granted(by_value) == {"large": 1, "small-0": 0, "small-1": 0}
    assert _granted(by_model) == {"large": 0, "small-0": 1, "small-1": 1}


def test_a_fragmented_cluster_is_recognised_and_brought_together_when_allowed() -> None:
    """Enough is free, on no node enough: the sentence says what would have to move; it moves if it may."""
    nodes = tuple(node(f"n{i}", 8) for i in range(9))
    small = _variant("small", *(f"n{i}" for i in range(9)), size=4, model_id="small", priority=1)
    large = _variant("large", size=8, model_id="large")
    loads = (_wants("small", 9), _wants("large", 1))

    told = _plan(small, large, nodes=nodes, loads=loads)
    allowed = _plan(small, large, nodes=nodes, loads=loads, settings=Settings(most_moves=4))

    decision = next(d for d in told.decisions if d.name == "large")
    assert (decision.replicas, decision.bound_by) == (0, BoundBy.NODE_SIZE)
    assert "moving 1 replica of others" in decision.message
    assert told.moves == ()
    assert [(move.name, move.replicas) for move in allowed.moves] == [("small", 1)]
