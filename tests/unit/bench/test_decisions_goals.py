"""Rows, goal lines and the table of the decision benchmark."""

from __future__ import annotations

import pytest
from support.decision_samples import played, result

from controller.simulation.workload import Drawn
from hack.bench.command import NothingChosenError
from hack.bench.decisions.__main__ import chosen
from hack.bench.decisions.asking import Asking, asking
from hack.bench.decisions.goals import goals
from hack.bench.decisions.points import OURS
from hack.bench.decisions.report import rows_table
from hack.bench.decisions.rows import rows
from hack.bench.decisions.sizing_cost import SizingCost, sizing_cost

SIZING = SizingCost(variants=10_000, models=5000, pods=20_000, cpu_seconds=1.2)
FIXED = (played("concurrency:16@h100", cost=1600), played("concurrency:32@h100", cost=1000, missed=0.01))


def test_the_rows_are_complete() -> None:
    """Every start-up time, window, load and state of knowledge that decisions are judged on."""
    assert list(rows()) == [
        "conv-x12",
        "conv-x12-cold",
        "conv-x12-start-5",
        "conv-x12-start-60",
        "conv-x12-start-300",
        "conv-x12-window-60",
        "conv-x4",
        "code-x12",
        "ramp",
        "sine",
        "step",
        "spikes",
        "constant-28",
        "constant-60",
        "cheap-known",
        "cheap-unknown",
        "cheap-tried",
        "cheap-declared",
        "misfit",
        "misfit-stale-profile",
        "tenfold",
        "scarcity",
    ]


def test_rows_that_borrow_rivals_are_the_same_to_them() -> None:
    """Loads, prices, engines and start-up times: only what Stowplan knows differs."""
    for row in rows().values():
        if row.rivals_of:
            theirs = rows()[row.rivals_of].scenario
            assert row.scenario.models == theirs.models
            for own, other in zip(row.scenario.variants, theirs.variants, strict=True):
                assert own.profile == other.profile
                assert own.price_per_hour == other.price_per_hour
                assert own.start_up_seconds == other.start_up_seconds
                assert other.initial_replicas > 0, "an HPA does nothing without a replica"


@pytest.mark.parametrize(("name", "ratio"), [("tenfold", 10), ("sine", 5), ("ramp", 6), ("spikes", 4)])
def test_loads_swing_as_they_say(name: str, ratio: float) -> None:
    """By the curve alone, without chance."""
    row = rows()[name].scenario
    workload = row.models[0].workload
    assert isinstance(workload, Drawn)
    curve = workload.curve
    rates = [curve.rate(second) for second in range(int(row.duration_seconds) + 1)]

    assert max(rates) / min(rates) == pytest.approx(ratio, rel=0.01)


def test_what_misses_the_line_is_what_decodes_more_slowly_with_its_context() -> None:
    """And the profile that is told knows nothing of that."""
    (h100, _), (told, _) = (rows()[name].scenario.variants for name in ("misfit", "misfit-stale-profile"))

    assert not h100.profile.is_even
    assert h100.stated_profile is None
    assert told.stated_profile is not None
    assert told.stated_profile.is_even


def test_every_goal_is_measured_where_it_is_set() -> None:
    """Ratios to the best setting, to the bound and to fixed settings; worst first is not hidden in a mean."""
    ours = played(OURS, cost=700, missed=0.001, reversals=4)
    results = [
        result(
            "conv-x12",
            ours=ours,
            concurrency=played("concurrency:40@h100", cost=1000),
            clairvoyant=played("clairvoyant", cost=560),
            fixed=FIXED,
        ),
        result(
            "tenfold",
            ours=played(OURS, cost=400, reversals=12),
            concurrency=played("concurrency:40@h100", cost=500),
            constant=played("constant:10@h100", cost=1000),
            fixed=FIXED,
        ),
    ]
    asked = Asking(pods=1000, requests=1000, most_per_pod=1)

    assert [goal.line() for goal in goals(results, SIZING, asked, slowness=1.5)] == [
        "goal: cost_to_best_concurrency_in_conv-x12 0.70 times, wanted <= 0.78: met",
        "goal: cost_to_best_concurrency_in_tenfold 0.80 times, wanted <= 1: met",
        "goal: cost_to_clairvoyant_in_conv-x12 1.25 times, wanted <= 1.15: missed",
        "goal: cost_to_best_constant_in_tenfold 0.40 times, wanted <= 0.5: met",
        "goal: cost_to_fixed_concurrency_16 0.34 times, wanted <= 0.5: met",
        "goal: missed_beside_fixed_concurrency_16 0.05 %, wanted <= 0: missed",
        "goal: cost_to_fixed_concurrency_32 0.55 times, wanted <= 0.5: missed",
        "goal: missed_beside_fixed_concurrency_32 0.05 %, wanted <= 1: met",
        "goal: missed_in_conv-x12 0.10 %, wanted <= 0.15: met",
        "goal: reversals_in_conv-x12 4.00 per hour, wanted <= 10: met",
        "goal: reversals_in_tenfold 12.0 per hour, wanted <= 10: missed",
        "goal: sizing_of_10000_variants 1.20 s, wanted <= 1: missed",
        "goal: sizing_of_10000_variants_at_reference_pace 0.80 s, wanted <= 1: met",
        "goal: requests_per_pod_in_a_cycle_of_1000 1.00 requests, wanted <= 1: met",
    ]


def test_what_was_not_measured_has_no_goal() -> None:
    """Nothing is said of rows that were not chosen, nor of a baseline that there is not."""
    assert goals([], None, None, slowness=1.0) == []
    names = [goal.name for goal in goals([result("code-x12", ours=FIXED[0])], None, None, slowness=1.0)]
    assert names == ["reversals_in_code-x12"]


@pytest.mark.parametrize(
    ("row", "most"), [("constant-60", 0.0), ("step", 10.0)], ids=["constant load", "any other"]
)
def test_a_constant_load_reverses_nothing(row: str, most: float) -> None:
    """One reversal is one too many."""
    (goal,) = (
        goal
        for goal in goals([result(row, ours=played(OURS, cost=1, reversals=1))], None, None, slowness=1.0)
        if goal.name.startswith("reversals")
    )

    assert goal.most == most


def test_the_table_has_ours_first_and_says_where_nobody_misses_as_little() -> None:
    """Ratios are ours beside theirs; several priorities are told apart."""
    shares = {1: 0.0, 10: 0.05}
    lines = rows_table(
        [
            result("scarcity", ours=played(OURS, cost=450, missed=0.02, by_priority=shares), fixed=FIXED),
        ]
    )

    assert lines[1].split()[:5] == ["scarcity", "stowplan", "1", "450", "1.00"]
    assert "0.00 / 5.00" in lines[1]
    assert lines[2].endswith("none misses as little")
    assert lines[3].split()[:6] == ["fixed,", "concurrency:16@h100", "1", "1600", "0.28", "0.00"]


def test_rows_are_chosen_by_name_in_the_order_of_the_table() -> None:
    """None named are all."""
    assert chosen("step, ramp") == ("ramp", "step")
    assert chosen("") == tuple(rows())
    with pytest.raises(NothingChosenError, match=r"unknown: stairs; known: conv-x12, "):
        chosen("stairs,ramp")


def test_sizing_is_measured_on_variants_that_all_report() -> None:
    """A few of them, here: one to three pods each."""
    cost = sizing_cost(models=6)

    assert (cost.variants, cost.models) == (12, 6)
    assert 12 <= cost.pods <= 36
    assert cost.cpu_seconds > 0


def test_each_pod_is_asked_once_a_cycle() -> None:
    """Counted by who is asked, over several cycles of the real reconciler."""
    assert asking(8) == Asking(pods=8, requests=8, most_per_pod=1)
