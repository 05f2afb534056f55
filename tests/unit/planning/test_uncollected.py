"""The garbage collector rests while a plan is made, and is as it was afterwards."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from controller.uncollected import uncollected


@pytest.mark.parametrize("was_enabled", [True, False], ids=["where it is on", "where it is off"])
def test_it_rests_and_is_as_it_was(*, was_enabled: bool) -> None:
    """Also when what is done meanwhile fails, and when it is asked for twice."""
    before = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        with suppress(ValueError), uncollected():
            with uncollected():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == was_enabled
    finally:
        (gc.enable if before else gc.disable)()
