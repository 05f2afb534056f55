"""Optimality of placements, checked against brute force on small random clusters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.planning_builders import EFFORT, capacity, demand, node, variant, world
from support.small_problems import rank

from controller.planning import engine
from controller.planning.formulation import formulate
from controller.planning.inputs import Settings
from controller.planning.load import Signal
from controller.planning.problem import PlacementProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.cluster import Node
    from controller.planning.demand import ModelDemand
    from controller.planning.snapshot import Variant

TYPES = ("H100", "L40S")
CAPACITIES = (None, *(capacity(rate) for rate in (0, 60, 60, 100, 100, 130, 130)))
"""Capacities of variants: unknown (None), zero (no replica can meet its targets), or positive."""

SIGNALS = (Signal.FRESH, Signal.FRESH, Signal.FRESH, Signal.QUORUM, Signal.HELD, Signal.UNKNOWN)


@st.composite
def _nodes(draw: st.DrawFn) -> list[Node]:
    return [
        node(
            f"n{i}",
            draw(st.sampled_from((2, 4, 8))),
            accelerator=draw(st.sampled_from(TYPES)),
            used=draw(st.integers(0, 3)),
            schedulable=draw(st.sampled_from((True, True, True, False))),
        )
        for i in range(draw(st.integers(1, 3)))
    ]


@st.composite
def _variants(draw: st.DrawFn, model: str, hosts: Sequence[str]) -> list[Variant]:
    return [
        variant(
            f"{model}-{j}",
            *sorted(
                draw(st.lists(st.sampled_from((None, *hosts)), max_size=2)), key=lambda host: host is not None
            ),
            size=draw(st.sampled_from((1, 2, 3, 4))),
            cost=draw(st.sampled_from(("1", "2.5", "3"))),
            accelerator=draw(st.sampled_from(TYPES)),
            model_id=model,
            min_replicas=draw(st.sampled_from((0, 0, 1))),
            max_replicas=draw(st.integers(1, 3)),
            capacity=draw(st.sampled_from(CAPACITIES)),
            start_seconds=draw(st.sampled_from((0.0, 60.0, 300.0))),
        )
        for j in range(draw(st.integers(1, 2)))
    ]


@st.composite
def _demands(draw: st.DrawFn, hosts: Sequence[str]) -> list[ModelDemand]:
    demands = []
    for model in ("x", "y")[: draw(st.integers(1, 2))]:
        variants = draw(_variants(model, hosts))
        lower = draw(st.integers(0, 400))
        spare = draw(st.none() | st.integers(0, 100))
        demands.append(
            demand(
                *variants,
                lower=lower,
                upper_rate=None if spare is None else lower + spare,
                model_id=model,
                priority=draw(st.sampled_from((1, 10))),
                may_scale_to_zero=draw(st.booleans()),
                anticipated_rate=draw(st.integers(0, 500)),
                supply_rate=draw(st.integers(0, 200)),
                signal=draw(st.sampled_from(SIGNALS)),
            )
        )
    return demands


@st.composite
def _worlds(draw: st.DrawFn) -> tuple[list[Node], list[Variant], PlacementProblem]:
    nodes = draw(_nodes())
    demands = draw(_demands([n.name for n in nodes]))
    variants = [v for d in demands for v in d.variants]
    return nodes, variants, formulate(world(nodes, demands), demands, settings=Settings())


def _has_room(nodes: Sequence[Node], variants: Sequence[Variant], replicas: Sequence[int]) -> bool:
    """Return whether every replica fits on a node, by trying all assignments."""
    free = [n.accelerators_allocatable - n.accelerators_used_by_others for n in nodes]
    new: list[tuple[int, str]] = []
    for asker, count in zip(variants, replicas, strict=True):
        hosts = [r.node for r in asker.replicas if r.node]
        for host in hosts[max(0, len(hosts) - count) :]:
            free[[n.name for n in nodes].index(host)] -= asker.accelerators_per_replica
        new += [(asker.accelerators_per_replica, asker.accelerator)] * max(0, count - len(hosts))

    @cache
    def fits(left: tuple[tuple[int, str], ...], room: tuple[int, ...]) -> bool:
        if not left:
            return True
        size, accelerator = left[0]
        return any(
            fits(left[1:], (*room[:i], room[i] - size, *room[i + 1 :]))
            for i, place in enumerate(nodes)
            if place.schedulable and place.accelerator == accelerator and room[i] >= size
        )

    return fits(tuple(sorted(new, reverse=True)), tuple(free))


@given(world=_worlds(), effort=st.sampled_from((1e-5, 1e-4, 1e-3)))
@settings(max_examples=often(50), deadline=None)
def test_placements_are_optimal_on_small_clusters(
    world: tuple[list[Node], list[Variant], PlacementProblem], effort: float
) -> None:
    """The solution is feasible, and no other one is better; an interrupted search keeps what runs."""
    nodes, variants, problem = world

    solution = engine.place(problem, effort=EFFORT)
    hurried = engine.place(problem, effort=replace(EFFORT, deterministic_seconds=effort))

    ranges = [range(terms.lower, terms.upper + 1) for terms in problem.variants]
    possible = {x: rank(problem, x, ()) for x in product(*ranges) if _has_room(nodes, variants, x)}
    assert solution.unproven is None
    assert possible[solution.replicas] == min(possible.values())
    assert [proof.value for proof in hurried.proofs] == possible[hurried.replicas]
    stays = tuple(min(terms.upper, len(terms.bound_replicas)) for terms in problem.variants)
    assert stays not in possible or possible[hurried.replicas] <= possible[stays]


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

    hurried = engine.place(problem, effort=replace(EFFORT, deterministic_seconds=1e-5))

    assert rank(problem, hurried.replicas, ()) <= rank(problem, (0, 1, 2), ())
