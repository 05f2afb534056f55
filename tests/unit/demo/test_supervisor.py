"""Restarts of processes by the demo's supervisor, with real processes and a stub of the control plane."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, cast

import pytest

from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import Process
from hack.demo.phases import SimulatedClock
from hack.demo.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


class OneProcess:
    """A stub of an installation with one component, and of a control plane without crashes."""

    def __init__(self, directory: Path, command: list[str]) -> None:
        self.processes = {"controller": Process("stowplan-controller", command, directory=directory)}
        self.started = asyncio.Event()

    def start_component(self, name: str) -> None:
        """Start the component, which needs no time to be ready."""
        self.processes[name].start()

    def check(self) -> None:
        """Do nothing, since the control plane never crashes."""


@pytest.fixture
def one(tmp_path: Path) -> Iterator[OneProcess]:
    """Run a component that sleeps until it is killed."""
    made = OneProcess(tmp_path, SLEEP)
    made.start_component("controller")
    yield made
    made.processes["controller"].stop()


def supervising(
    one: OneProcess, notes: asyncio.Queue[str], *, left_alone: frozenset[str] = frozenset()
) -> Supervisor:
    """Return a supervisor whose notes are put into a queue."""
    return Supervisor(
        cast("ControlPlane", one),
        cast("Installation", one),
        clock=SimulatedClock(),
        note=notes.put_nowait,
        left_alone=left_alone,
        absence_seconds=0.05,
    )


async def test_a_killed_process_is_restarted_and_the_outage_is_recorded(one: OneProcess) -> None:
    """It is killed by SIGKILL, which cannot be caught."""
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


async def test_a_process_that_keeps_exiting_ends_the_demo(tmp_path: Path) -> None:
    """After ten restarts, there is an error with its last output."""
    one = OneProcess(tmp_path, [sys.executable, "-c", "print('no configuration'); raise SystemExit(3)"])
    one.start_component("controller")

    with pytest.raises(ComponentCrashedError, match=r"exit code 3[\s\S]*no configuration"):
        await asyncio.wait_for(supervising(one, asyncio.Queue()).run(), 60)


async def test_a_process_that_should_stay_down_is_not_restarted(one: OneProcess) -> None:
    """`--without controller` demonstrates the absence of the controller."""
    notes: asyncio.Queue[str] = asyncio.Queue()
    os.kill(one.processes["controller"].pid, signal.SIGKILL)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(supervising(one, notes, left_alone=frozenset({"controller"})).run(), 0.5)

    assert notes.empty()
