"""How programs are told to end: one that is still starting must not be taken for one that failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.controlplane.process import end, spawn

# `signal.pause` could miss a signal that arrives just before it, so the loop looks again.
HANDLES = """\
import signal, sys, time
{before}
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
while True: time.sleep(0.01)
"""
PROGRAMS = {
    "one that handles the signal at once": (HANDLES.format(before=""), 7),
    "one whose start takes long": (HANDLES.format(before="sum(range(5_000_000))"), 7),
    "one that has ended by itself": ("import sys; sys.exit(4)", 4),
    "one that ignores the signal": (
        "import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)\nwhile True: signal.pause()",
        None,
    ),
}


def started(program: str, directory: Path) -> subprocess.Popen[str]:
    """Start a program as the demo does."""
    return spawn(
        [sys.executable, "-c", program],
        directory=directory,
        environment=dict(os.environ),
        output=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(("program", "code"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_is_told_to_end_when_it_has_started(program: str, code: int | None, tmp_path: Path) -> None:
    """The signal would end a program without a handler with another code."""
    patience_seconds = 1.0 if code is None else 30.0
    process = started(program, tmp_path)

    assert end(process, patience_seconds=patience_seconds) == code
    assert process.poll() is not None


def test_programs_that_are_ended_as_soon_as_they_are_started_end_as_they_should(tmp_path: Path) -> None:
    """They end by their own handlers, each time."""
    processes = [started(HANDLES.format(before=""), tmp_path) for _ in range(8)]

    assert {end(process, patience_seconds=30.0) for process in processes} == {7}
