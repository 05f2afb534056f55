"""A named control plane in the background, run by a supervisor process that outlives the terminal."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from hack.controlplane.cache import cache_directory, try_lock
from hack.controlplane.controlplane import ControlPlane
from hack.controlplane.errors import ControlPlaneError, NotRunningError

_ROOT = Path(__file__).parents[2]
_POLL_SECONDS = 0.1
_READY_SECONDS = 180.0
_STOP_SECONDS = 40.0


class Background:
    """One background control plane, identified by its name.

    Its directory contains `pid` (locked while the supervisor runs), `kubeconfig` (whose path is the same for
    every start), `state.json` (once ready) and `supervisor.log`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = cache_directory() / "background" / name
        self.kubeconfig = self.directory / "kubeconfig"
        self.log = self.directory / "supervisor.log"
        self._pid = self.directory / "pid"
        self._state = self.directory / "state.json"

    def is_running(self) -> bool:
        """Tell whether its supervisor runs, ready or not."""
        if not self._pid.exists():
            return False
        descriptor = try_lock(self._pid)
        if descriptor is None:
            return True
        os.close(descriptor)
        return False

    def state(self) -> dict[str, str]:
        """Return `server` and `directory` of the running instance. Raises NotRunningError without one."""
        if not self.is_running() or not self._state.exists():
            raise NotRunningError(f"no control plane {self.name!r} is ready; its log: {self.log}")
        state: dict[str, str] = json.loads(self._state.read_text())
        return state

    def start(self, *, prometheus: bool) -> None:
        """Start the supervisor and wait until it is ready. Raises ControlPlaneError with its log."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._state.unlink(missing_ok=True)
        command = [sys.executable, "-m", "hack.controlplane", "supervise", f"--name={self.name}"]
        with self.log.open("wb") as log:
            supervisor = subprocess.Popen(
                [*command, *(("--prometheus",) if prometheus else ())],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready(supervisor)
        except BaseException:
            supervisor.terminate()
            supervisor.wait()
            raise

    def stop(self) -> None:
        """Stop the supervisor and its processes. Raises NotRunningError if there is none."""
        if not self.is_running():
            raise NotRunningError(f"no control plane {self.name!r} is running")
        deadline = time.monotonic() + _STOP_SECONDS
        is_told = False
        while self.is_running():
            pid = self._pid.read_text()  # empty until the supervisor has written it
            is_late = time.monotonic() > deadline
            if pid and (is_late or not is_told):
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(int(pid), signal.SIGKILL if is_late else signal.SIGTERM)
                is_told = True  # its processes die with it
            time.sleep(_POLL_SECONDS)

    def supervise(self, *, prometheus: bool) -> None:
        """Run a control plane as the supervisor until SIGTERM, SIGINT or the crash of a component."""
        descriptor = try_lock(self._pid)
        if descriptor is None:
            raise ControlPlaneError(f"a control plane {self.name!r} is running already")
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        stop = threading.Event()

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            stop.set()

        with ControlPlane(prometheus=prometheus) as control_plane:
            # Only now, because a signal during the start should interrupt it.
            signal.signal(signal.SIGTERM, on_signal)
            signal.signal(signal.SIGINT, on_signal)
            shutil.copyfile(control_plane.kubeconfig, self.kubeconfig)
            self.kubeconfig.chmod(0o600)
            state = {"server": control_plane.server, "directory": str(control_plane.directory)}
            if prometheus:
                state["prometheus"] = control_plane.prometheus_url
            partial = self._state.with_suffix(".partial")
            partial.write_text(json.dumps(state))
            partial.replace(self._state)
            control_plane.watch(stop)

    def _wait_until_ready(self, supervisor: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._state.exists():
            if supervisor.poll() is not None:
                raise ControlPlaneError(f"the control plane did not start:\n{self.log.read_text()}")
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f"the control plane is not ready after {_READY_SECONDS:.0f} s; see {self.log}"
                )
            time.sleep(_POLL_SECONDS)
