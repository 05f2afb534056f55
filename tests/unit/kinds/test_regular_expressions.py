"""What judging the regular expressions of users leaves behind: verdicts on short ones, and no program."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from apiserver.kinds.kthena.modelmatch import StringMatch
from apiserver.kinds.kthena.regularexpressions import compile_fault
from apiserver.schema.validation import validate

CHARACTERS: Final = 1_000_000


def test_a_text_beyond_its_bound_is_not_compiled() -> None:
    """It is too long; what else is wrong with it is not looked for."""
    (error,) = validate(StringMatch, {"regex": "(" * 513})

    assert error.reason == "FieldValueTooLong"
    assert validate(StringMatch, {"regex": "(" * 512})[0].reason == "FieldValueInvalid"


def resident_bytes() -> int:
    """Return how much memory of this process is in use."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells how much memory is used")
def test_programs_of_expressions_are_not_kept() -> None:
    """A short text may make a large program: neither it nor a long text stays in memory."""
    compile_fault("warm up")
    before = resident_bytes()

    for number in range(40):
        assert not compile_fault(f"{number}\\pL{{20}}")
        assert not compile_fault(f"{number}{'(' * CHARACTERS}")

    assert resident_bytes() - before < 6_000_000
