"""Generated fleets: reproducibility, size, scarcity, and verification of answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.planning.engine import check_magnitude
from controller.planning.problem import LimitRow, PlacementProblem, Solution, Stage
from hack.fleets import score
from hack.fleets.catalogue import FAMILIES, SIZES, Instance, select_names
from hack.fleets.verify import wrong

SMALL = SIZES[0]


def problem_of(family: str, size: int = SMALL, seed: int = 0) -> PlacementProblem:
    """Return the problem of an instance."""
    return Instance(family=family, size=size, seed=seed).problem()


@pytest.mark.parametrize("family", FAMILIES)
def test_family_size_and_seed_determine_a_fleet(family: str) -> None:
    """Another seed gives another problem."""
    problem = Instance(family=family, size=SMALL, seed=3).problem()

    assert Instance(family=family, size=SMALL, seed=3).problem() == problem
    assert Instance(family=family, size=SMALL, seed=4).problem() != problem


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fleet_has_the_requested_number_of_models(family: str) -> None:
    """The names of variants contain the model; each model has one to eight variants."""
    names = [terms.name.partition("-")[0] for terms in problem_of(family).variants]

    assert sorted(set(names)) == [f"m{model:05}" for model in range(SMALL)]
    assert max(names.count(name) for name in names) <= 8


@pytest.mark.parametrize("family", FAMILIES)
def test_variants_are_sorted_by_name_and_rows_by_model(family: str) -> None:
    """The placement problem requires this order."""
    problem = problem_of(family)
    models = [row.model for row in problem.rows]

    assert [terms.name for terms in problem.variants] == sorted(terms.name for terms in problem.variants)
    assert models == sorted(models)


@pytest.mark.parametrize("family", FAMILIES)
def test_large_fleets_have_magnitudes_that_are_computed_exactly(family: str) -> None:
    """The engine rejects larger values."""
    check_magnitude(problem_of(family, 500))


def test_tight_and_scarce_families_lack_accelerators_and_plenty_does_not() -> None:
    """The ratio is that of existing accelerators to those of the cheapest variant of each model."""
    there = {family: sum(problem_of(family, 500).free) for family in ("F2-plenty", "F4-tight", "F5-scarce")}
    wanted = {family: required(problem_of(family, 500)) for family in there}
    share = {family: there[family] / wanted[family] for family in there}

    assert 1.9 < share["F2-plenty"] < 2.2
    assert 0.7 < share["F4-tight"] < 1.2
    assert 0.55 < share["F5-scarce"] < 0.7


def required(problem: PlacementProblem) -> int:
    """Return the accelerators needed if each model is served by its cheapest variant alone."""
    total = 0
    for row in problem.rows:
        if row.stage is Stage.DEMAND:
            needs = [(-(-row.requirement // amount), problem.variants[v]) for v, amount in row.terms]
            count, terms = min(needs, key=lambda need: need[0] * need[1].cost)
            total += count * terms.accelerators
    return total


def test_four_fifths_of_models_have_a_minimum_and_a_tenth_has_no_demand() -> None:
    """The bounds allow for random deviations among 500 models."""
    problem = problem_of("F2-plenty", 500)
    stages = [row.stage for row in problem.rows]

    assert 370 <= stages.count(Stage.MINIMUM) <= 430
    assert 425 <= stages.count(Stage.DEMAND) <= 475
    assert {row.priority for row in problem.rows} == {0, 1, 2, 3}


def test_the_weight_of_a_shortfall_follows_the_cost_of_serving_it() -> None:
    """It is a thousandth of the cheapest cost of serving the demand, rounded up."""
    problem = problem_of("F3-skew")
    row = next(row for row in problem.rows if row.stage is Stage.DEMAND)
    cheapest = min(-(-row.requirement // amount) * problem.variants[v].cost for v, amount in row.terms)

    assert row.weight == -(-cheapest // 1000)


def test_sizes_that_do_not_divide_each_other_share_nodes() -> None:
    """The inventory of the planner has such bins, too."""
    problem = problem_of("F11-uneven-sizes", 100)

    assert {3, 6} <= {terms.accelerators for terms in problem.variants}
    assert any(not bin_.is_divisible and len(bin_.nodes) > 1 for bin_ in problem.bins)


def test_families_are_selected_by_the_beginning_of_their_names() -> None:
    """F1 does not select F14; an unknown name is an error."""
    names = list(FAMILIES)
    assert select_names(["F1"], names) == ["F1-unlimited"]
    assert [name.partition("-")[0] for name in select_names(["F14"], names)] == ["F14"] * 8
    assert select_names([], names) == names
    with pytest.raises(KeyError):
        select_names(["F99"], names)


def placed(replicas: tuple[int, ...], *placements: tuple[int, int, int]) -> Solution:
    """Return a solution."""
    return Solution(replicas=replicas, placements=placements)


def test_every_kind_of_infeasibility_is_found() -> None:
    """Cases are counts, bounds, limits, nodes of another bin, and capacity of nodes."""
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


def test_unmet_demand_is_measured_by_value_and_by_model() -> None:
    """Without replicas, all demand is unmet; the cost is that of replicas and their starts."""
    problem = problem_of("F2-plenty")
    problem = replace(problem, variants=(replace(problem.variants[0], start_price=7), *problem.variants[1:]))
    nothing = (0,) * len(problem.variants)
    one = (1, *nothing[1:])
    terms = problem.variants[0]

    assert all(
        unmet.by_value_percent == unmet.by_model_percent == 100 for unmet in score.unmet(problem, nothing)
    )
    assert score.cost(problem, nothing) == 0
    assert score.cost(problem, one) == terms.cost + 7
    assert list(score.levels(problem, nothing))[-1] == "cost"
