"""The load of many VariantAutoscalings on the API server, counted in its audit log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hack.controlplane import ControlPlane
from hack.scale import fleet
from hack.scale.campaign import INTERVAL_SECONDS, LEASE_WRITES_PER_SECOND, run_campaign

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

COUNT = int(os.environ.get("STOWPLAN_SCALE", "200"))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield an API server with an audit log and without other clients."""
    with ControlPlane(audit=True, controller_manager=False, scheduler=False, kwok=False) as started:
        fleet.install(started, COUNT)
        yield started


async def test_idle_cycles_make_no_requests_and_noise_causes_at_most_five_writes_per_second(
    plane: ControlPlane,
) -> None:
    """The Lease is all that an idle controller writes.

    At the start of the load all engines report their speed, and the number of requests is random: without
    a limit this would cause seven writes per second in the first cycle for so many variants.
    """
    async with run_campaign(plane, COUNT) as campaign:
        await campaign.phase("start", 4, loaded=False)
        idle = await campaign.phase("idle", 2, loaded=False)
        load = await campaign.phase("load", 3, loaded=True)

    assert idle.requests == {}
    assert idle.lease_writes <= LEASE_WRITES_PER_SECOND * idle.real_seconds + 2
    most = load.most_writes_of_a_cycle / INTERVAL_SECONDS
    assert 0 < most + LEASE_WRITES_PER_SECOND <= 5.0, load.line()
    assert not [what for what in load.requests if what.startswith(("get", "list"))], load.line()
