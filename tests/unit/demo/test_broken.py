"""A demo that itself fails: one line with the cause."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hack.controlplane.errors import KubectlFailedError
from hack.demo.summary import first_cause, print_cause

ERRORS = {
    "of the rig": (
        KubectlFailedError("kubectl apply:\n  refused"),
        "the demo itself failed: kubectl apply: refused",
    ),
    "of anything else": (
        IndexError("list index out of range"),
        "the demo itself failed: IndexError: list index out of range",
    ),
    "without a message": (ValueError(), "the demo itself failed: ValueError: no message"),
}


@pytest.mark.parametrize(("error", "line"), ERRORS.values(), ids=ERRORS.keys())
def test_the_cause_is_one_line_with_its_place(error: Exception, line: str) -> None:
    """It is that of the task that failed first, however deeply the groups are nested."""
    out = io.StringIO()
    with pytest.raises(type(error)) as raised:
        raise error
    group = ExceptionGroup("tasks", [ExceptionGroup("more", [raised.value])])

    print_cause(Console(file=out, width=40), first_cause(group))

    (text,) = out.getvalue().splitlines()
    assert text.startswith(f"{line} (test_broken.py:")
