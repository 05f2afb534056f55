"""Suspension of the garbage collector while a plan is made."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from controller.variants.solver_worker import without_collection


@pytest.mark.parametrize("was_enabled", [True, False], ids=["initially enabled", "initially disabled"])
def test_the_garbage_collector_is_suspended_and_then_restored(*, was_enabled: bool) -> None:
    """This also holds for nested use, and if the code inside fails."""
    before = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        with suppress(ValueError), without_collection():
            with without_collection():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == was_enabled
    finally:
        (gc.enable if before else gc.disable)()
