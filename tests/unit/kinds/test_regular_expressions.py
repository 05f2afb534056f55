"""Validation of users' regular expressions: their length limit, and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from apiserver.kinds.kthena.modelmatch import StringMatch
from apiserver.kinds.kthena.regularexpressions import compile_fault
from apiserver.schema.validation import validate

CHARACTERS: Final = 1_000_000


def test_a_regular_expression_that_is_too_long_is_not_compiled() -> None:
    """The error is about its length, whatever else is wrong with it."""
    (error,) = validate(StringMatch, {"regex": "(" * 513})

    assert error.reason == "FieldValueTooLong"
    assert validate(StringMatch, {"regex": "(" * 512})[0].reason == "FieldValueInvalid"


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells how much memory is used")
def test_compiled_regular_expressions_do_not_stay_in_memory() -> None:
    """A short text can compile to a large program; neither programs nor long texts are kept."""
    compile_fault("warm up")
    before = resident_bytes()

    for number in range(40):
        assert not compile_fault(f"{number}\\pL{{20}}")
        assert not compile_fault(f"{number}{'(' * CHARACTERS}")

    assert resident_bytes() - before < 6_000_000
