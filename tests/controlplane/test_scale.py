"""What many VariantAutoscalings cost the API server, by its own audit log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hack.controlplane import ControlPlane
from hack.scale import fleet
from hack.scale.campaign import LEASE_WRITES_PER_SECOND, running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

COUNT = int(os.environ.get("STOWPLAN_SCALE", "400"))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Run an API server that logs, and nobody else who would ask it."""
    with ControlPlane(audit=True, controller_manager=False, scheduler=False, kwok=False) as started:
        fleet.install(started, COUNT)
        yield started


async def test_idle_cycles_ask_for_nothing_and_noise_costs_at_most_five_writes_a_second(
    plane: ControlPlane,
) -> None:
    """The Lease is all that an idle controller writes.

    When the load begins all engines show their speed at once, and by chance requests come or do not: without
    a limit that is six writes a second for so many.
    """
    async with running(plane, COUNT) as campaign:
        await campaign.phase("start", 4, loaded=False)
        idle = await campaign.phase("idle", 2, loaded=False)
        load = await campaign.phase("load", 6, loaded=True)

    assert idle.requests == {}
    assert idle.lease_writes <= LEASE_WRITES_PER_SECOND * idle.real_seconds + 2
    assert 0 < load.writes_per_second + LEASE_WRITES_PER_SECOND <= 5.0, load.line()
    assert not [what for what in load.requests if what.startswith(("get", "list"))], load.line()
