"""What concerns all tests: the code that programs import, the Hypothesis profile of campaigns, collection."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from support.planes import (  # the fixtures of tests/controlplane and tests/integration
    control_plane,
    empty_namespace,
    installation,
    namespace,
    shared_namespace,
)

__all__ = ["control_plane", "empty_namespace", "installation", "namespace", "shared_namespace"]

# Programs of tests/support run as scripts, without the checkout in their path. They would import what is
# installed: another checkout, if a worktree shares its virtual environment.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")))
)

_OBJECTS_UNTIL_COLLECTION: Final = 20_000
"""New objects until the youngest ones are searched for garbage, 700 by default."""

settings.register_profile("campaign", max_examples=1000, deadline=None)
"""Many new examples of each property, without a time limit for one."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, and leave out later what exists by then.

    Modules and tests stay until the end, and every parallel worker imports all of them. Later, tests create
    so many objects that are used for a moment only that collecting them less often saves time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_OBJECTS_UNTIL_COLLECTION)
        gc.enable()
