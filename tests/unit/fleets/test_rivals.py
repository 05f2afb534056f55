"""Other autoscalers' rules: their own worked examples."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.plain_problems import PLENTY, demand, problem, terms, warm

from controller.planning.problem import (
    LimitRow,
    PlacementProblem,
    Solution,
)
from hack.fleets.rivals import RULES
from hack.fleets.rivals.kthena_expansion import blocks
from hack.fleets.rivals.view import view_of

CHEAP_AND_DEAR = {
    "5000 more go to the best cost per capacity": ((2, 10_000), (1, 20_000), 45_000, (3, 1)),
    "25000 more need three": ((1, 10_000), (0, 20_000), 35_000, (4, 0)),
    "30000 to spare: the dear one goes, the cheap one is the last": ((1, 10_000), (1, 20_000), 0, (1, 0)),
    "15000 to spare are less than a dear one": ((1, 10_000), (1, 20_000), 15_000, (0, 1)),
}


def _asked(name: str, given: PlacementProblem) -> tuple[int, ...]:
    """Return the replicas that a rule asks for, before limits and nodes cut them."""
    return RULES[name].asks(view_of(given))


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

    asked = _asked("wva-cost-aware", problem(variants, rows, ((PLENTY,), (0, 1))))

    assert asked == want


def test_cost_aware_takes_whole_replicas_from_the_dearest_on() -> None:
    """Of 50000 to spare two at 15 give 40000, none at 10 fits into the rest, one at 5 does."""
    variants = [terms(5, current=2), terms(10, current=1), terms(15, current=3)]
    amounts = ((0, 10_000), (1, 15_000), (2, 20_000))

    asked = _asked("wva-cost-aware", problem(variants, [demand(0, 45_000, *amounts)], ((PLENTY,), (0, 1, 2))))

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

    asked = _asked("wva-cost-aware", problem(variants, rows, ((accelerators,), tuple(range(len(variants))))))

    assert list(asked) == want


def test_the_limiter_serves_whoever_has_least_first() -> None:
    """A model that serves a tenth of its demand comes before one that serves half, whatever they cost."""
    variants = [terms(1, current=1), terms(9, current=1)]
    rows = [demand(0, 2, (0, 1)), demand(1, 10, (1, 1))]

    assert _asked("wva-cost-aware", problem(variants, rows, ((9,), (0, 1)))) == (1, 8)


def test_not_to_know_is_no_reason_to_scale_down() -> None:
    """A demand that no variant is known to serve keeps what runs, and starts nothing."""
    rows = [demand(0, 5), warm(0, 0)]

    for now, want in ((3, (3,)), (0, (1,))):
        unknown = problem([terms(1, current=now)], rows, ((9,), (0,)))
        assert _asked("wva-cost-aware", unknown) == want


def test_greedy_takes_the_cheaper_whole_and_not_the_better_ratio() -> None:
    """For 100: one of 200 for 10, or one of 100 for 6."""
    rows = [demand(0, 100, (0, 200), (1, 100))]

    assert _asked("wva-greedy", problem([terms(10), terms(6)], rows, ((8,), (0, 1)))) == (0, 1)


def test_greedy_never_mixes() -> None:
    """3 + 10 would cost 620; at most three H100 are not enough alone, so it pays 50 L40S."""
    variants = [terms(100, upper=3), terms(32)]
    rows = [demand(0, 1_000_000, (0, 268_955), (1, 20_141))]

    assert _asked("wva-greedy", problem(variants, rows, ((8,), (0,)), ((64,), (1,)))) == (0, 50)
    assert _asked("wva-greedy", problem([terms(100), terms(32)], rows, ((8,), (0,)), ((64,), (1,)))) == (4, 0)


def test_greedy_serves_the_larger_regret_first_within_a_priority() -> None:
    """The second choice of the first model costs 12 instead of 10, that of the second one 40."""
    variants = [terms(10), terms(12), terms(10), terms(40)]
    rows = [demand(0, 1, (0, 1), (1, 1)), demand(1, 1, (2, 1), (3, 1))]
    pools = ((1,), (0, 2)), ((8,), (1, 3))

    assert _asked("wva-greedy", problem(variants, rows, *pools)) == (0, 1, 1, 0)

    urgent = [replace(rows[0], priority=0), rows[1]]
    assert _asked("wva-greedy", problem(variants, urgent, *pools)) == (1, 0, 0, 1)


def test_greedy_stays_where_changing_costs_more() -> None:
    """A tenth of both costs is the price of changing the variant: 9 for 10 is not worth it, 8 is."""
    for other, want in ((9, (1, 0)), (8, (0, 1))):
        variants = [terms(10, current=1), terms(other)]
        rows = [demand(0, 1, (0, 1), (1, 1))]

        assert _asked("wva-greedy", problem(variants, rows, ((8,), (0, 1)))) == want


def test_greedy_gives_the_rest_by_priority_as_far_as_it_goes() -> None:
    """Nobody can be served whole; the first by priority takes all that is left."""
    rows = [demand(0, 5, (0, 1), priority=2), demand(1, 6, (1, 1), priority=1)]

    assert _asked("wva-greedy", problem([terms(1), terms(1)], rows, ((4,), (0, 1)))) == (0, 4)


@pytest.mark.parametrize(("length", "want"), [(10, [1, 2, 4, 3]), (7, [1, 2, 4]), (0, [])])
def test_ranges_are_cut_into_growing_blocks(length: int, want: list[int]) -> None:
    """Each is twice the last; the last is what is left."""
    assert [*blocks(length)] == want


EXPANDED = {
    "1 at 1, 2 at 1, then 1 at 3 before 4 at 1": (4, (3, 1)),
    "two more of the four": (6, (5, 1)),
    "the cheap one's four and the dear one's two": (9, (7, 2)),
}


@pytest.mark.parametrize(("requirement", "want"), EXPANDED.values(), ids=EXPANDED.keys())
def test_expansion_orders_blocks_by_their_whole_cost(requirement: int, want: tuple[int, int]) -> None:
    """Costs 1 and 3: the order is 1, 2 of the first, 1 of the second, 4 of the first, 2 of the second."""
    rows = [demand(0, requirement, (0, 1), (1, 1))]
    asked = _asked("kthena-expansion", problem([terms(1, upper=7), terms(3, upper=7)], rows, ((0,), (0, 1))))

    assert asked == want


def test_what_has_no_room_is_cut_from_the_least_important_and_counted_as_pending() -> None:
    """Four nodes with 2 free are 8 accelerators, but no room for a replica of 4."""
    variants = [terms(1, size=4), terms(1, size=2)]
    rows = [demand(0, 1, (0, 1), priority=0), demand(1, 4, (1, 1), priority=9)]
    cut = problem(variants, rows, ((2, 2, 2, 2), (0, 1)))
    whole = problem(variants, rows, ((4, 4), (0, 1)))

    assert RULES["wva-greedy"].place(cut).replicas == (0, 2)
    assert RULES["wva-greedy"].pending(cut) == 4
    assert RULES["wva-greedy"].place(whole).replicas == (1, 2)
    assert RULES["wva-greedy"].pending(whole) == 0


def test_priority_decides_at_the_node_and_arrival_for_kthena() -> None:
    """Room for one; the second model is the more important one."""
    rows = [demand(0, 1, (0, 1), priority=5), demand(1, 1, (1, 1), priority=0)]
    one = problem([terms(1), terms(1)], rows, ((1,), (0, 1)))

    assert RULES["wva-greedy"].place(one).replicas == (0, 1)
    assert RULES["wva-cost-aware"].place(one).replicas == (1, 0)
    assert RULES["kthena-expansion"].place(one).replicas == (1, 0)


def test_a_limit_is_kept() -> None:
    """A quota of 3 accelerators for two models that want 2 replicas of 1 each."""
    quota = LimitRow(name="team", limit=3, terms=((0, 1), (1, 1)))
    rows = [demand(0, 2, (0, 1), priority=1), demand(1, 2, (1, 1), priority=0)]
    small = problem([terms(1), terms(1)], rows, ((9,), (0, 1)), limits=[quota])

    for rule in RULES.values():
        assert sum(rule.place(small).replicas) == 3


def test_who_shrinks_makes_room() -> None:
    """The replica that goes frees the first node in removal order."""
    shrinking = replace(terms(1, current=2), bound=((0,), (1,)))
    rows = [demand(0, 1, (0, 1)), demand(1, 1, (1, 1))]
    full = problem([shrinking, terms(1)], rows, ((0, 0), (0, 1)))

    assert RULES["wva-greedy"].place(full) == Solution(replicas=(1, 1), placements=((1, 0, 1),))
