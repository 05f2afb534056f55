"""Traces: shipped files, the compact format, and phases."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.replay import Phase, requests, thin
from controller.simulation.trace import TraceEntry, decode, encode, load_trace, piece, shipped_traces

entries = st.lists(
    st.tuples(st.integers(0, 4_000_000), st.integers(1, 15_000), st.integers(1, 2_000)), max_size=50
).map(
    lambda rows: tuple(
        TraceEntry(offset_ms=offset, prompt_tokens=prompt, output_tokens=output)
        for offset, prompt, output in sorted(rows)
    )
)


@pytest.mark.parametrize(
    ("name", "count", "seconds", "prompt_tokens", "output_tokens"),
    [
        ("azure-llm-2023-code", 8819, 3436, 18_059_974, 245_896),
        ("azure-llm-2023-conv", 19366, 3502, 22_361_870, 4_088_665),
        ("servegen-m-mid-a", 23_040, 8989, 14_471_055, 2_787_927),
        ("servegen-m-mid-b", 38_552, 9000, 12_876_005, 1_633_956),
        ("servegen-m-small", 22_660, 8999, 4_609_627, 663_428),
    ],
)
def test_shipped_traces_are_complete(
    name: str, *, count: int, seconds: int, prompt_tokens: int, output_tokens: int
) -> None:
    """Counts and sums are those of the published files."""
    trace = load_trace(name)

    assert len(trace) == count
    assert round(trace[-1].offset_ms / 1000) == seconds
    assert sum(e.prompt_tokens for e in trace) == prompt_tokens
    assert sum(e.output_tokens for e in trace) == output_tokens
    assert all(a.offset_ms <= b.offset_ms for a, b in pairwise(trace))


def test_an_unknown_trace_is_rejected_with_the_supported_names() -> None:
    """The error lists them."""
    with pytest.raises(ValueError, match="supported values: azure-llm-2023-code, azure-llm-2023-conv"):
        load_trace("azure")

    assert shipped_traces() == (
        "azure-llm-2023-code",
        "azure-llm-2023-conv",
        "servegen-m-mid-a",
        "servegen-m-mid-b",
        "servegen-m-small",
    )


@given(entries)
def test_the_compact_format_round_trips_and_is_reproducible(trace: tuple[TraceEntry, ...]) -> None:
    """Equal traces have equal bytes, and equal bytes give equal traces."""
    assert decode(encode(trace)) == trace
    assert encode(trace) == encode(decode(encode(trace)))


def test_a_file_with_other_columns_is_rejected() -> None:
    """The published columns are not those of the compact format."""
    with pytest.raises(ValueError, match="must be gap_ms,prompt_tokens,output_tokens"):
        decode(gzip.compress(b"TIMESTAMP,ContextTokens,GeneratedTokens\n"))


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
