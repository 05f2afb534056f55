"""The saturation rules, row by row against what the reference analyzer's own tests assert."""

from __future__ import annotations

import pytest
from controller.planning.saturation import (
    Capacity,
    derived_capacity,
    is_full,
    median_capacity,
    memory_capacity,
    output_length,
    replica_capacity,
    tokens_in_use,
)
from planning_builders import sample, variant

from controller.planning.decision import CapacitySource
from controller.planning.settings import Settings

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("in_use", "waiting", "window", "observed", "want", "source"),
    [
        pytest.param(
            5000, 0, (), False, 12800, CapacitySource.MEMORY, id="an idle engine is bound by memory"
        ),
        pytest.param(
            8000, 6, (8000,), True, 8000, CapacitySource.OBSERVED, id="a full engine by what it holds"
        ),
        pytest.param(
            6000, 2, (8000,), False, 8000, CapacitySource.HISTORICAL, id="it remembers when relaxed"
        ),
        pytest.param(6000, 2, (), False, 12800, CapacitySource.MEMORY, id="other lengths have no history"),
        pytest.param(
            15000, 6, (15000,), True, 12800, CapacitySource.MEMORY, id="memory caps what was observed"
        ),
        pytest.param(
            3000, 6, (8000, 3000), True, 8000, CapacitySource.OBSERVED, id="filling up shows too little"
        ),
    ],
)
def test_replica_capacity(
    in_use: int, waiting: int, window: tuple[int, ...], *, observed: bool, want: int, source: CapacitySource
) -> None:
    """Capacity is the lesser of memory and what a full engine was seen to hold."""
    report = sample(16_000, in_use=in_use, waiting=waiting)

    capacity = replica_capacity(variant("a"), report, window=window, observed=observed, settings=SETTINGS)

    assert (capacity.tokens, capacity.source) == (want, source)


@pytest.mark.parametrize(
    ("batched", "seqs", "lengths", "want"),
    [
        pytest.param(2048, 256, (500, 100), 140_800, id="256 sequences of 550 tokens"),
        pytest.param(8192, 64, (100, 200), 12_800, id="64 sequences of 200 tokens"),
        pytest.param(2048, 256, (3900, 100), 201_450, id="the token budget binds: 51 sequences"),
        pytest.param(2048, 256, (500, 0), None, id="no output, no estimate"),
        pytest.param(2048, 256, (None, 100), None, id="an unknown length is not zero"),
    ],
)
def test_derived_capacity(
    batched: int, seqs: int, lengths: tuple[float | None, float | None], want: int | None
) -> None:
    """Batch limits and request lengths give the tokens that a batch holds."""
    limited = variant("a", max_num_batched_tokens=batched, max_num_seqs=seqs)

    assert derived_capacity(limited, avg_input_tokens=lengths[0], avg_output_tokens=lengths[1]) == want


def test_derived_capacity_is_capped_by_memory() -> None:
    """Batch limits beyond the KV cache don't count."""
    report = sample(16_000, avg_input_tokens=500, avg_output_tokens=100)

    capacity = replica_capacity(
        variant("a", max_num_batched_tokens=2048), report, window=(), observed=False, settings=SETTINGS
    )

    assert capacity == Capacity(tokens=12_800, source=CapacitySource.MEMORY)


def test_memory_capacity_is_the_usable_share() -> None:
    """k1 is the share of the KV cache below the threshold."""
    assert memory_capacity(sample(16_000), SETTINGS) == 12_800


def test_tokens_in_use() -> None:
    """Usage times size."""
    assert tokens_in_use(sample(16_000, in_use=5_000)) == pytest.approx(5_000)


@pytest.mark.parametrize(
    ("waiting", "in_use", "want"),
    [
        pytest.param(5, 100, True, id="requests queue while others run"),
        pytest.param(4, 100, False, id="a short queue is not full"),
        pytest.param(9, 0, False, id="nothing runs: it is starting, not full"),
    ],
)
def test_is_full(waiting: int, in_use: int, *, want: bool) -> None:
    """An engine is full when its queue is long and something runs."""
    assert is_full(sample(16_000, in_use=in_use, waiting=waiting), SETTINGS) is want


@pytest.mark.parametrize(
    ("tokens", "want"), [(0, "short"), (99.9, "short"), (100, "medium"), (499, "medium"), (500, "long")]
)
def test_output_length(tokens: float, want: str) -> None:
    """The classes begin at 100 and 500 tokens."""
    assert output_length(tokens) == want


@pytest.mark.parametrize(("tokens", "want"), [((7,), 7), ((1, 9), 5), ((1, 8, 1_000), 8), ((1, 2, 4, 9), 3)])
def test_median_capacity(tokens: tuple[int, ...], want: int) -> None:
    """One odd engine does not speak for all."""
    capacities = [Capacity(tokens=value, source=CapacitySource.MEMORY) for value in tokens]

    assert median_capacity(capacities).tokens == want
