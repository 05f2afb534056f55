"""Phases of recorded traces, and the compact format in which traces are shipped."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.workload import TraceEntry, decode
from hack.demo.compact_trace import encode
from hack.demo.phases import Phase, requests, thin

entries = st.lists(
    st.tuples(st.integers(0, 4_000_000), st.integers(1, 15_000), st.integers(1, 2_000)), max_size=50
).map(
    lambda rows: tuple(
        TraceEntry(offset_ms=offset, prompt_tokens=prompt, output_tokens=output)
        for offset, prompt, output in sorted(rows)
    )
)


@given(entries)
def test_the_compact_format_round_trips_and_is_reproducible(trace: tuple[TraceEntry, ...]) -> None:
    """Equal traces have equal bytes, and equal bytes give equal traces."""
    assert decode(encode(trace)) == trace
    assert encode(trace) == encode(decode(encode(trace)))


@given(entries, st.floats(0, 1))
def test_thinning_keeps_the_requested_share(trace: tuple[TraceEntry, ...], keep: float) -> None:
    """The number differs by at most half an entry, and the order is kept."""
    kept = list(thin(trace, keep=keep))

    assert abs(len(kept) - keep * len(trace)) <= 0.5 + 1e-6
    assert kept == sorted(kept, key=lambda e: e.offset_ms)


def test_phases_follow_each_other_at_their_own_speed() -> None:
    """A minute at four times the speed ends after 15 s, where the next phase begins."""
    calm = Phase(trace="azure-llm-2023-conv", from_seconds=0, to_seconds=60, speed=4)
    surge = Phase(trace="azure-llm-2023-conv", from_seconds=0, to_seconds=60)

    played = list(requests([calm, surge], start_us=1_000_000))

    half = len(played) // 2
    assert [r.request_id for r in played] == list(range(len(played)))
    assert played[0].arrival_us == 1_000_000
    assert played[half].arrival_us == 16_000_000
    assert played[-1].arrival_us - 16_000_000 == (played[half - 1].arrival_us - 1_000_000) * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"to_seconds": 0}, "less than to_seconds", id="an empty piece"),
        pytest.param({"from_seconds": -1}, "0 or greater", id="a piece before the trace"),
        pytest.param({"speed": 0}, "speed must be greater than 0", id="a speed of zero"),
        pytest.param({"keep": 1.5}, "raise the speed", id="more than the whole trace"),
    ],
)
def test_invalid_phases_are_rejected(change: dict[str, float], message: str) -> None:
    """Each message states what is valid."""
    phase = Phase(trace="azure-llm-2023-conv", from_seconds=0, to_seconds=1)

    with pytest.raises(ValueError, match=message):
        replace(phase, **change)  # type: ignore[arg-type] # the table names fields


def test_a_compact_trace_is_gzipped_csv() -> None:
    """Shipped files can be read with zcat."""
    content = encode((TraceEntry(offset_ms=5, prompt_tokens=374, output_tokens=44),))

    assert list(csv.reader(gzip.decompress(content).decode().splitlines())) == [
        ["gap_ms", "prompt_tokens", "output_tokens"],
        ["5", "374", "44"],
    ]
