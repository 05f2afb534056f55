"""Rows, goals and table of the decision benchmark."""

from __future__ import annotations

import pytest
from support.decision_samples import played, result

from controller.simulation.workload import Drawn
from hack.bench.command import NothingChosenError
from hack.bench.compared import OURS
from hack.bench.decisions.__main__ import chosen
from hack.bench.decisions.asking import Asking, asking
from hack.bench.decisions.goals import goals
from hack.bench.decisions.report import rows_table
from hack.bench.decisions.rows import rows
from hack.bench.decisions.sizing_cost import SizingCost, sizing_cost

SIZING = SizingCost(variants=10_000, models=5000, pods=20_000, cpu_seconds=1.2)
ASKED = Asking(pods=1000, requests=1000, most_per_pod=1)
FIXED = (played("concurrency:16@h100", cost=1600), played("concurrency:32@h100", cost=1000, missed=0.01))


def test_rows_with_shared_results_are_equal_for_other_policies() -> None:
    """Loads, prices, engines and start-up times are equal; only Stowplan's information differs."""
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
def test_loads_have_the_documented_ratio_of_maximum_to_minimum(name: str, ratio: float) -> None:
    """The ratio is that of the curve, without noise."""
    row = rows()[name].scenario
    workload = row.models[0].workload
    assert isinstance(workload, Drawn)
    curve = workload.curve
    rates = [curve.rate(second) for second in range(int(row.duration_seconds) + 1)]

    assert max(rates) / min(rates) == pytest.approx(ratio, rel=0.01)


def test_the_misfit_engine_does_not_match_a_linear_profile() -> None:
    """It decodes more slowly with longer context; the profile stated in the other row is linear."""
    (h100, _), (told, _) = (rows()[name].scenario.variants for name in ("misfit", "misfit-stale-profile"))

    assert not h100.profile.is_even
    assert h100.stated_profile is None
    assert told.stated_profile is not None
    assert told.stated_profile.is_even


def test_every_goal_is_measured() -> None:
    """Goals refer to the best setting, the clairvoyant bound, fixed settings over all rows, and limits."""
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

    assert [goal.line() for goal in goals(results, SIZING, ASKED, slowness=1.5)] == [
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


def test_values_that_were_not_measured_have_no_goal() -> None:
    """The rows may have failed, or have no baseline."""
    of_cycles = goals([], SIZING, ASKED, slowness=1.0)
    found = goals([result("code-x12", ours=FIXED[0])], SIZING, ASKED, slowness=1.0)

    assert len(of_cycles) == 3
    assert [goal.name for goal in found if goal not in of_cycles] == ["reversals_in_code-x12"]


@pytest.mark.parametrize(
    ("row", "most"), [("constant-60", 0.0), ("step", 10.0)], ids=["constant load", "any other"]
)
def test_no_reversal_is_allowed_for_a_constant_load(row: str, most: float) -> None:
    """Other loads have a limit of ten per hour."""
    (goal,) = (
        goal
        for goal in goals([result(row, ours=played(OURS, cost=1, reversals=1))], SIZING, ASKED, slowness=1.0)
        if goal.name.startswith("reversals")
    )

    assert goal.most == most


def test_the_table_lists_stowplan_first_and_marks_a_missing_baseline() -> None:
    """Ratios are Stowplan's cost to that of the other policy; missed shares are listed per priority."""
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


def test_rows_are_selected_by_name_and_keep_the_order_of_the_table() -> None:
    """An empty selection means all rows."""
    assert chosen("step, ramp") == ("ramp", "step")
    assert chosen("") == tuple(rows())
    with pytest.raises(NothingChosenError, match=r"unknown: stairs; known: conv-x12, "):
        chosen("stairs,ramp")


def test_sizing_is_measured_with_variants_whose_pods_all_report() -> None:
    """There are a few variants with one to three pods each."""
    cost = sizing_cost(models=6)

    assert (cost.variants, cost.models) == (12, 6)
    assert 12 <= cost.pods <= 36
    assert cost.cpu_seconds > 0


def test_each_pod_is_scraped_once_per_cycle() -> None:
    """Stub engines count the requests over several cycles of the real reconciler."""
    assert asking(8) == Asking(pods=8, requests=8, most_per_pod=1)
