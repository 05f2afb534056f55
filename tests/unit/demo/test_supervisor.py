"""Processes that end by themselves come back; real ones, with a control plane that only stands there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, cast

import pytest

from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import Process
from hack.demo.clock import SimulatedClock
from hack.demo.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


class OneProcess:
    """Stands in for an installation with one component, and for a control plane that is well."""

    def __init__(self, directory: Path, command: list[str]) -> None:
        self.processes = {"controller": Process("stowplan-controller", command, directory=directory)}
        self.started = asyncio.Event()

    def start_component(self, name: str) -> None:
        """Start it; ready at once."""
        self.processes[name].start()

    def check(self) -> None:
        """Nothing of the control plane ever crashes here."""


@pytest.fixture
def one(tmp_path: Path) -> Iterator[OneProcess]:
    """Run a component that waits to be killed."""
    made = OneProcess(tmp_path, SLEEP)
    made.start_component("controller")
    yield made
    made.processes["controller"].stop()


def supervising(
    one: OneProcess, notes: asyncio.Queue[str], *, left_alone: frozenset[str] = frozenset()
) -> Supervisor:
    """Build a supervisor whose notes can be waited for."""
    return Supervisor(
        cast("ControlPlane", one),
        cast("Installation", one),
        clock=SimulatedClock(),
        note=notes.put_nowait,
        left_alone=left_alone,
        absence_seconds=0.05,
    )


async def test_a_killed_process_is_started_again_and_the_outage_is_remembered(one: OneProcess) -> None:
    """Killed with the signal that nobody can catch."""
    notes: asyncio.Queue[str] = asyncio.Queue()
    supervisor = supervising(one, notes)
    pid = one.processes["controller"].pid
    task = asyncio.create_task(supervisor.run())

    os.kill(pid, signal.SIGKILL)
    said = [await asyncio.wait_for(notes.get(), 20) for _ in range(2)]
    task.cancel()

    assert "stowplan-controller was killed by signal 9" in said[0]
    assert said[1] == "stowplan-controller is running again"
    assert one.processes["controller"].pid != pid
    assert [outage.component for outage in supervisor.outages] == ["controller"]


async def test_a_process_that_ends_again_and_again_ends_the_demo(tmp_path: Path) -> None:
    """Ten times is enough: what it said last is the error."""
    one = OneProcess(tmp_path, [sys.executable, "-c", "print('no configuration'); raise SystemExit(3)"])
    one.start_component("controller")

    with pytest.raises(ComponentCrashedError, match=r"exit code 3[\s\S]*no configuration"):
        await asyncio.wait_for(supervising(one, asyncio.Queue()).run(), 60)


async def test_a_process_that_shall_stay_away_stays_away(one: OneProcess) -> None:
    """`--without controller` shows what happens then, so nobody may bring it back."""
    notes: asyncio.Queue[str] = asyncio.Queue()
    os.kill(one.processes["controller"].pid, signal.SIGKILL)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(supervising(one, notes, left_alone=frozenset({"controller"})).run(), 0.5)

    assert notes.empty()
