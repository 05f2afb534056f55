"""Copies live side by side, say why they fail, and leave nothing behind however they end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hack.controlplane import ControlPlane
from hack.controlplane.background import Background
from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import Process
from hack.controlplane.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]

PARENT = """
import json, signal
from hack.controlplane import ControlPlane
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as control_plane:
    pids = [process.pid for process in control_plane.processes.values()]
    print(json.dumps({"pids": pids, "directory": str(control_plane.directory)}), flush=True)
    signal.pause()
"""


@pytest.fixture
def parent() -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a program with a small control plane of its own; give the process and what it says of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield process, said
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def wait_until_gone(pid: int, *, patience_seconds: float = 10.0) -> None:
    """Wait until a process, ours or not, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ready, _, _ = select.select([descriptor], [], [], patience_seconds)
    os.close(descriptor)
    assert ready, f"process {pid} still runs"


def _check_until(stopped: threading.Event, process: Process) -> None:
    while not stopped.is_set():
        process.check()


def test_an_end_that_was_asked_for_is_no_crash(tmp_path: Path) -> None:
    """Whoever watches meanwhile sees nothing wrong; an end that nobody asked for is told."""
    process = Process("sleeper", ["/bin/sleep", "1000"], directory=tmp_path)
    stopped = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            process.start()
            stopped.clear()
            watching = pool.submit(_check_until, stopped, process)
            process.stop()
            stopped.set()
            watching.result()

    process.start()
    os.kill(process.pid, signal.SIGKILL)
    wait_until_gone(process.pid)
    with pytest.raises(ComponentCrashedError, match="sleeper was killed by signal 9"):
        process.check()
    process.stop()


def test_a_restarted_component_is_a_new_process_that_knows_what_the_old_one_knew() -> None:
    """The API server ends and answers again where it was, with what is stored."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as control_plane:
        control_plane.kubectl("create", "namespace", "from-before")
        before = control_plane.processes["kube-apiserver"].pid
        control_plane.restart("kube-apiserver")
        found = control_plane.kubectl("get", "namespace", "from-before", "--output=name").stdout

        assert found == "namespace/from-before\n"
        assert control_plane.processes["kube-apiserver"].pid != before
        control_plane.check()


def test_two_copies_run_side_by_side_and_a_crash_says_why(control_plane: ControlPlane) -> None:
    """A second copy knows nothing of the first, and tells by the end of its log that etcd was killed."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as second:
        second.kubectl("create", "namespace", "only-in-the-second")
        namespaces = control_plane.kubectl("get", "namespaces", "--output=name").stdout
        os.kill(second.processes["etcd"].pid, signal.SIGKILL)
        with pytest.raises(ComponentCrashedError) as crash:
            second.watch(threading.Event())

    assert second.pod_cidr != control_plane.pod_cidr
    assert "only-in-the-second" not in namespaces
    assert str(crash.value).startswith("etcd was killed by signal 9; the last lines of ")
    assert len(str(crash.value).splitlines()) > 1
    assert not second.directory.exists()
    control_plane.check()


def test_nothing_outlives_a_killed_parent(parent: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    """SIGKILL leaves a parent no chance: the kernel ends its children, the next copy removes its files."""
    process, said = parent
    process.kill()
    for pid in said["pids"]:
        wait_until_gone(pid)
    Workspace().remove()

    assert len(said["pids"]) == 2
    assert not Path(said["directory"]).exists()


def test_ctrl_c_leaves_nothing(parent: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    """Ctrl-C reaches the parent's group only; it stops its children in order and removes its files."""
    process, said = parent
    os.killpg(process.pid, signal.SIGINT)
    process.wait()
    for pid in said["pids"]:
        wait_until_gone(pid)

    assert not Path(said["directory"]).exists()


def test_a_copy_in_the_background_is_started_and_stopped_by_name() -> None:
    """`up` and `down` may be repeated; the kubeconfig works in between and `status` tells."""
    name = f"rig-{os.getpid()}"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hack.controlplane", *arguments, f"--name={name}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    started = run("up")
    again = run("up")
    running = run("status")
    stopped = run("down")
    stopped_again = run("down")
    gone = run("status")
    shutil.rmtree(Background(name).directory)

    assert started.returncode == 0, started.stderr
    assert "export KUBECONFIG=" in started.stdout
    assert "is running already" in again.stdout
    assert running.returncode == 0
    assert "is stopped" in stopped.stdout
    assert (stopped_again.returncode, gone.returncode) == (0, 1)
    assert "is not running" in stopped_again.stdout
