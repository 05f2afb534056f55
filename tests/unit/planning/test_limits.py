"""Plans under quotas, budgets, ceilings, pins and pauses, and with nodes that could be added."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from support.planning_builders import capacity, load, node, variant

from controller.planning.cluster import Budget, NodePool, NodeRequirement, Quota
from controller.planning.decision import BoundBy, Plan, Reason, ReliefKind, SolverStatus
from controller.planning.inputs import Settings
from controller.planning.load import CapacitySource, ModelLoad
from controller.planning.plan import plan
from controller.planning.snapshot import PlannedModel, Snapshot, Variant

KNOWN = 10_000


def _variant(name: str, *hosts: str | None, **changes: Any) -> Variant:
    return variant(name, *hosts, **{"serves": KNOWN, "may_scale_to_zero": True} | changes)


def _wants(model: str, replicas: int) -> ModelLoad:
    """Return a load that requires some replicas of the capacity that all variants here have."""
    return load(replicas * KNOWN * 0.8, model)


def _model(**changes: Any) -> PlannedModel:
    """Return the model."""
    return PlannedModel(namespace="llm", model_id="llama", **changes)


def _plan(*variants: Variant, settings: Settings | None = None, **world: Any) -> Plan:
    fields: dict[str, Any] = {"nodes": (node("n1", 8), node("n2", 8)), "variants": variants} | world
    made = plan(Snapshot(**fields), settings or Settings())
    assert made.solver.status is not SolverStatus.FAILED, made.solver.message
    return made


def _granted(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


def test_a_quota_is_never_exceeded_and_is_named() -> None:
    """The message states which quota applies and how much it allows."""
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
    """The budget allows fewer replicas than the free accelerators would."""
    made = _plan(
        _variant("a", cost="12.5"),
        loads=(_wants("llama", 4),),
        budgets=(Budget(name="b", cost_per_hour=Decimal(30)),),
    )

    decision = made.decisions[0]
    assert (decision.replicas, decision.bound_by) == (2, BoundBy.BUDGET)
    assert "budget b allows 30 per hour" in decision.message
    assert made.cost == Decimal(25)


EXCEEDED: dict[str, tuple[dict[str, Any], str, str]] = {
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
def test_an_exceeded_limit_keeps_needed_replicas_and_starts_none(name: str) -> None:
    """The other model waits despite its higher priority, and both messages state the excess."""
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


def test_an_exceeded_limit_removes_only_replicas_that_are_not_needed() -> None:
    """The same replicas are removed as without the limit."""
    variants, quota = (
        _variant("a", "n1", "n1", "n1", size=2),
        Quota(name="q", namespace="llm", accelerators=1),
    )

    free = _plan(variants, loads=(_wants("llama", 1),))
    made = _plan(variants, loads=(_wants("llama", 1),), quotas=(quota,))

    assert _granted(made) == _granted(free)
    assert made.decisions[0].replicas < 3
    assert made.decisions[0].excess


def test_unconstrained_replicas_ignore_quotas_and_budgets() -> None:
    """This holds even if these affect one model only; the variant's own maxReplicas applies."""
    limited: dict[str, Any] = {
        "quotas": (Quota(name="gpus", namespace="llm", accelerators=5),),
        "budgets": (Budget(name="team", cost_per_hour=Decimal(25)),),
    }
    free = _plan(_variant("a", size=2), loads=(_wants("llama", 4),), **limited)
    capped = _plan(_variant("a", size=2, max_replicas=3), loads=(_wants("llama", 4),), **limited)

    assert (free.decisions[0].replicas, free.decisions[0].unconstrained_replicas) == (2, 4)
    assert (capped.decisions[0].replicas, capped.decisions[0].unconstrained_replicas) == (2, 3)


def test_a_replica_with_a_stated_capacity_of_zero_stops() -> None:
    """Only a user can state that; a replica with unknown capacity stays."""
    nothing = capacity(0, source=CapacitySource.STATED)
    variants = (_variant("a", "n1", capacity=nothing), _variant("b"))

    assert _granted(_plan(*variants, loads=(_wants("llama", 2),))) == {"a": 0, "b": 2}
    assert _granted(_plan(_variant("a", "n1", serves=None), _variant("b"), loads=(_wants("llama", 2),))) == {
        "a": 1,
        "b": 2,
    }


def test_a_limit_between_granted_and_current_replicas_is_reported() -> None:
    """Unneeded replicas have to leave before one can start; the message states what would help."""
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


def test_a_strict_budget_is_enforced_at_once() -> None:
    """Running replicas beyond it are removed even if they are needed."""
    made = _plan(
        _variant("a", "n1", "n1", "n1", size=2),
        loads=(_wants("llama", 3),),
        budgets=(Budget(name="b", cost_per_hour=Decimal(10), is_strict=True),),
    )

    assert _granted(made) == {"a": 1}
    assert made.decisions[0].excess == ()


def test_a_model_has_a_ceiling_over_all_its_variants() -> None:
    """The two variants together stay within the maximum of their model."""
    made = _plan(
        _variant("a"), _variant("b", cost="11"), loads=(_wants("llama", 6),), models=(_model(max_replicas=4),)
    )

    assert sum(_granted(made).values()) == 4
    assert made.decisions[0].bound_by is BoundBy.MAX_REPLICAS


def test_a_model_has_a_floor_over_all_its_variants() -> None:
    """Three replicas of the cheapest variant run without any demand."""
    made = _plan(
        _variant("a", cost="20"), _variant("b"), loads=(_wants("llama", 0),), models=(_model(min_replicas=3),)
    )

    assert _granted(made) == {"a": 0, "b": 3}
    why = {decision.name: (decision.reason, decision.bound_by) for decision in made.decisions}
    assert why["b"] == (Reason.SCALE_UP, BoundBy.MIN_REPLICAS)
    assert "llama must keep 3 replicas" in made.decisions[1].message


def test_a_floor_that_is_not_met_is_a_shortage() -> None:
    """The minimum is needed whatever the load is."""
    made = _plan(
        _variant("a", size=8),
        _variant("b", size=8),
        loads=(_wants("llama", 0),),
        models=(_model(min_replicas=3),),
    )

    assert sum(_granted(made).values()) == 2
    for decision in made.decisions:
        assert (decision.reason, decision.bound_by) == (Reason.SHORTAGE, BoundBy.ACCELERATORS)
        assert "llama must keep 3 replicas; no H100 node has 8 free" in decision.message


def test_the_message_states_that_a_replica_serves_nothing() -> None:
    """More replicas would have room, so room is not the reason."""
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
    ids=["pinned to more", "pinned to zero", "paused at the current number"],
)
def test_pins_and_pauses_override_demand(order: dict[str, Any], granted: int, says: str) -> None:
    """The message states the pin or the pause."""
    made = _plan(_variant("a", "n1", **order), loads=(_wants("llama", 2),))

    decision = made.decisions[0]
    assert (decision.replicas, decision.bound_by) == (granted, BoundBy.ORDERED)
    assert says in decision.message


def test_a_pin_to_fewer_replicas_applies_without_data() -> None:
    """No engine reports, which otherwise prevents scaling down."""
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
        "pinned to zero without scale to zero",
        "pinned below minReplicas",
        "paused below minReplicas",
        "paused at zero without scale to zero",
    ],
)
def test_a_pin_or_pause_that_contradicts_a_bound_does_not_affect_other_models(order: dict[str, Any]) -> None:
    """The plan is still optimal, and the other model gets all its replicas."""
    made = _plan(
        _variant("a", "n1", **order),
        _variant("other", model_id="other"),
        loads=(_wants("llama", 2), _wants("other", 3)),
    )

    assert _granted(made)["other"] == 3
    assert made.solver.status is SolverStatus.OPTIMAL


def test_a_protected_variant_is_not_preempted() -> None:
    """A higher priority waits; without the protection it would get the node."""
    low = {"size": 8, "model_id": "low", "priority": 50}
    high = _variant("high", size=8, model_id="high", priority=1)
    loads = (_wants("low", 2), _wants("high", 1))

    guarded = _plan(_variant("low", "n1", "n2", **low, may_be_preempted=False), high, loads=loads)
    open_to_all = _plan(_variant("low", "n1", "n2", **low), high, loads=loads)

    assert _granted(guarded) == {"low": 2, "high": 0}
    assert _granted(open_to_all) == {"low": 1, "high": 1}


def test_the_last_replica_stays_until_the_grace_period_is_over() -> None:
    """It is removed when the model has been idle for longer."""
    idle = (_wants("llama", 0),)
    within = _plan(_variant("a", "n1"), loads=idle, models=(_model(idle_seconds=60.0, grace_seconds=600.0),))
    after = _plan(_variant("a", "n1"), loads=idle, models=(_model(idle_seconds=900.0, grace_seconds=600.0),))

    assert (_granted(within), _granted(after)) == ({"a": 1}, {"a": 0})


def test_missing_nodes_are_requested_from_a_pool_at_their_price() -> None:
    """Free nodes are used first, and the plan states what it requests from the pool."""
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
    """No more nodes are requested than can be added."""
    pool = NodePool(
        name="burst", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(1), nodes_addable=1
    )
    made = _plan(_variant("a", size=8), loads=(_wants("llama", 5),), pools=(pool,))

    assert _granted(made) == {"a": 3}
    assert made.decisions[0].reason is Reason.SHORTAGE


def test_node_affinity_restricts_replicas_to_matching_nodes() -> None:
    """Only one of the two nodes is in a required zone."""
    zone = frozenset({("topology.kubernetes.io/zone", "b")})
    asked = ((NodeRequirement(key="topology.kubernetes.io/zone", operator="In", values=("b", "c")),),)
    made = _plan(
        _variant("a", size=8, node_affinity=asked),
        nodes=(node("n1", 8), node("n2", 8, labels=zone)),
        loads=(_wants("llama", 2),),
    )

    assert _granted(made) == {"a": 1}
    assert [place.node for place in made.placements] == ["n2"]


def test_a_shortage_is_where_it_costs_least_to_serve() -> None:
    """The sum of missing shares is minimized, each by the cost of serving the model."""
    large = _variant("large", size=8, cost="80", model_id="large")
    small = [_variant(f"small-{i}", size=4, cost="10", model_id=f"small-{i}") for i in range(2)]
    loads = (_wants("large", 1), *(_wants(f"small-{i}", 1) for i in range(2)))

    made = _plan(large, *small, nodes=(node("n1", 8),), loads=loads)

    assert _granted(made) == {"large": 1, "small-0": 0, "small-1": 0}


def test_fragmentation_is_reported_and_resolved_if_moves_are_allowed() -> None:
    """Enough is free, but on no single node: the message states the move, and the plan has it if allowed."""
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
