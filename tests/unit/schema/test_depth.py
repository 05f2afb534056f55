"""Truncation of JSON text that is nested deeply."""

from __future__ import annotations

import time

import pytest

from apiserver.schema.json import LEVELS, without_depths

CUT = {
    "shallow text is unchanged": (b'{"a": ["]]]]", {"b": 1}]}', b'{"a": ["]]]]", {"b": 1}]}'),
    "a value nested too deeply becomes null": (
        b"[" * LEVELS + b"[[1], 2], 3" + b"]" * LEVELS,
        b"[" * LEVELS + b"null, 3" + b"]" * LEVELS,
    ),
    "each of several deep values becomes null": (
        b"[" * LEVELS + b'{"}": "]"}, {}, 4' + b"]" * LEVELS,
        b"[" * LEVELS + b"null, null, 4" + b"]" * LEVELS,
    ),
    "text with more levels than API servers accept is truncated": (
        b"[" * 20_000 + b"]" * 20_000,
        b"[" * LEVELS,
    ),
    "truncated text remains truncated": (b"[" * (LEVELS + 9), b"[" * LEVELS + b"null"),
    "an escaped quote does not end a string": (rb'["\"[", "\\", []]', rb'["\"[", "\\", []]'),
    "a string without an end is unchanged": (rb'[[], "\"[]', rb'[[], "\"[]'),
    "a backslash at the end is unchanged": (b'["[\\', b'["[\\'),
}


@pytest.mark.parametrize(("text", "want"), CUT.values(), ids=CUT.keys())
def test_text_is_truncated_at_a_nesting_depth(text: bytes, want: bytes) -> None:
    """Everything above that depth is unchanged."""
    assert without_depths(text) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * LEVELS + b'"' + b'\\"' * 500_000, id="a string without an end"),
        pytest.param(b"[" * LEVELS + b" " * 1_000_000, id="much behind the last bracket"),
        pytest.param(b"[" * 1_000_000, id="brackets without an end"),
    ],
)
def test_invalid_text_takes_linear_time(text: bytes) -> None:
    """Any client that reaches the port can send it. In quadratic time, it would take an hour."""
    began = time.process_time()

    without_depths(text)

    assert time.process_time() - began < 10.0
