"""Wait for what only repeated looks can tell, without taking the CPU from the processes under test."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS: Final = 90.0

_BETWEEN_SECONDS: Final = 0.2
"""Time between two looks: a look with kubectl takes as much CPU time."""

T = TypeVar("T")


def wait_for(look: Callable[[], T], what: str | Callable[[], object]) -> T:
    """Look until a result is truthy, and return it. Fails after a timeout with what was waited for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            pytest.fail(f"not within {PATIENCE_SECONDS:.0f} s: {told}")
        pause()
    return seen


def pause() -> None:
    """Let the processes under test work between two looks."""
    time.sleep(_BETWEEN_SECONDS)
