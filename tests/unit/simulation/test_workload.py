"""Requests from traces and from load curves, and the included traces."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.workload import (
    Curve,
    DrawnArrivals,
    Shape,
    TraceEntry,
    TraceReplay,
    included_traces,
    load_trace,
    piece,
    requests,
)

TRACE = load_trace("azure-llm-2023-conv")


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        pytest.param(Curve(shape="constant", high=7), {0: 7, 99: 7}, id="constant"),
        pytest.param(Curve(shape="step", low=3, high=9, at_seconds=50), {49: 3, 50: 9}, id="step"),
        pytest.param(
            Curve(shape="spike", low=4, high=16, at_seconds=10, length_seconds=5, period_seconds=100),
            {9: 4, 10: 16, 14: 16, 15: 4, 112: 16, 116: 4},
            id="a periodic spike",
        ),
        pytest.param(
            Curve(shape="spike", low=4, high=16, at_seconds=10, length_seconds=5),
            {12: 16, 112: 4},
            id="one spike",
        ),
        pytest.param(
            Curve(shape="ramp", low=20, high=120, at_seconds=100, length_seconds=200),
            {0: 20, 100: 20, 200: 70, 300: 120, 999: 120},
            id="ramp",
        ),
        pytest.param(
            Curve(shape="sine", low=10, high=100, period_seconds=2400), {0: 10, 600: 55, 1200: 100}, id="sine"
        ),
    ],
)
def test_curves_have_the_expected_rates(curve: Curve, expected: dict[float, float]) -> None:
    """Each case lists rates at some times."""
    assert {at: curve.rate(at) for at in expected} == pytest.approx(expected)


@pytest.mark.parametrize(("shape", "field"), [("sine", "period"), ("spike", "length"), ("ramp", "length")])
def test_a_curve_without_its_period_or_length_is_rejected(shape: Shape, field: str) -> None:
    """The error names the field and the shape."""
    with pytest.raises(ValueError, match=f"{field}_seconds must be greater than 0 for a {shape}"):
        Curve(shape=shape, high=1)


@given(st.integers(0, 5), st.sampled_from(["step", "ramp", "sine"]))
def test_arrivals_follow_the_curve(seed: int, shape: str) -> None:
    """Their number is within four standard deviations of the integral; they are sorted and reproducible."""
    curve = Curve(shape=shape, low=5, high=20, at_seconds=200, length_seconds=100, period_seconds=500)  # type: ignore[arg-type] # one of the words
    drawn = DrawnArrivals(curve=curve, lengths=TRACE)
    made = requests(drawn, seconds=400, warm_up_seconds=0, seed=seed)
    mean = sum(curve.rate(second + 0.5) for second in range(400))

    assert abs(len(made) - mean) < 4 * mean**0.5 + 20
    assert [item.arrival_us for item in made] == sorted(item.arrival_us for item in made)
    assert made == requests(drawn, seconds=400, warm_up_seconds=0, seed=seed)


def test_noise_that_brings_the_rate_to_zero_leaves_times_without_arrivals() -> None:
    """The rate is never negative."""
    drawn = DrawnArrivals(curve=Curve(shape="constant", high=5), lengths=TRACE, noise=0.9)
    made = requests(drawn, seconds=3600, warm_up_seconds=0, seed=1)
    gaps = [after.arrival_us - before.arrival_us for before, after in pairwise(made)]

    assert max(gaps) > 30_000_000


def test_noise_varies_slowly_and_keeps_the_mean() -> None:
    """With noise of 10 %, counts per minute within an hour vary more than by Poisson arrivals alone."""

    def minutes(noise: float) -> list[int]:
        curve = Curve(shape="constant", high=50)
        made = requests(
            DrawnArrivals(curve=curve, lengths=TRACE, noise=noise), seconds=3600, warm_up_seconds=0, seed=3
        )
        counts = [0] * 60
        for item in made:
            counts[item.arrival_us // 60_000_000] += 1
        return counts

    def spread(counts: list[int]) -> float:
        mean = sum(counts) / len(counts)
        return math.sqrt(sum((count - mean) ** 2 for count in counts) / len(counts))

    noisy = minutes(0.1)
    assert spread(noisy) > 2.5 * spread(minutes(0.0))
    assert sum(noisy) == pytest.approx(180_000, rel=0.1)


def test_copies_arrive_within_the_jitter_after_the_original() -> None:
    """There are three of each entry; those after the end are omitted."""
    trace = (
        TraceEntry(offset_ms=0, prompt_tokens=1, output_tokens=1),
        TraceEntry(offset_ms=9_999, prompt_tokens=2, output_tokens=2),
    )
    made = requests(
        TraceReplay(trace=trace, copies=3, jitter_seconds=5), seconds=10, warm_up_seconds=0, seed=1
    )

    assert [item.prompt_tokens for item in made].count(1) == 3
    assert all(item.arrival_us <= 5_000_000 for item in made if item.prompt_tokens == 1)
    assert [item.request_id for item in made] == list(range(len(made)))
    assert 4 <= len(made) <= 6


def test_the_warm_up_repeats_the_beginning_of_the_trace() -> None:
    """The scored part is the same with and without a warm-up."""
    played = TraceReplay(trace=TRACE, copies=2)
    cold = requests(played, seconds=900, warm_up_seconds=0, seed=1)
    warm = requests(played, seconds=900, warm_up_seconds=600, seed=1)
    ahead = len(warm) - len(cold)

    assert ahead == sum(item.arrival_us < 600_000_000 for item in cold)
    assert [item.arrival_us - 600_000_000 for item in warm[ahead:]] == [item.arrival_us for item in cold]
    assert [item.arrival_us for item in warm[:ahead]] == [item.arrival_us for item in cold[:ahead]]


entries = st.lists(
    st.tuples(st.integers(0, 4_000_000), st.integers(1, 15_000), st.integers(1, 2_000)), max_size=50
).map(
    lambda rows: tuple(
        TraceEntry(offset_ms=offset, prompt_tokens=prompt, output_tokens=output)
        for offset, prompt, output in sorted(rows)
    )
)


PUBLISHED = [
    ("azure-llm-2023-code", 8819, 3436, 18_059_974, 245_896),
    ("azure-llm-2023-conv", 19366, 3502, 22_361_870, 4_088_665),
    ("servegen-m-mid-a", 23_040, 8989, 14_471_055, 2_787_927),
    ("servegen-m-mid-b", 38_552, 9000, 12_876_005, 1_633_956),
    ("servegen-m-small", 22_660, 8999, 4_609_627, 663_428),
]


@pytest.mark.parametrize(("name", "count", "seconds", "prompt_tokens", "output_tokens"), PUBLISHED)
def test_included_traces_are_complete(
    name: str, *, count: int, seconds: int, prompt_tokens: int, output_tokens: int
) -> None:
    """Counts and sums are those of the published files."""
    trace = load_trace(name)

    assert len(trace) == count
    assert round(trace[-1].offset_ms / 1000) == seconds
    assert sum(e.prompt_tokens for e in trace) == prompt_tokens
    assert sum(e.output_tokens for e in trace) == output_tokens
    assert all(a.offset_ms <= b.offset_ms for a, b in pairwise(trace))
    assert included_traces() == tuple(name for name, *_ in PUBLISHED)


@given(entries, st.integers(0, 4000), st.integers(0, 4000))
def test_pieces_of_a_trace_neither_overlap_nor_leave_gaps(
    trace: tuple[TraceEntry, ...], a: int, b: int
) -> None:
    """Cut at any two times, the three pieces together are the trace."""
    first, second = sorted((a, b))
    cuts = (0, first, second, 5000)

    pieces = [piece(trace, from_seconds=x, to_seconds=y) for x, y in pairwise(cuts)]

    rebuilt = [e.offset_ms + x * 1000 for x, part in zip(cuts, pieces, strict=False) for e in part]
    assert rebuilt == [e.offset_ms for e in trace]
