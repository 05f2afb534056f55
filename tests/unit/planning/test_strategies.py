"""Other autoscalers' rules: their own worked examples, and that every answer is a possible plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, get_args, get_type_hints

import pytest
from campaign import often
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config_planning import PlanningConfig
from controller.planning.columns.cohorts import levels_of
from controller.planning.problem import (
    Bin,
    CoverRow,
    LimitRow,
    PlacementProblem,
    Solution,
    Stage,
    VariantTerms,
)
from controller.planning.settings import Fallback, Strategy
from controller.planning.strategies import COUNTS, PENDING, RULES, STRATEGIES, kthena_expansion
from controller.planning.strategies.contest import contenders
from controller.planning.strategies.granting import most
from controller.planning.strategies.kthena_expansion import blocks
from controller.planning.strategies.view import view_of
from hack.bench.placement import engines

if TYPE_CHECKING:
    from collections.abc import Sequence

PLENTY = 10_000
MANY = 1000


def terms(cost: int, *, current: int = 0, size: int = 1, upper: int = MANY, name: str = "v") -> VariantTerms:
    """Return a variant whose replicas, if it has any, have no node."""
    return VariantTerms(
        name=name,
        accelerators=size,
        cost=cost,
        start_price=0,
        stop_price=0,
        current=current,
        bound=(),
        ready=current,
        lower=0,
        upper=upper,
    )


def demand(model: int, requirement: int, *amounts: tuple[int, int], priority: int = 1) -> CoverRow:
    """Return a required capacity."""
    return CoverRow(
        name=f"m{model}",
        stage=Stage.DEMAND,
        priority=priority,
        model=model,
        requirement=requirement,
        terms=amounts,
    )


def warm(model: int, *variants: int) -> CoverRow:
    """Return that a model may not scale to zero."""
    return CoverRow(
        name=f"m{model}",
        stage=Stage.MINIMUM,
        priority=1,
        model=model,
        requirement=1,
        terms=tuple((v, 1) for v in variants),
    )


def problem(
    variants: Sequence[VariantTerms],
    rows: Sequence[CoverRow],
    *pools: tuple[tuple[int, ...], tuple[int, ...]],
    limits: Sequence[LimitRow] = (),
) -> PlacementProblem:
    """Return a problem with pools of nodes: (free accelerators of each, the variants that may use them)."""
    free: list[int] = []
    bins = []
    for room, users in pools:
        sizes = tuple(sorted({variants[v].accelerators for v in users}))
        bins.append(Bin(nodes=tuple(range(len(free), len(free) + len(room))), sizes=sizes, variants=users))
        free += room
    named = tuple(replace(variant, name=f"v{index:02}") for index, variant in enumerate(variants))
    return PlacementProblem(
        variants=named, free=tuple(free), bins=tuple(bins), rows=tuple(rows), limits=tuple(limits)
    )


CHEAP_AND_DEAR = {
    "5000 more go to the best cost per capacity": ((2, 10_000), (1, 20_000), 45_000, (3, 1)),
    "25000 more need three": ((1, 10_000), (0, 20_000), 35_000, (4, 0)),
    "30000 to spare: the dear one goes, the cheap one is the last": ((1, 10_000), (1, 20_000), 0, (1, 0)),
    "15000 to spare are less than a dear one": ((1, 10_000), (1, 20_000), 15_000, (0, 1)),
}


@pytest.mark.parametrize(
    ("cheap", "dear", "requirement", "want"), CHEAP_AND_DEAR.values(), ids=CHEAP_AND_DEAR.keys()
)
def test_cost_aware_decides_as_its_own_examples(
    cheap: tuple[int, int], dear: tuple[int, int], requirement: int, want: tuple[int, int]
) -> None:
    """Costs 5 and 15; (replicas now, capacity of one)."""
    variants = [terms(5, current=cheap[0]), terms(15, current=dear[0])]
    rows = [warm(0, 0, 1)]
    rows += [demand(0, requirement, (0, cheap[1]), (1, dear[1]))] if requirement else []

    asked = COUNTS["wva-cost-aware"](problem(variants, rows, ((PLENTY,), (0, 1))))

    assert asked == want


def test_cost_aware_takes_whole_replicas_from_the_dearest_on() -> None:
    """Of 50000 to spare two at 15 give 40000, none at 10 fits into the rest, one at 5 does."""
    variants = [terms(5, current=2), terms(10, current=1), terms(15, current=3)]
    amounts = ((0, 10_000), (1, 15_000), (2, 20_000))

    asked = COUNTS["wva-cost-aware"](problem(variants, [demand(0, 45_000, *amounts)], ((PLENTY,), (0, 1, 2))))

    assert asked == (1, 1, 1)


LIMITED = {
    "two more of 2 on 8, of which 4 are used": (8, [(10, 2, 4)], [4]),
    "6 free are enough for three, one more each": (12, [(10, 1, 2), (15, 1, 2), (20, 1, 2)], [2, 2, 2]),
    "3 free are one more, and one is left over": (5, [(10, 1, 3)], [2]),
    "equal need: the cheaper first": (6, [(20, 1, 2), (5, 1, 2)], [1, 2]),
}


@pytest.mark.parametrize(("accelerators", "decisions", "want"), LIMITED.values(), ids=LIMITED.keys())
def test_the_limiter_grants_as_its_own_examples(
    accelerators: int, decisions: list[tuple[int, int, int]], want: list[int]
) -> None:
    """Two accelerators a replica; (cost, replicas now, replicas needed) of one model each."""
    variants = [terms(cost, current=now, size=2) for cost, now, _ in decisions]
    rows = [demand(i, needed, (i, 1)) for i, (_, _, needed) in enumerate(decisions)]

    asked = COUNTS["wva-cost-aware"](problem(variants, rows, ((accelerators,), tuple(range(len(variants))))))

    assert list(asked) == want


def test_the_limiter_serves_whoever_has_least_first() -> None:
    """A model that serves a tenth of its demand comes before one that serves half, whatever they cost."""
    variants = [terms(1, current=1), terms(9, current=1)]
    rows = [demand(0, 2, (0, 1)), demand(1, 10, (1, 1))]

    assert COUNTS["wva-cost-aware"](problem(variants, rows, ((9,), (0, 1)))) == (1, 8)


def test_not_to_know_is_no_reason_to_scale_down() -> None:
    """A demand that no variant is known to serve keeps what runs, and starts nothing."""
    rows = [demand(0, 5), warm(0, 0)]

    for now, want in ((3, (3,)), (0, (1,))):
        unknown = problem([terms(1, current=now)], rows, ((9,), (0,)))
        assert COUNTS["wva-cost-aware"](unknown) == want


def test_greedy_takes_the_cheaper_whole_and_not_the_better_ratio() -> None:
    """For 100: one of 200 for 10, or one of 100 for 6."""
    rows = [demand(0, 100, (0, 200), (1, 100))]

    assert COUNTS["wva-greedy"](problem([terms(10), terms(6)], rows, ((8,), (0, 1)))) == (0, 1)


def test_greedy_never_mixes() -> None:
    """3 + 10 would cost 620; at most three H100 are not enough alone, so it pays 50 L40S."""
    variants = [terms(100, upper=3), terms(32)]
    rows = [demand(0, 1_000_000, (0, 268_955), (1, 20_141))]

    assert COUNTS["wva-greedy"](problem(variants, rows, ((8,), (0,)), ((64,), (1,)))) == (0, 50)
    assert COUNTS["wva-greedy"](problem([terms(100), terms(32)], rows, ((8,), (0,)), ((64,), (1,)))) == (4, 0)


def test_greedy_serves_the_larger_regret_first_within_a_priority() -> None:
    """The second choice of the first model costs 12 instead of 10, that of the second one 40."""
    variants = [terms(10), terms(12), terms(10), terms(40)]
    rows = [demand(0, 1, (0, 1), (1, 1)), demand(1, 1, (2, 1), (3, 1))]
    pools = ((1,), (0, 2)), ((8,), (1, 3))

    assert COUNTS["wva-greedy"](problem(variants, rows, *pools)) == (0, 1, 1, 0)

    urgent = [replace(rows[0], priority=0), rows[1]]
    assert COUNTS["wva-greedy"](problem(variants, urgent, *pools)) == (1, 0, 0, 1)


def test_greedy_stays_where_changing_costs_more() -> None:
    """A tenth of both costs is the price of changing the variant: 9 for 10 is not worth it, 8 is."""
    for other, want in ((9, (1, 0)), (8, (0, 1))):
        variants = [terms(10, current=1), terms(other)]
        rows = [demand(0, 1, (0, 1), (1, 1))]

        assert COUNTS["wva-greedy"](problem(variants, rows, ((8,), (0, 1)))) == want


def test_greedy_gives_the_rest_by_priority_as_far_as_it_goes() -> None:
    """Nobody can be served whole; the first by priority takes all that is left."""
    rows = [demand(0, 5, (0, 1), priority=2), demand(1, 6, (1, 1), priority=1)]

    assert COUNTS["wva-greedy"](problem([terms(1), terms(1)], rows, ((4,), (0, 1)))) == (0, 4)


CUT = {
    "doubling": (10, 200, [1, 2, 4, 3]),
    "at one and a half": (8, 150, [1, 1, 2, 3, 1]),
    "one block": (10, 100, [10]),
    "nothing to cut": (0, 200, []),
    "nothing to cut at once": (0, 100, []),
}


@pytest.mark.parametrize(("length", "rate", "want"), CUT.values(), ids=CUT.keys())
def test_ranges_are_cut_into_growing_blocks(length: int, rate: int, want: list[int]) -> None:
    """Each is the last times the rate, rounded down; the last is what is left."""
    assert [*blocks(length, rate)] == want


EXPANDED = {
    "1 at 1, 2 at 1, then 1 at 3 before 4 at 1": (4, (3, 1)),
    "two more of the four": (6, (5, 1)),
    "the cheap one's four and the dear one's two": (9, (7, 2)),
}


@pytest.mark.parametrize(("requirement", "want"), EXPANDED.values(), ids=EXPANDED.keys())
def test_expansion_orders_blocks_by_their_whole_cost(requirement: int, want: tuple[int, int]) -> None:
    """Costs 1 and 3: the order is 1, 2 of the first, 1 of the second, 4 of the first, 2 of the second."""
    rows = [demand(0, requirement, (0, 1), (1, 1))]
    asked = COUNTS["kthena-expansion"](problem([terms(1, upper=7), terms(3, upper=7)], rows, ((0,), (0, 1))))

    assert asked == want


def test_a_rate_that_would_shrink_blocks_is_refused() -> None:
    """Kthena's own schema allows 100 and more."""
    with pytest.raises(ValueError, match="rate_percent: 99 is less than 100"):
        kthena_expansion.counts(view_of(problem([], [])), rate_percent=99)


def test_what_has_no_room_is_cut_from_the_least_important_and_counted_as_pending() -> None:
    """Four nodes with 2 free are 8 accelerators, but no room for a replica of 4."""
    variants = [terms(1, size=4), terms(1, size=2)]
    rows = [demand(0, 1, (0, 1), priority=0), demand(1, 4, (1, 1), priority=9)]
    cut = problem(variants, rows, ((2, 2, 2, 2), (0, 1)))
    whole = problem(variants, rows, ((4, 4), (0, 1)))

    assert STRATEGIES["wva-greedy"](cut).replicas == (0, 2)
    assert PENDING["wva-greedy"](cut) == 4
    assert STRATEGIES["wva-greedy"](whole).replicas == (1, 2)
    assert PENDING["wva-greedy"](whole) == 0


def test_priority_decides_at_the_node_and_arrival_for_kthena() -> None:
    """Room for one; the second model is the more important one."""
    rows = [demand(0, 1, (0, 1), priority=5), demand(1, 1, (1, 1), priority=0)]
    one = problem([terms(1), terms(1)], rows, ((1,), (0, 1)))

    assert STRATEGIES["wva-greedy"](one).replicas == (0, 1)
    assert STRATEGIES["wva-cost-aware"](one).replicas == (1, 0)
    assert STRATEGIES["kthena-expansion"](one).replicas == (1, 0)


def test_a_limit_is_kept() -> None:
    """A quota of 3 accelerators for two models that want 2 replicas of 1 each."""
    quota = LimitRow(name="team", limit=3, terms=((0, 1), (1, 1)))
    rows = [demand(0, 2, (0, 1), priority=1), demand(1, 2, (1, 1), priority=0)]
    small = problem([terms(1), terms(1)], rows, ((9,), (0, 1)), limits=[quota])

    for place in STRATEGIES.values():
        assert sum(place(small).replicas) == 3


def test_who_shrinks_makes_room() -> None:
    """The replica that goes frees the first node in removal order."""
    shrinking = replace(terms(1, current=2), bound=((0,), (1,)))
    rows = [demand(0, 1, (0, 1)), demand(1, 1, (1, 1))]
    full = problem([shrinking, terms(1)], rows, ((0, 0), (0, 1)))

    assert STRATEGIES["wva-greedy"](full) == Solution(replicas=(1, 1), placements=((1, 0, 1),))


@st.composite
def _variant(draw: st.DrawFn, nodes: int, sizes: Sequence[int]) -> VariantTerms:
    hosts = st.lists(st.sampled_from([*((node,) for node in range(nodes)), ()]), max_size=3)
    bound = tuple(draw(hosts))
    upper = draw(st.integers(0, 6))
    return replace(
        terms(draw(st.integers(1, 9)), current=len(bound) + draw(st.integers(0, 1))),
        accelerators=draw(st.sampled_from(sizes)),
        bound=bound,
        upper=upper,
        lower=min(len(bound), upper) if draw(st.booleans()) else 0,
    )


@st.composite
def _problems(draw: st.DrawFn) -> PlacementProblem:
    sizes = draw(st.sampled_from(((0, 1, 2, 4), (1, 2, 8), (1, 2, 3), (3, 5))))
    count = draw(st.integers(1, 3))
    free = draw(st.lists(st.integers(-1, 8), min_size=count, max_size=count))
    variants: list[VariantTerms] = []
    rows = []
    for model in range(draw(st.integers(1, 4))):
        own = range(len(variants), len(variants) + draw(st.integers(1, 3)))
        variants += [replace(draw(_variant(count, sizes)), name=f"m{model}-{v}") for v in own]
        amounts = tuple((v, draw(st.integers(1, 5))) for v in own if draw(st.integers(0, 4)))
        priority = draw(st.integers(0, 2))
        rows += [demand(model, draw(st.integers(1, 20)), *amounts, priority=priority)]
        rows += [warm(model, *own)] if draw(st.booleans()) else []
    users = tuple(v for v, variant in enumerate(variants) if variant.accelerators)
    chain = sorted({variants[v].accelerators for v in users})
    divides = all(large % small == 0 for small, large in pairwise(chain))
    bins = [Bin(nodes=tuple(range(count)), sizes=tuple(chain), variants=users)]
    if not divides:
        bins = [Bin(nodes=(node,), sizes=(1,), variants=users) for node in range(count)]
    limits = []
    if draw(st.booleans()):
        held = sum(variant.lower for variant in variants)
        every = tuple((v, 1) for v in range(len(variants)))
        limits = [LimitRow(name="quota", limit=held + draw(st.integers(0, 4)), terms=every)]
    return PlacementProblem(
        variants=tuple(variants),
        free=tuple(free),
        bins=tuple(bins) if users else (),
        rows=tuple(rows),
        limits=tuple(limits),
    )


@pytest.mark.parametrize("name", STRATEGIES)
@given(world=_problems())
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
@given(world=_problems(), data=st.data())
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


@given(world=_problems())
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


@given(world=_problems(), data=st.data())
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
