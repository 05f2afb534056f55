"""What concerns all tests: the Hypothesis profile of campaigns, and a faster collection."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("campaign", max_examples=1000, deadline=None)
"""Many new examples of each property, without a time limit for one."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, and leave out later what exists by then.

    Modules and tests stay until the end, and every parallel worker imports all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
