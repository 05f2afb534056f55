"""Control planes for tests: several at once, crash messages, and cleanup however they end."""

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
from hack.controlplane.cache import Workspace
from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]

PARENT = """
import json, signal, time
from hack.controlplane import ControlPlane
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as control_plane:
    pids = [process.pid for process in control_plane.processes.values()]
    print(json.dumps({"pids": pids, "directory": str(control_plane.directory)}), flush=True)
    while True: time.sleep(0.05)  # `signal.pause` could miss a signal that arrives just before it
"""


@pytest.fixture
def parent() -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a program that starts a small control plane; yield its process and what it prints about it."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield process, said
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def wait_until_gone(pid: int, *, patience_seconds: float = 10.0) -> None:
    """Wait until a process has ended, which may not be a child of this one."""
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


def test_a_requested_stop_is_not_reported_as_a_crash(tmp_path: Path) -> None:
    """Checks during a stop raise nothing; a process that was killed otherwise is reported."""
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


def test_two_control_planes_run_side_by_side_during_a_restart_and_a_crash(
    control_plane: ControlPlane,
) -> None:
    """They share no objects and no pod network. A restarted component is a new process at the same address.

    The objects stay. The error for a killed component contains the last lines of its log.
    """
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as second:
        second.kubectl("create", "namespace", "only-in-the-second")
        before = second.processes["kube-apiserver"].pid
        second.restart("kube-apiserver")
        found = second.kubectl("get", "namespace", "only-in-the-second", "--output=name").stdout
        assert found == "namespace/only-in-the-second\n"
        assert second.processes["kube-apiserver"].pid != before
        second.check()

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


def test_no_process_and_no_file_outlives_a_killed_parent(
    parent: tuple[subprocess.Popen[str], dict[str, Any]],
) -> None:
    """After SIGKILL the kernel ends the children, and the next control plane removes the files."""
    process, said = parent
    process.kill()
    for pid in said["pids"]:
        wait_until_gone(pid)
    Workspace().remove()

    assert len(said["pids"]) == 2
    assert not Path(said["directory"]).exists()


def test_ctrl_c_leaves_no_process_and_no_file(parent: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    """Ctrl-C reaches the parent's process group only; the parent stops its children and removes its files."""
    process, said = parent
    os.killpg(process.pid, signal.SIGINT)
    process.wait()
    for pid in said["pids"]:
        wait_until_gone(pid)

    assert not Path(said["directory"]).exists()


def test_a_control_plane_in_the_background_is_started_and_stopped_by_name() -> None:
    """`up` and `down` can be repeated; `up` prints the kubeconfig, and `status` returns whether it runs."""
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
