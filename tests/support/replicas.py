"""Additional processes of an installation's components, as in a cluster, and concurrent callers."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from typing import Any, Final, Self

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client
from hack.controlplane.errors import ComponentCrashedError
from hack.controlplane.process import Probe, wait_until_ready
from hack.installation.installation import process_of
from support.campaign import TIMES

SERVING_PORT = 9443
HEALTH_PORT = 8081
PATIENCE_SECONDS = 60.0

_PACE_SECONDS: Final = 0.1 if TIMES == 1 else 0.0
"""Time between two calls, so that callers leave the CPU to the called; campaigns have none."""


class Replica:
    """One of several processes of a component, on its own address.

    `changes` are made to the component's configuration, which an `Installation` has written.
    """

    def __init__(
        self, control_plane: ControlPlane, component: str, number: int, **changes: dict[str, Any]
    ) -> None:
        self._address = control_plane.allocate_address()
        self.component = component
        self.target = (self._address, SERVING_PORT)
        directory = control_plane.directory
        document: dict[str, Any] = yaml.safe_load(
            (directory / f"{component}.yaml").read_text(encoding="utf-8")
        )
        document["serving"] |= {"bindAddress": self._address, "drainSeconds": 2}
        for section, values in changes.items():
            document[section] |= values
        name = f"{component}-{number}"
        self._process = process_of(component, document, directory / f"{name}.yaml", log=name)

    @property
    def pid(self) -> int:
        """Id of the running process."""
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self._process.start()
        probe = Probe(url=f"http://{self._address}:{HEALTH_PORT}/readyz")
        wait_until_ready(self._process, probe, patience_seconds=PATIENCE_SECONDS)

    def stop(self) -> None:
        """Terminate it, as a kubelet does, and wait until it has ended."""
        self._process.stop(patience_seconds=PATIENCE_SECONDS)

    def stop_beside(self, note: Callable[[], None]) -> None:
        """Terminate it while another thread is notified at the same time, as endpoints are."""
        heard = threading.Thread(target=note)
        heard.start()
        self.stop()
        heard.join()

    def kill(self) -> None:
        """Kill it, as the kernel does when memory is short."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def said(self) -> str:
        """Return its log, including that of earlier processes."""
        return self._process.log.read_text(encoding="utf-8", errors="replace")

    def wait_until_ended(self) -> None:
        """Wait until it has ended by itself."""
        ended = os.pidfd_open(self.pid)
        try:
            assert select.select([ended], [], [], PATIENCE_SECONDS)[0], f"{self.component} still runs"
        finally:
            os.close(ended)

    def has_ended(self) -> bool:
        """Tell whether it has ended by itself."""
        try:
            self._process.check()
        except ComponentCrashedError:
            return True
        return False

    def freeze(self) -> None:
        """Suspend it, as on a suspended machine."""
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Resume it."""
        os.kill(self.pid, signal.SIGCONT)


class Caller:
    """Calls repeatedly in its own thread until the block ends or the first failure.

    `disturbances` returns a number that becomes odd when a test disturbs the called process, and even when
    callers should no longer notice. Failures of calls in between are only counted.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        call: Callable[[Client, int], None],
        *,
        disturbances: Callable[[], int] = lambda: 0,
    ) -> None:
        self._client = Client(control_plane.server, control_plane.directory / "pki")
        self._call = call
        self._disturbances = disturbances
        self._progress = threading.Condition()
        self._stopping = threading.Event()
        self.calls = 0
        self.failures = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._client.close()

    def wait_for(self, more: int) -> None:
        """Wait until that many more calls have been answered, or one has failed permanently."""
        with self._progress:
            until = self.calls + more
            assert self._progress.wait_for(
                lambda: self.calls >= until or self.failure is not None, PATIENCE_SECONDS
            )

    def _run(self) -> None:
        while not self._stopping.wait(_PACE_SECONDS) and self.failure is None:
            before = self._disturbances()
            try:
                self._call(self._client, self.calls)
            except BaseException as error:  # noqa: BLE001 (the test counts every failure)
                self.failures += 1
                if before % 2 == 0 and self._disturbances() == before:
                    self.failure = error
            with self._progress:
                self.calls += 1
                self._progress.notify_all()
