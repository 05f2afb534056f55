"""Joint decisions over all models, on cases that can be checked by hand, and the weights of their demand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.planning_builders import EFFORT, capacity, demand, load, node, variant, world
from support.small_problems import rank

from controller.planning.demand import model_demands
from controller.planning.engine import place
from controller.planning.formulation import formulate
from controller.planning.inputs import Settings
from controller.planning.load import Signal
from controller.planning.problem import NumbersTooLargeError, Stage
from controller.planning.snapshot import Snapshot, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.cluster import Node
    from controller.planning.demand import ModelDemand


def _place(
    nodes: Sequence[Node],
    demands: Sequence[ModelDemand],
    rates: dict[str, int] | None = None,
    settings: Settings | None = None,
) -> dict[str, int]:
    """Return the replicas per variant; a replica serves a rate of 100 unless given."""
    equipped = [
        replace(
            item,
            variants=tuple(
                replace(v, capacity=capacity((rates or {}).get(v.name, 100))) for v in item.variants
            ),
        )
        for item in demands
    ]
    problem = formulate(world(nodes, equipped), equipped, settings=settings or Settings())
    solution = place(problem, effort=EFFORT)
    unproven = solution.unproven
    assert unproven is None or unproven.gap < 1e-9  # bounds are sums in double precision
    variants = [v for item in equipped for v in item.variants]
    return {v.name: count for v, count in zip(variants, solution.replicas, strict=True)}


def _ask(*variants: Variant, lower: int, **changes: Any) -> ModelDemand:
    """Return the demand of a model of the name of its first variant."""
    model = variants[0].name
    return demand(*(replace(v, model_id=model) for v in variants), lower=lower, model_id=model, **changes)


def _h100(*free: int, **changes: Any) -> list[Node]:
    """Return nodes with these numbers of free accelerators."""
    return [node(f"n{i}", room, **changes) for i, room in enumerate(free)]


def _l40s(*free: int) -> list[Node]:
    return [node(f"l{i}", room, accelerator="L40S") for i, room in enumerate(free)]


BIG = _ask(variant("big", size=8), lower=200)
CHAT = _ask(variant("chat"), lower=200, priority=1)
DEAR, CHEAP = variant("dear", "n0", cost="10"), variant("cheap", cost="2")

PLACED: dict[str, tuple[list[Node], list[ModelDemand], dict[str, int]]] = {
    "2 free on each of four nodes are no room for 8": (_h100(8, 8, 8, 8, used=6), [BIG], {"big": 0}),
    "8 free on one of two nodes are room for 8": (
        [node("n0", 8, used=1), node("n1", 8)],
        [BIG],
        {"big": 1},
    ),
    "16 free on one node are room for two of 8": (_h100(16), [BIG], {"big": 2}),
    "8 free on a cordoned node are no room": (_h100(8, schedulable=False), [BIG], {"big": 0}),
    "8 free of another type are no room": (_h100(8, accelerator="A100"), [BIG], {"big": 0}),
    "without accelerators there is always room": ([], [_ask(variant("cpu", size=0), lower=300)], {"cpu": 3}),
    # One model can move to the other type at little cost, the other one cannot.
    "the model with the cheaper substitute leaves scarce accelerators to the other": (
        [*_h100(1), *_l40s(4)],
        [
            _ask(variant("b", cost="10"), variant("b-l", cost="90", accelerator="L40S", size=4), lower=100),
            _ask(variant("m", cost="10"), variant("m-l", cost="11", accelerator="L40S"), lower=100),
        ],
        {"b": 1, "b-l": 0, "m": 0, "m-l": 1},
    ),
    **{
        f"of {free} accelerators the higher priority gets {chat}": (
            _h100(free),
            [_ask(variant("batch", "n0", "n0", "n0"), lower=300, priority=50), CHAT],
            {"batch": batch, "chat": chat},
        )
        for free, batch, chat in ((5, 3, 2), (4, 2, 2), (2, 0, 2), (1, 0, 1))
    },
    # The autoscaler keeps minReplicas anyway, so the plan does not count on their accelerators.
    "minimum replicas come before all demand": (
        _h100(2),
        [CHAT, _ask(variant("low", "n0", min_replicas=1), lower=0)],
        {"chat": 1, "low": 1},
    ),
    "the last replica of a model is of its cheapest variant": (
        _h100(8),
        [_ask(variant("a", "n0", cost="9"), variant("b", cost="3"), lower=0, may_scale_to_zero=False)],
        {"a": 0, "b": 1},
    ),
    "without demand no replica stays of a model that may scale to zero": (
        _h100(8),
        [_ask(variant("a", "n0", cost="9"), variant("b", cost="3"), lower=0)],
        {"a": 0, "b": 0},
    ),
    # The low priority loses only its first two pods in removal order, which free all of n0.
    "removal frees the nodes that the ReplicaSet controller empties": (
        [node("n0", 8), node("n1", 8, used=4)],
        [replace(BIG, priority=1), _ask(variant("low", "n0", "n0", "n1", size=4), lower=300)],
        {"big": 1, "low": 1},
    ),
    # Another workload holds 4 of each node, so a replica of 8 never fits.
    "nothing is preempted if that frees no whole node": (
        _h100(8, 8, used=4),
        [replace(BIG, priority=1), _ask(variant("low", "n0", "n1", size=4), lower=200)],
        {"big": 0, "low": 2},
    ),
    # A pending pod may never be bound, so the other variant is used.
    "a pending replica needs a place": (
        _h100(4),
        [_ask(variant("a", None, size=8, cost="1"), variant("b", size=4, cost="9"), lower=100)],
        {"a": 0, "b": 1},
    ),
    # Its pods request more accelerators than it has, for instance after a device failed.
    "an overcommitted node keeps its pods and gets no new ones": (
        _h100(6),
        [_ask(variant("a", "n0", "n0", size=4), lower=200, priority=1), _ask(variant("b"), lower=100)],
        {"a": 2, "b": 0},
    ),
    "a replica on an unknown node stays and frees nothing": (
        [],
        [_ask(variant("a", "gone"), lower=100), _ask(variant("b"), lower=100, priority=1)],
        {"a": 1, "b": 0},
    ),
    "a ready replica stays until the cheaper one that replaces it is ready": (
        _h100(2),
        [_ask(DEAR, CHEAP, lower=100, anticipated_rate=100, supply_rate=100)],
        {"dear": 1, "cheap": 0},
    ),
    "a ready replica is removed once the cheaper one that replaces it is ready": (
        _h100(2),
        [_ask(DEAR, variant("cheap", "n0", cost="2"), lower=100, anticipated_rate=200, supply_rate=200)],
        {"dear": 0, "cheap": 1},
    ),
    **{
        f"replicas of a model whose signal is {signal} are kept, whatever others need": (
            _h100(3),
            [CHAT, _ask(variant("dark", "n0", "n0"), lower=0, signal=signal)],
            {"chat": 1, "dark": 2},
        )
        for signal in (Signal.HELD, Signal.UNKNOWN)
    },
    "maximum replicas bind even without data": (
        _h100(3),
        [_ask(variant("dark", "n0", "n0", max_replicas=1), lower=0, signal=Signal.UNKNOWN)],
        {"dark": 1},
    ),
    # Two nodes of 8 hold four replicas of 3 and then two of 2, though 16 would be enough for five of 3.
    "sizes that do not divide each other are packed on each node": (
        _h100(8, 8),
        [_ask(variant("a", size=3), lower=500, priority=1), _ask(variant("b", size=2), lower=300)],
        {"a": 4, "b": 2},
    ),
    # Costs beyond a million count as a million.
    "a huge cost does not hide differences of other costs": (
        _h100(8),
        [
            _ask(variant("a", cost="999999999"), lower=100),
            _ask(variant("b", cost="1.0001"), variant("c", cost="1.0002"), lower=100),
        ],
        {"a": 1, "b": 1, "c": 0},
    ),
}


@pytest.mark.parametrize(("nodes", "demands", "want"), PLACED.values(), ids=PLACED)
def test_the_optimum_is_the_one_found_by_hand(
    nodes: list[Node], demands: list[ModelDemand], want: dict[str, int]
) -> None:
    """A replica serves a rate of 100."""
    assert _place(nodes, demands) == want


def test_the_cheapest_cover_is_chosen_over_the_best_ratio() -> None:
    """For a rate of 100: 200 for 10 has the better ratio, but 100 for 6 is cheaper."""
    a, b = variant("a", cost="10"), variant("b", cost="6")

    assert _place(_h100(8), [demand(a, b, lower=100)], {"a": 200, "b": 100}) == {"a": 0, "b": 1}


def test_a_mix_is_cheaper_than_rounding_either_variant_alone() -> None:
    """100 req/s on at most 3 H100 (26.8955 each, cost 100) and L40S (2.0141, cost 32): 3 + 10 cost 620."""
    h100 = variant("h100", cost="100", max_replicas=3)
    l40s = variant("l40s", cost="32", accelerator="L40S")
    rates = {"h100": 26_895_500, "l40s": 2_014_100}
    nodes = [*_h100(8), *_l40s(*[8] * 8)]

    assert _place(nodes, [demand(h100, l40s, lower=100_000_000)], rates) == {"h100": 3, "l40s": 10}


@pytest.mark.parametrize(
    ("cost", "start_seconds", "standing_seconds", "want"),
    [
        pytest.param("9.5", 60, 600, {"a": 1, "b": 0}, id="9.5 plus a tenth for the start: not worth it"),
        pytest.param(
            "9.5", 60, 3600, {"a": 0, "b": 1}, id="9.5 plus a sixtieth, as the mix stands longer: worth it"
        ),
        pytest.param("7", 60, 600, {"a": 0, "b": 1}, id="7 plus a tenth: worth it"),
        pytest.param("7", 300, 600, {"a": 1, "b": 0}, id="7 plus a half, as the start is slow: not worth it"),
    ],
)
def test_a_replacement_has_to_be_worth_its_start(
    cost: str, start_seconds: float, standing_seconds: float, want: dict[str, int]
) -> None:
    """The variant that was asked for costs 10; a start costs the share of the standing time that it takes."""
    asked = variant("a", None, cost="10")
    other = variant("b", cost=cost, start_seconds=start_seconds)
    settings = Settings(standing_seconds=standing_seconds)

    assert _place([node("n", 2)], [demand(asked, other, lower=100)], settings=settings) == want


def test_numbers_too_large_for_exact_sums_are_rejected() -> None:
    """A sum beyond 2^53 would be rounded silently; the error names the variant."""
    absurd = variant("a", cost="1000000", max_replicas=900_000, current_replicas=900_000)

    with pytest.raises(NumbersTooLargeError, match="llm/a: the cost of up to 10000 replicas is too large"):
        _place([], [demand(absurd, lower=100)])


def test_a_huge_demand_is_counted_in_coarser_units() -> None:
    """Sums stay exact for a million requests per second."""
    assert _place([node("n", 8)], [demand(variant("a"), lower=10**12)], {"a": 2 * 10**11}) == {"a": 5}


FULL = 0.85
"""The maximum utilization: a load of this share of a replica's capacity requires exactly one replica."""

WEIGHED: dict[str, tuple[tuple[tuple[float, str], ...], tuple[int, ...]]] = {
    "the number of required replicas times their cost": (((100.0, "10"), (400.0, "10")), (250, 1000)),
    "the cost per replica": (((100.0, "40"), (100.0, "10")), (1000, 250)),
    "at least a quarter of the mean for a small model": (((1.0, "10"), (900.0, "10")), (125, 1000)),
}
"""(requirement in replicas of capacity 1, cost) of each model, and the weights."""


def _weights(models: tuple[tuple[float, str], ...]) -> tuple[int, ...]:
    variants: list[Variant] = []
    loads = []
    for index, (needed, cost) in enumerate(models):
        name = f"m{index}"
        variants.append(variant(name, serves=1000, cost=cost, model_id=name))
        loads.append(load(needed * 1000 * FULL, name))
    snapshot = Snapshot(nodes=(node("n", 8),), variants=tuple(variants), loads=tuple(loads))
    problem = formulate(snapshot, model_demands(snapshot), settings=Settings())
    return tuple(row.weight for row in problem.rows if row.stage is Stage.DEMAND)


@pytest.mark.parametrize(("models", "want"), WEIGHED.values(), ids=WEIGHED)
def test_the_weight_by_value_is_the_cost_of_serving_a_model(
    models: tuple[tuple[float, str], ...], want: tuple[int, ...]
) -> None:
    """Weights are in thousandths of the most valuable model of the same priority."""
    assert _weights(models) == want


def test_an_interrupted_search_is_no_worse_even_if_a_model_needs_its_first_replica() -> None:
    """Model x needs its first replica, and the demand of model y needs both of its running replicas."""
    nodes = [node("n0", 2), node("n1", 2)]
    x = variant("x", model_id="x", max_replicas=1, serves=60)
    y = [
        variant("y-0", None, model_id="y", max_replicas=1, serves=60),
        variant("y-1", "n0", "n1", model_id="y", max_replicas=2, serves=60),
    ]
    demands = [
        demand(x, lower=0, model_id="x", may_scale_to_zero=False),
        demand(*y, lower=0, model_id="y", may_scale_to_zero=False, upper=61, supply_rate=61),
    ]
    problem = formulate(world(nodes, demands), demands, settings=Settings())

    hurried = place(problem, effort=replace(EFFORT, deterministic_seconds=1e-5))

    assert rank(problem, hurried.replicas, ()) <= rank(problem, (0, 1, 2), ())
