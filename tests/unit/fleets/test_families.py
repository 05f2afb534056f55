"""Generated fleets: that they come again, are as large and as short as they say, and can be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.planning.magnitude import check_magnitude
from controller.planning.problem import LimitRow, PlacementProblem, Solution, Stage
from hack.fleets import score
from hack.fleets.catalogue import FAMILIES, SIZES, Instance, chosen
from hack.fleets.rivals import RULES
from hack.fleets.scenario import after
from hack.fleets.verify import wrong

SMALL = SIZES[0]
PLACE = RULES["wva-greedy"].place


def problem_of(family: str, size: int = SMALL, seed: int = 0) -> PlacementProblem:
    """Return the first problem of an instance."""
    return Instance(family=family, size=size, seed=seed).scenario().problem


@pytest.mark.parametrize("family", FAMILIES)
def test_name_size_and_seed_tell_a_fleet(family: str) -> None:
    """The same three make the same scenario; another seed makes another one, where there is any chance."""
    scenario = Instance(family=family, size=SMALL, seed=3).scenario()

    assert Instance(family=family, size=SMALL, seed=3).scenario() == scenario
    assert Instance(family=family, size=SMALL, seed=4).scenario() != scenario


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fleet_is_as_large_as_it_says(family: str) -> None:
    """Models are told by the names of their variants; each has one at least and no more than eight."""
    names = [terms.name.partition("-")[0] for terms in problem_of(family).variants]

    assert sorted(set(names)) == [f"m{model:05}" for model in range(SMALL)]
    assert max(names.count(name) for name in names) <= 8


@pytest.mark.parametrize("family", FAMILIES)
def test_variants_are_sorted_by_name_and_models_stand_together(family: str) -> None:
    """As a problem demands."""
    problem = problem_of(family)
    models = [row.model for row in problem.rows]

    assert [terms.name for terms in problem.variants] == sorted(terms.name for terms in problem.variants)
    assert models == sorted(models)


@pytest.mark.parametrize("family", FAMILIES)
def test_large_fleets_stay_within_exact_numbers(family: str) -> None:
    """An engine would refuse them otherwise."""
    check_magnitude(problem_of(family, 500))


def test_short_families_are_short_and_plenty_is_not() -> None:
    """Accelerators that are there, over those that everybody's cheapest choice takes."""
    there = {family: sum(problem_of(family, 500).free) for family in ("F2-plenty", "F4-tight", "F5-scarce")}
    wanted = {family: required(problem_of(family, 500)) for family in there}
    share = {family: there[family] / wanted[family] for family in there}

    assert 1.9 < share["F2-plenty"] < 2.2
    assert 0.7 < share["F4-tight"] < 1.2
    assert 0.55 < share["F5-scarce"] < 0.7


def required(problem: PlacementProblem) -> int:
    """Return the accelerators of every model's cheapest variant that serves it alone."""
    total = 0
    for row in problem.rows:
        if row.stage is Stage.DEMAND:
            needs = [(-(-row.requirement // amount), problem.variants[v]) for v, amount in row.terms]
            count, terms = min(needs, key=lambda need: need[0] * need[1].cost)
            total += count * terms.accelerators
    return total


def test_four_fifths_stay_warm_and_a_tenth_asks_for_nothing() -> None:
    """Within what chance allows among 500."""
    problem = problem_of("F2-plenty", 500)
    stages = [row.stage for row in problem.rows]

    assert 370 <= stages.count(Stage.MINIMUM) <= 430
    assert 425 <= stages.count(Stage.DEMAND) <= 475
    assert {row.priority for row in problem.rows} == {0, 1, 2, 3}


def test_a_share_of_demand_weighs_what_serving_it_costs() -> None:
    """A thousandth of the cheapest cost of serving it, rounded up."""
    problem = problem_of("F3-skew")
    row = next(row for row in problem.rows if row.stage is Stage.DEMAND)
    cheapest = min(-(-row.requirement // amount) * problem.variants[v].cost for v, amount in row.terms)

    assert row.weight == -(-cheapest // 1000)


def test_sizes_that_do_not_divide_each_other_share_their_nodes() -> None:
    """As the planner's inventory does."""
    problem = problem_of("F11-uneven-sizes", 100)

    assert {3, 6} <= {terms.accelerators for terms in problem.variants}
    assert any(not bin_.is_divisible and len(bin_.nodes) > 1 for bin_ in problem.bins)


def test_families_are_chosen_by_the_beginning_of_their_names() -> None:
    """F1 is not F14; a name of nothing is an error."""
    names = list(FAMILIES)
    assert chosen(["F1"], names) == ["F1-unlimited"]
    assert [name.partition("-")[0] for name in chosen(["F14"], names)] == ["F14"] * 8
    assert chosen([], names) == names
    with pytest.raises(KeyError):
        chosen(["F99"], names)


def test_a_sequence_begins_where_the_last_answer_left_off() -> None:
    """What was placed is bound, the youngest leave first and are not ready; what is free is what is left."""
    scenario = Instance(family="F13-waves", size=SMALL, seed=0).scenario()
    first = PLACE(scenario.problem)
    problem = after(scenario.problem, first, scenario.demands[0])
    second = PLACE(problem)
    third = after(problem, second, scenario.demands[1])

    assert [terms.current for terms in problem.variants] == list(first.replicas)
    assert [len(terms.bound) for terms in problem.variants] == list(first.replicas)
    assert not any(terms.ready for terms in problem.variants)
    assert sum(problem.free) == sum(scenario.problem.free) - score.used_accelerators(problem, first.replicas)
    assert wrong(problem, second) == []
    assert sum(third.free) == sum(scenario.problem.free) - score.used_accelerators(problem, second.replicas)
    assert [terms.ready for terms in third.variants] == list(map(min, first.replicas, second.replicas))
    assert any(row.stage is Stage.CONTINUITY for row in third.rows)
    assert len(scenario.demands) == 99


def test_few_demands_change_in_ripples() -> None:
    """One of a hundred a step."""
    scenario = Instance(family="F13-ripples", size=100, seed=0).scenario()
    steps = zip(scenario.demands, scenario.demands[1:], strict=False)

    assert all(sum(a != b for a, b in zip(one, other, strict=True)) <= 1 for one, other in steps)


def placed(replicas: tuple[int, ...], *placements: tuple[int, int, int]) -> Solution:
    """Return an answer."""
    return Solution(replicas=replicas, placements=placements)


def test_whatever_is_impossible_is_found() -> None:
    """Counts, bounds, limits, the right nodes and their room."""
    problem = problem_of("F14-regret", 3)
    problem = replace(problem, limits=(LimitRow(name="quota", limit=1, terms=((0, 1), (1, 1))),))
    here = {bin_.variants[0]: bin_.nodes[0] for bin_ in problem.bins}
    counts = [0] * len(problem.variants)

    def said(v: int, count: int, *placements: tuple[int, int, int]) -> str:
        return "; ".join(wrong(problem, placed((*counts[:v], count, *counts[v + 1 :]), *placements)))

    users = {v: bin_.nodes[0] for bin_ in problem.bins for v in bin_.variants}
    assert said(0, 0) == ""
    assert said(0, 1, (0, users[0], 1)) == ""
    assert "1 counts for" in "; ".join(wrong(problem, placed((0,))))
    assert "allowed are 0 to 1" in said(0, -1)
    assert "quota: 2 of 1 used" in said(0, 2, (0, users[0], 2))
    assert "0 places for 1 pods" in said(0, 1)
    assert "may not go to node" in said(0, 1, (0, next(n for n in here.values() if n != users[0]), 1))
    assert "accelerators too many" in said(0, 9, (0, users[0], 9))


def test_what_is_unmet_is_told_by_value_and_by_model() -> None:
    """Nothing placed misses everything; costs are what replicas and their starts take."""
    problem = problem_of("F13-waves")
    nothing = (0,) * len(problem.variants)
    one = (1, *nothing[1:])
    terms = problem.variants[0]

    assert all(
        unmet.by_value_percent == unmet.by_model_percent == 100 for unmet in score.unmet(problem, nothing)
    )
    assert score.cost(problem, nothing) == 0
    assert score.cost(problem, one) == terms.cost + terms.start_price
    assert score.started_accelerators(problem, one) == terms.accelerators
    assert list(score.levels(problem, nothing))[-1] == "cost"
