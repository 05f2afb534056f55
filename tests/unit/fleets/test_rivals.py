"""Rules of other autoscalers, compared with their own worked examples."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.plain_problems import PLENTY, demand, problem, terms, warm

from controller.planning.problem import (
    LimitRow,
    PlacementProblem,
    Solution,
)
from hack.fleets.rivals import HEURISTICS
from hack.fleets.rivals.kthena_expansion import blocks
from hack.fleets.rivals.view import view_of

CHEAP_AND_DEAR = {
    "5000 more are added at the best cost per capacity": ((2, 10_000), (1, 20_000), 45_000, (3, 1)),
    "25000 more need three replicas": ((1, 10_000), (0, 20_000), 35_000, (4, 0)),
    "30000 spare: the expensive replica is removed, one is kept": ((1, 10_000), (1, 20_000), 0, (1, 0)),
    "15000 spare are less than an expensive replica": ((1, 10_000), (1, 20_000), 15_000, (0, 1)),
}


def _asked(name: str, given: PlacementProblem) -> tuple[int, ...]:
    """Return the replicas that a heuristic requests, before limits and nodes are applied."""
    return HEURISTICS[name].asks(view_of(given))


@pytest.mark.parametrize(
    ("cheap", "dear", "requirement", "want"), CHEAP_AND_DEAR.values(), ids=CHEAP_AND_DEAR.keys()
)
def test_cost_aware_heuristic_reproduces_its_own_examples(
    cheap: tuple[int, int], dear: tuple[int, int], requirement: int, want: tuple[int, int]
) -> None:
    """The costs are 5 and 15; a case has (current replicas, capacity of one) of each."""
    variants = [terms(5, current=cheap[0]), terms(15, current=dear[0])]
    rows = [warm(0, 0, 1)]
    rows += [demand(0, requirement, (0, cheap[1]), (1, dear[1]))] if requirement else []

    asked = _asked("wva-cost-aware", problem(variants, rows, ((PLENTY,), (0, 1))))

    assert asked == want


def test_cost_aware_heuristic_removes_whole_replicas_by_decreasing_cost() -> None:
    """Of 50000 spare, two replicas at cost 15 have 40000; then one at 10 has too much, and one at 5 fits."""
    variants = [terms(5, current=2), terms(10, current=1), terms(15, current=3)]
    amounts = ((0, 10_000), (1, 15_000), (2, 20_000))

    asked = _asked("wva-cost-aware", problem(variants, [demand(0, 45_000, *amounts)], ((PLENTY,), (0, 1, 2))))

    assert asked == (1, 1, 1)


LIMITED = {
    "two more replicas of 2 on 8, of which 4 are used": (8, [(10, 2, 4)], [4]),
    "6 free are one more for each of three models": (12, [(10, 1, 2), (15, 1, 2), (20, 1, 2)], [2, 2, 2]),
    "3 free are one more replica, and one is unused": (5, [(10, 1, 3)], [2]),
    "for equal need, the cheaper is first": (6, [(20, 1, 2), (5, 1, 2)], [1, 2]),
}


@pytest.mark.parametrize(("accelerators", "decisions", "want"), LIMITED.values(), ids=LIMITED.keys())
def test_the_limiter_reproduces_its_own_examples(
    accelerators: int, decisions: list[tuple[int, int, int]], want: list[int]
) -> None:
    """A replica has two accelerators; a case has (cost, current replicas, required replicas) per model."""
    variants = [terms(cost, current=now, size=2) for cost, now, _ in decisions]
    rows = [demand(i, needed, (i, 1)) for i, (_, _, needed) in enumerate(decisions)]

    asked = _asked("wva-cost-aware", problem(variants, rows, ((accelerators,), tuple(range(len(variants))))))

    assert list(asked) == want


def test_the_limiter_serves_the_model_with_the_smallest_served_share_first() -> None:
    """A model with a tenth of its demand comes before one with half of it, whatever their costs."""
    variants = [terms(1, current=1), terms(9, current=1)]
    rows = [demand(0, 2, (0, 1)), demand(1, 10, (1, 1))]

    assert _asked("wva-cost-aware", problem(variants, rows, ((9,), (0, 1)))) == (1, 8)


def test_unknown_capacity_is_no_reason_to_scale_down() -> None:
    """If no variant has a known capacity, current replicas are kept and none is started."""
    rows = [demand(0, 5), warm(0, 0)]

    for now, want in ((3, (3,)), (0, (1,))):
        unknown = problem([terms(1, current=now)], rows, ((9,), (0,)))
        assert _asked("wva-cost-aware", unknown) == want


def test_greedy_chooses_the_lower_total_cost_and_not_the_better_ratio() -> None:
    """For a demand of 100, a replica of 200 costs 10, and one of 100 costs 6."""
    rows = [demand(0, 100, (0, 200), (1, 100))]

    assert _asked("wva-greedy", problem([terms(10), terms(6)], rows, ((8,), (0, 1)))) == (0, 1)


def test_greedy_does_not_combine_variants() -> None:
    """Three H100 and ten L40S would cost 620; with at most three H100, it chooses 50 L40S."""
    variants = [terms(100, upper=3), terms(32)]
    rows = [demand(0, 1_000_000, (0, 268_955), (1, 20_141))]

    assert _asked("wva-greedy", problem(variants, rows, ((8,), (0,)), ((64,), (1,)))) == (0, 50)
    assert _asked("wva-greedy", problem([terms(100), terms(32)], rows, ((8,), (0,)), ((64,), (1,)))) == (4, 0)


def test_greedy_serves_the_larger_regret_first_within_a_priority() -> None:
    """The second choice costs 12 instead of 10 for the first model, 40 instead of 10 for the second one."""
    variants = [terms(10), terms(12), terms(10), terms(40)]
    rows = [demand(0, 1, (0, 1), (1, 1)), demand(1, 1, (2, 1), (3, 1))]
    pools = ((1,), (0, 2)), ((8,), (1, 3))

    assert _asked("wva-greedy", problem(variants, rows, *pools)) == (0, 1, 1, 0)

    urgent = [replace(rows[0], priority=0), rows[1]]
    assert _asked("wva-greedy", problem(variants, urgent, *pools)) == (1, 0, 0, 1)


def test_greedy_keeps_the_variant_if_a_change_costs_more() -> None:
    """A change has a penalty of a tenth of both costs: from 10 to 9 it does not pay, from 10 to 8 it does."""
    for other, want in ((9, (1, 0)), (8, (0, 1))):
        variants = [terms(10, current=1), terms(other)]
        rows = [demand(0, 1, (0, 1), (1, 1))]

        assert _asked("wva-greedy", problem(variants, rows, ((8,), (0, 1)))) == want


def test_greedy_assigns_remaining_accelerators_by_priority() -> None:
    """No model can be served completely; the first one by priority gets all that are free."""
    rows = [demand(0, 5, (0, 1), priority=2), demand(1, 6, (1, 1), priority=1)]

    assert _asked("wva-greedy", problem([terms(1), terms(1)], rows, ((4,), (0, 1)))) == (0, 4)


@pytest.mark.parametrize(("length", "want"), [(10, [1, 2, 4, 3]), (7, [1, 2, 4]), (0, [])])
def test_ranges_are_divided_into_growing_blocks(length: int, want: list[int]) -> None:
    """Each block is twice as long as the previous one; the last one has the rest."""
    assert [*blocks(length)] == want


EXPANDED = {
    "1 at 1, 2 at 1, then 1 at 3 before 4 at 1": (4, (3, 1)),
    "two more of the block of four": (6, (5, 1)),
    "four of the first and two of the second variant": (9, (7, 2)),
}


@pytest.mark.parametrize(("requirement", "want"), EXPANDED.values(), ids=EXPANDED.keys())
def test_expansion_orders_blocks_by_their_total_cost(requirement: int, want: tuple[int, int]) -> None:
    """With costs of 1 and 3, blocks are 1, 2 (first variant), 1 (second), 4 (first) and 2 (second)."""
    rows = [demand(0, requirement, (0, 1), (1, 1))]
    asked = _asked("kthena-expansion", problem([terms(1, upper=7), terms(3, upper=7)], rows, ((0,), (0, 1))))

    assert asked == want


def test_replicas_without_room_are_removed_by_priority_and_counted_as_pending() -> None:
    """Four nodes with two free accelerators each have no room for a replica of 4."""
    variants = [terms(1, size=4), terms(1, size=2)]
    rows = [demand(0, 1, (0, 1), priority=0), demand(1, 4, (1, 1), priority=9)]
    cut = problem(variants, rows, ((2, 2, 2, 2), (0, 1)))
    whole = problem(variants, rows, ((4, 4), (0, 1)))

    assert HEURISTICS["wva-greedy"].place(cut).replicas == (0, 2)
    assert HEURISTICS["wva-greedy"].pending(cut) == 4
    assert HEURISTICS["wva-greedy"].place(whole).replicas == (1, 2)
    assert HEURISTICS["wva-greedy"].pending(whole) == 0


def test_placement_is_by_priority_for_greedy_and_by_order_for_the_others() -> None:
    """There is room for one replica; the second model has the higher priority."""
    rows = [demand(0, 1, (0, 1), priority=5), demand(1, 1, (1, 1), priority=0)]
    one = problem([terms(1), terms(1)], rows, ((1,), (0, 1)))

    assert HEURISTICS["wva-greedy"].place(one).replicas == (0, 1)
    assert HEURISTICS["wva-cost-aware"].place(one).replicas == (1, 0)
    assert HEURISTICS["kthena-expansion"].place(one).replicas == (1, 0)


def test_a_quota_is_respected() -> None:
    """It allows three accelerators, and two models request two replicas of one each."""
    quota = LimitRow(name="team", limit=3, terms=((0, 1), (1, 1)))
    rows = [demand(0, 2, (0, 1), priority=1), demand(1, 2, (1, 1), priority=0)]
    small = problem([terms(1), terms(1)], rows, ((9,), (0, 1)), limits=[quota])

    for heuristic in HEURISTICS.values():
        assert sum(heuristic.place(small).replicas) == 3


def test_a_removed_replica_makes_room() -> None:
    """It frees the first node in the order of removal."""
    shrinking = replace(terms(1, current=2), bound_replicas=((0,), (1,)))
    rows = [demand(0, 1, (0, 1)), demand(1, 1, (1, 1))]
    full = problem([shrinking, terms(1)], rows, ((0, 0), (0, 1)))

    assert HEURISTICS["wva-greedy"].place(full) == Solution(replicas=(1, 1), placements=((1, 0, 1),))
