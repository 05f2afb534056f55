"""Recorded traces: published formats, and errors of malformed files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.commands.simulate.recordings import read_trace
from controller.simulation.workload import TraceEntry, load_trace
from hack.demo.compact_trace import encode

AZURE = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"


def told(content: bytes) -> list[str]:
    """Return the problems of a file, and check that it has either problems or a trace."""
    trace, problems = read_trace(content, file="t")
    assert bool(trace) != bool(problems)
    return problems


def test_azure_times_with_seven_decimals_become_sorted_offsets() -> None:
    """The lines need not be sorted."""
    trace, problems = read_trace(
        AZURE + b"2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:46.6805900,374,44\n\n", file="t"
    )

    assert not problems
    assert trace == (
        TraceEntry(offset_ms=0, prompt_tokens=374, output_tokens=44),
        TraceEntry(offset_ms=4315, prompt_tokens=396, output_tokens=109),
    )


def test_azure_times_may_be_seconds_since_1970() -> None:
    """With and without decimals, and beside dates."""
    trace, problems = read_trace(
        AZURE + b"1700158550,396,109\n1700158546.68,374,44\n2023-11-16 18:15:51,5,6\n", file="t"
    )

    assert not problems
    assert [item.offset_ms for item in trace] == [0, 3320, 4320]


@pytest.mark.parametrize("moment", ["1700158550000", "-5", "nan", "inf", "1e400", "17OO158550"])
def test_other_numbers_are_no_times(moment: str) -> None:
    """Milliseconds would otherwise be dates in the far future."""
    (problem,) = told(AZURE + f"{moment},396,109\n".encode())

    assert "or 1700158546.68 (s)" in problem


def test_azure_columns_may_be_in_any_order_among_others() -> None:
    """The file may begin with a byte order mark, and times may have a time zone."""
    trace, problems = read_trace(
        b"\xef\xbb\xbfid,GeneratedTokens,ContextTokens,TIMESTAMP\n7,2,5,2024-05-10 00:00:00.009930+00:00\n",
        file="t",
    )

    assert not problems
    assert trace == (TraceEntry(offset_ms=0, prompt_tokens=5, output_tokens=2),)


def test_mooncake_lines_are_read() -> None:
    """Times are in milliseconds from any origin; other members are ignored."""
    trace, problems = read_trace(
        b'{"timestamp": 3000, "input_length": 6955, "output_length": 52, "hash_ids": [1]}\n'
        b'{"timestamp": 4500, "input_length": 10, "output_length": 1}\n',
        file="t",
    )

    assert not problems
    assert trace == (
        TraceEntry(offset_ms=0, prompt_tokens=6955, output_tokens=52),
        TraceEntry(offset_ms=1500, prompt_tokens=10, output_tokens=1),
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", ["t: is empty"], id="an empty file"),
        pytest.param(b"\xff\xfe", ["t: is not UTF-8 text"], id="not UTF-8"),
        pytest.param(AZURE, ["t: contains no request"], id="only a header"),
        pytest.param(
            b"TIMESTAMP,Tokens\n1,2\n",
            ["t:1: columns ContextTokens, GeneratedTokens are missing"],
            id="missing columns",
        ),
        pytest.param(
            AZURE + b"soon,1,2\n2023-11-16 18:15:50,-1,nan\n2023-11-16 18:15:50,1\n",
            [
                "t:2: TIMESTAMP 'soon' must be a time",
                "t:3: ContextTokens '-1' must be a whole number from 1 to 10000000; GeneratedTokens 'nan'",
                "t:4: has 2 columns",
            ],
            id="every invalid line and cell",
        ),
        pytest.param(
            AZURE + b"2023-11-16 18:15:50,1,abc\n",
            ["t:2: GeneratedTokens 'abc' must be a whole number from 1 to 10000000"],
            id="a word instead of a number",
        ),
        pytest.param(
            AZURE + b"2023-11-16 18:15:50,1e999,2\n", ["t:2: ContextTokens '1e999'"], id="too large"
        ),
        pytest.param(AZURE + b"2023-11-16 18:15:50,1.5,2\n", ["t:2: ContextTokens '1.5'"], id="half a token"),
        pytest.param(
            AZURE + b"2023-11-16 18:15:50,1,2\n1970-01-01 00:00:00,1,2\n",
            ["t: spans more than 366 days"],
            id="a gap of decades",
        ),
        pytest.param(
            b'{"timestamp": 1}\n{"timestamp": -1, "input_length": true, "output_length": 1}\n[1]\n{"a\n',
            [
                "t:1: input_length, output_length are missing",
                "t:2: timestamp -1 must be a number of milliseconds, 0 or more; input_length True must",
                "t:3: is not a JSON object",
                "t:4: is not JSON",
            ],
            id="every invalid line of JSON",
        ),
        pytest.param(
            b'{"timestamp": NaN, "input_length": 1, "output_length": 1}', ["t:1: timestamp nan"], id="NaN"
        ),
    ],
)
def test_all_errors_of_a_malformed_file_are_reported(content: bytes, expected: list[str]) -> None:
    """Each error names the line where there is one."""
    found = told(content)

    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_arbitrary_bytes_do_not_crash_the_reader(content: bytes) -> None:
    """The result is either requests or problems."""
    told(content)
    told(AZURE + content)
    told(b'{"timestamp": 1, "input_length": ' + content)


def test_a_shipped_trace_is_unchanged_when_read_in_the_published_format() -> None:
    """It is written in Azure's format first."""
    trace = load_trace("azure-llm-2023-code")[:500]
    lines = "".join(
        f"2023-11-16 18:{entry.offset_ms // 60000:02}:{entry.offset_ms % 60000 / 1000:010.7f},"
        f"{entry.prompt_tokens},{entry.output_tokens}\n"
        for entry in trace
    )

    assert encode(read_trace(AZURE + lines.encode(), file="t")[0]) == encode(trace)
