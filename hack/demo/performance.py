"""One performance of the demo on a running control plane with Stowplan installed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from apiserver.cluster.client import Cluster
from controller.caches import Caches
from hack.calling.cores import memory_mebibytes
from hack.controlplane import ControlPlane
from hack.controlplane.binaries import provide_binaries
from hack.controlplane.progress import ProgressLine
from hack.demo import scenario
from hack.demo.checks import findings
from hack.demo.comparison import account_of, plain_accounts
from hack.demo.director import Director
from hack.demo.engines import EngineHost
from hack.demo.phases import SimulatedClock
from hack.demo.shows import LiveScreen, PlainLines, pick_frame, save_picture
from hack.demo.summary import (
    first_cause,
    how_to_look_around,
    print_cause,
    print_comparison,
    print_summary,
)
from hack.demo.supervisor import Supervisor
from hack.demo.traffic import Traffic
from hack.installation import Installation
from hack.installation.installation import NAMESPACE

BROKEN = 3
"""Exit code if the demo itself failed; what was played until then is still checked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PerformanceOptions:
    """User settings of a performance: the options of the command line."""

    keep: bool
    plain: bool
    speed: float
    without: Sequence[str]
    picture: Path | None


async def perform(
    control_plane: ControlPlane, installation: Installation, *, console: Console, options: PerformanceOptions
) -> int:
    """Play the scenario, print what was checked, and return the exit code.

    If something of the demo itself breaks, it ends there: its cause is printed as one line at the end.
    """
    clock, traffic = (
        SimulatedClock(speed=options.speed),
        Traffic(scenario.arrivals() | scenario.model_arrivals()),
    )
    show = PlainLines() if options.plain or not console.is_terminal else LiveScreen(console)
    cluster = await Cluster.connect(control_plane.kubeconfig)
    async with cluster, EngineHost(traffic.fleet, clock) as host:
        director = Director(
            control_plane=control_plane,
            caches=Caches(cluster, namespace=NAMESPACE, annotated=True),
            host=host,
            traffic=traffic,
            clock=clock,
            show=show,
        )
        supervisor = Supervisor(
            control_plane, installation, clock=clock, note=director.note, left_alone=options.without
        )
        stage = (director.caches.run(), director.run_engines(), supervisor.run())
        try:
            async with asyncio.TaskGroup() as group:
                background = [group.create_task(work) for work in stage]
                try:
                    await _play(director, installation, options)
                finally:
                    show.close()
                    director.history.outages += supervisor.outages
                plain = await asyncio.to_thread(plain_accounts)
                print_comparison(console, [account_of(director.history, policy="Stowplan"), *plain])
                code = _conclude(director, installation, console=console, options=options)
                if options.keep:
                    await _stay(control_plane)
                for task in background:
                    task.cancel()
        except* Exception as broken:  # noqa: BLE001 (whatever it is, what was played is still reported)
            print_summary(console, findings(director.history))
            print_cause(console, first_cause(broken))
            code = BROKEN
    return code


async def _play(director: Director, installation: Installation, options: PerformanceOptions) -> None:
    await director.caches.wait_until_synced()
    await director.set_the_scene()
    for name in sorted({*options.without}):
        director.note(f"stowplan-{name} is stopped and not restarted")
        await asyncio.to_thread(installation.processes[name].stop)
    await director.play()
    await director.play_model()


def _conclude(
    director: Director, installation: Installation, *, console: Console, options: PerformanceOptions
) -> int:
    if options.picture is not None:
        save_picture(pick_frame(director.frames), options.picture, title="make demo")
        console.print(f"the screen was saved to {options.picture}")
    for name, process in installation.processes.items():
        if name not in options.without:
            resident = memory_mebibytes("VmRSS", process.pid)
            console.print(f"stowplan-{name}: {resident:.0f} MiB resident", highlight=False)
    checks = findings(director.history)
    print_summary(console, checks)
    return 0 if all(finding.holds for finding in checks) else 1


async def _stay(control_plane: ControlPlane) -> None:
    kubectl = provide_binaries(ProgressLine())["kubectl"]
    print(how_to_look_around(kubectl=kubectl, kubeconfig=control_plane.kubeconfig), flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
