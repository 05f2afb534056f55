"""What is learned about capacity, what is remembered, and what is guessed for variants that never ran."""

from __future__ import annotations

from typing import Any

import pytest
from controller.planning.capacity import learn
from planning_builders import sample, variant

from controller.planning.decision import CapacitySource
from controller.planning.settings import Settings
from controller.planning.snapshot import ReplicaSample, Variant
from controller.planning.state import PlanningState

SETTINGS = Settings(window_length=3, window_expiry_cycles=2)
FULL = {"waiting": 9, "avg_input_tokens": 100.0, "avg_output_tokens": 200.0}


def _engine(report: ReplicaSample, **changes: Any) -> Variant:
    return variant("a", "n", report=report, max_num_seqs=10_000, max_num_batched_tokens=10**6, **changes)


def _cycles(*reports: ReplicaSample) -> list[tuple[int, CapacitySource]]:
    """Return what is known of the same engine after each report."""
    state, known = PlanningState(), []
    for report in reports:
        capacities, state = learn([_engine(report)], state, SETTINGS)
        known.append((capacities["llm", "a"].tokens, capacities["llm", "a"].source))
    return known


def test_an_engine_must_stay_full_before_it_is_believed() -> None:
    """The first full report may come from an engine that is still filling up; the second one counts."""
    memory, observed = _cycles(sample(in_use=300, **FULL), sample(in_use=8_000, **FULL))

    assert memory == (12_800, CapacitySource.MEMORY)
    assert observed == (8_000, CapacitySource.OBSERVED)


def test_what_was_observed_is_remembered_and_in_the_end_forgotten() -> None:
    """A relaxed engine keeps its observed capacity for a while, else it would flap; not for ever."""
    full, calm = sample(in_use=8_000, **FULL), sample(in_use=100, **FULL | {"waiting": 0})

    sources = [source for _, source in _cycles(full, full, calm, calm, calm)]

    historical, memory = CapacitySource.HISTORICAL, CapacitySource.MEMORY
    assert sources == [memory, CapacitySource.OBSERVED, historical, historical, memory]


def test_the_largest_of_the_last_observations_counts() -> None:
    """A dip does not shrink the capacity until it lasts for the whole window."""
    dip = [sample(in_use=tokens, **FULL) for tokens in (9_000, 9_000, 2_000, 2_000, 2_000)]

    assert [tokens for tokens, _ in _cycles(*dip)] == [12_800, 9_000, 9_000, 9_000, 2_000]


def test_other_output_lengths_have_their_own_history() -> None:
    """Capacity depends on the length of the answers."""
    full = sample(in_use=8_000, **FULL)
    long = sample(in_use=100, avg_input_tokens=100.0, avg_output_tokens=600.0)

    assert _cycles(full, full, long)[-1] == (12_800, CapacitySource.MEMORY)


def test_old_reports_are_no_observations() -> None:
    """A report that is no longer fresh says nothing about what an engine holds now."""
    old = sample(in_use=8_000, age_seconds=61, **FULL)

    assert _cycles(old, old)[-1] == (12_800, CapacitySource.MEMORY)


def test_memory_of_a_model_that_is_gone_is_dropped() -> None:
    """The state does not grow with every model that ever ran."""
    full = sample(in_use=8_000, **FULL)
    _, state = learn([_engine(full)], PlanningState(), SETTINGS)
    _, state = learn([_engine(full)], state, SETTINGS)

    _, after = learn([], state, SETTINGS)

    assert state.windows
    assert after == PlanningState()


def test_last_known_capacity_outlives_the_last_replica() -> None:
    """A variant at zero is worth what it was worth."""
    _, state = learn([_engine(sample(16_000))], PlanningState(), SETTINGS)

    capacities, _ = learn([variant("a")], state, SETTINGS)

    assert (capacities["llm", "a"].tokens, capacities["llm", "a"].source) == (
        12_800,
        CapacitySource.LAST_KNOWN,
    )


def test_after_a_restart_the_status_knows() -> None:
    """An empty state is enough: the capacity was published."""
    capacities, state = learn([variant("a", published_capacity_tokens=7_777)], PlanningState(), SETTINGS)

    assert capacities["llm", "a"].tokens == 7_777
    assert [known.tokens for known in state.capacities] == [7_777]


LENGTHS = {"avg_input_tokens": 100.0, "avg_output_tokens": 200.0}


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param({"size": 2}, 12_800, id="the same hardware holds the same"),
        pytest.param({"size": 1}, 6_400, id="half the accelerators: at most half"),
        pytest.param({"size": 8}, 12_800, id="more accelerators: no more until proven"),
        pytest.param({"accelerator": "L40S", "size": 2, "cost": "4"}, 5_120, id="cheaper: worth its price"),
        pytest.param({"accelerator": "B200", "size": 2, "cost": "40"}, 12_800, id="dearer: not until proven"),
        pytest.param({"accelerator": "L40S", "size": 2, "cost": "0"}, 12_800, id="free: no comparison"),
        pytest.param({"size": 2, "cost": "4"}, 12_800, id="cheaper on the same hardware: a matter of price"),
        pytest.param({"size": 2, "max_num_seqs": 10}, 2_000, id="batch limits bind"),
        pytest.param({"size": 0}, 12_800, id="none at all: no comparison"),
    ],
)
def test_estimate_for_a_variant_that_never_ran(new: dict[str, Any], want: int) -> None:
    """It can be chosen, on cautious assumptions drawn from a running sibling."""
    running = variant("a", "n", size=2, report=sample(16_000, **LENGTHS))

    capacities, state = learn([running, variant("b", **new)], PlanningState(), SETTINGS)

    assert (capacities["llm", "b"].tokens, capacities["llm", "b"].source) == (want, CapacitySource.ESTIMATED)
    assert [known.name for known in state.capacities] == ["a"]


def test_nothing_to_go_by_is_unknown() -> None:
    """No sibling, no lengths, no capacity: not zero, not a default."""
    assert learn([variant("a")], PlanningState(), SETTINGS) == ({}, PlanningState())
