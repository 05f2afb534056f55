"""What holds of every rule of other autoscalers, whatever it is asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_problems import demand, problem, problems, terms
from support.campaign import often

from controller.config_planning import PlanningConfig
from controller.planning.columns.cohorts import levels_of
from controller.planning.settings import Fallback, Strategy
from controller.planning.strategies import PENDING, RULES, STRATEGIES
from controller.planning.strategies.contest import contenders
from controller.planning.strategies.granting import most
from controller.planning.strategies.view import view_of
from hack.bench.placement import engines

if TYPE_CHECKING:
    from controller.planning.problem import PlacementProblem


@pytest.mark.parametrize("name", STRATEGIES)
@given(world=problems())
@settings(max_examples=often(40), deadline=None)
def test_every_answer_is_a_possible_plan(name: str, world: PlacementProblem) -> None:
    """Bounds, limits, a node for each new replica, and no node fuller than it is large."""
    found = STRATEGIES[name](world)

    free = list(world.free)
    new = Counter[int]()
    gaining = set()
    for v, node, count in found.placements:
        assert any(node in bin_.nodes and v in bin_.variants for bin_ in world.bins)
        free[node] -= count * world.variants[v].accelerators
        new[v] += count
        gaining.add(node)
    for v, (variant, count) in enumerate(zip(world.variants, found.replicas, strict=True)):
        assert variant.lower <= count <= variant.upper
        leaving = max(0, len(variant.bound) - count)
        for host in (node for nodes in variant.bound[:leaving] for node in nodes):
            free[host] += variant.accelerators
        assert new[v] == (max(0, count - len(variant.bound)) if variant.accelerators else 0)
    assert all(free[node] >= 0 for node in gaining)
    for row in world.limits:
        assert sum(amount * found.replicas[v] for v, amount in row.terms) <= row.limit
    assert PENDING[name](world) >= 0


@pytest.mark.parametrize("name", STRATEGIES)
@given(world=problems(), data=st.data())
@settings(max_examples=often(40), deadline=None)
def test_the_order_of_the_models_does_not_matter(
    name: str, world: PlacementProblem, data: st.DataObject
) -> None:
    """What is equal goes by name, as the variants of a snapshot are sorted."""
    models = sorted({row.model for row in world.rows})
    blocks_ = [[v for v, t in enumerate(world.variants) if t.name.startswith(f"m{m}-")] for m in models]
    order = [v for m in data.draw(st.permutations(models)) for v in blocks_[m]]
    at = {v: index for index, v in enumerate(order)}
    shuffled = replace(
        world,
        variants=tuple(world.variants[v] for v in order),
        bins=tuple(
            replace(bin_, variants=tuple(sorted(at[v] for v in bin_.variants))) for bin_ in world.bins
        ),
        rows=tuple(
            replace(row, terms=tuple(sorted((at[v], amount) for v, amount in row.terms)))
            for row in world.rows
        ),
        limits=tuple(replace(row, terms=tuple((at[v], a) for v, a in row.terms)) for row in world.limits),
    )

    found = STRATEGIES[name](shuffled)

    assert tuple(found.replicas[at[v]] for v in range(len(order))) == STRATEGIES[name](world).replicas


@given(world=problems())
@settings(max_examples=often(40), deadline=None)
def test_nothing_more_is_granted_than_promised(world: PlacementProblem) -> None:
    """A rule is left by what it could get at most: by no variant does its plan have more."""
    view = view_of(world)
    for rule in RULES:
        asked, order = rule.asks(view), rule.order(view)
        promise = most(view, asked, order).replicas
        found = rule.place(world).replicas
        lower = (terms.lower for terms in world.variants)

        assert all(got <= may for got, may in zip(found, promise, strict=True))
        assert all(may <= max(least, n) for least, may, n in zip(lower, promise, asked, strict=True))


@given(world=problems(), data=st.data())
@settings(max_examples=often(40), deadline=None)
def test_only_rules_that_are_behind_are_left_out(world: PlacementProblem, data: st.DataObject) -> None:
    """Whatever the shortfalls to compare with: who is left out has more at the first level that differs."""
    levels = levels_of(world)
    plans = [place(world) for place in STRATEGIES.values()]
    shortfalls = [levels.values(world, made.replicas, made.added)[:-1] for made in plans]
    other = st.lists(st.integers(0, 1000), min_size=len(levels), max_size=len(levels))
    values = data.draw(st.sampled_from(shortfalls) | other)

    kept = list(contenders(world, levels.keys, values))

    assert all(made in kept for made, reached in zip(plans, shortfalls, strict=True) if reached <= values)
    assert all(made in plans for made in kept)


def test_who_can_only_be_behind_is_left_out() -> None:
    """Room for three of five: nobody serves everything, so nobody is compared with who would."""
    rows = [demand(0, 5, (0, 1))]
    scarce = problem([terms(1)], rows, ((3,), (0,)))
    keys = levels_of(scarce).keys

    assert list(contenders(scarce, keys, (0,))) == []
    assert [made.replicas for made in contenders(scarce, keys, (400,))] == [(3,)] * 3


def test_every_rule_can_be_chosen_fallen_back_on_and_compared() -> None:
    """Settings, the controller's configuration and the benchmark name the rules that there are, each once."""
    names = sorted(rule.name for rule in RULES)
    configured = get_type_hints(PlanningConfig)

    assert sorted({*Strategy} - {Strategy.OPTIMAL}) == names
    assert sorted({*Fallback} - {Fallback.HOLD}) == names
    assert sorted({*get_args(configured["strategy"])} - {"optimal"}) == names
    assert sorted({*get_args(configured["fallback"])} - {"hold"}) == names
    assert sorted(engines.STRATEGIES) == names
