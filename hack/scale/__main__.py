"""`python -m hack.scale`: API requests caused by many VariantAutoscalings, phase by phase."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from hack.bench.goals import Goal
from hack.controlplane import ControlPlane
from hack.scale import fleet
from hack.scale.campaign import LEASE_WRITES_PER_SECOND, CyclePhase, run_campaign
from hack.scale.memory import run_servers

_STARTING = 6
"""Cycles until new decisions are made and written to the statuses."""

_IDLE = 5


def main(arguments: list[str]) -> int:
    """Print a line for each phase; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m hack.scale", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=10_000, help="number of VariantAutoscalings (%(default)s)"
    )
    parser.add_argument("--cycles", type=int, default=16, help="number of cycles with load (%(default)s)")
    options = parser.parse_args(arguments)
    with ControlPlane(audit=True, controller_manager=False, scheduler=False, kwok=False) as control_plane:
        fleet.install(control_plane, options.count)
        return asyncio.run(_campaign(control_plane, options.count, options.cycles))


async def _campaign(control_plane: ControlPlane, count: int, cycles: int) -> int:
    began = time.monotonic()
    async with run_campaign(control_plane, count) as campaign:
        print(f"{count} VariantAutoscalings created in {time.monotonic() - began:.0f} s", flush=True)
        phases: dict[str, CyclePhase] = {}
        for name, number, loaded in (
            ("start", _STARTING, False),
            ("idle", _IDLE, False),
            ("load", cycles, True),
        ):
            phases[name] = await campaign.phase(name, number, loaded=loaded)
            print(phases[name].line(), flush=True)
        with run_servers(control_plane) as beside:
            await asyncio.to_thread(beside.convert, count)
            peaks = campaign.peaks_mebibytes() | beside.peaks_mebibytes()
        print("peak memory: " + ", ".join(f"{name} {peak:.0f} MiB" for name, peak in peaks.items()))
    goals = (
        Goal(
            name="writes under load, including those of the Lease",
            value=phases["load"].writes_per_second + LEASE_WRITES_PER_SECOND,
            unit="per second",
            most=5.0,
        ),
        Goal(
            name="requests of idle cycles, without those for the Lease",
            value=float(sum(phases["idle"].requests.values())),
            unit="requests",
            most=0.0,
        ),
    )
    for goal in goals:
        print(goal.line())
    return int(not all(goal.is_met for goal in goals))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
