"""One supervised process: started with a log file, polled until ready, watched, stopped, killed with ours."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hack.controlplane.errors import ComponentCrashedError, ControlPlaneError, NotReadyError

_TETHER = Path(__file__).with_name("tether.py")
_TAIL_LINES = 25
_KEPT = ("GOGC", "GOMEMLIMIT")
"""Variables that are passed on: how much memory programs in Go may use to collect garbage less often."""

_POLL_SECONDS = 0.02

_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controlplane-spawner")
"""The only thread that starts processes: they die with their starting thread, so it must last."""


def kept_environment() -> dict[str, str]:
    """Return what programs get of the user's environment: a proxy would divert calls to the cluster."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def spawn(
    command: list[str], *, directory: Path, environment: dict[str, str], output: int | IO[bytes]
) -> subprocess.Popen[str]:
    """Start a program that is killed when this process ends in any way.

    It gets its own session, so that Ctrl-C reaches only this process, which stops programs in order.
    """
    tethered = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *command]
    return _SPAWNER.submit(
        lambda: subprocess.Popen(
            tethered,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
    ).result()


def end(process: subprocess.Popen[str], *, patience_seconds: float) -> int | None:
    """Tell a program that handles SIGTERM to end; return its exit code, or None if it had to be killed.

    A program that is still starting would be ended by the signal itself, with another code. So this waits
    until it handles the signal, at most as long as for its end.
    """
    deadline = time.monotonic() + patience_seconds
    while process.poll() is None and not _handles_sigterm(process.pid) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    process.terminate()
    try:
        return process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _handles_sigterm(pid: int) -> bool:
    """Tell whether a process has a handler for SIGTERM, by the mask in proc(5)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


class Process:
    """A program that runs until it is stopped, and can be started again."""

    def __init__(
        self,
        name: str,
        command: list[str],
        *,
        directory: Path,
        working_directory: Path | None = None,
        path: str = os.defpath,
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = command
        self._directory = directory
        self._working_directory = working_directory or directory
        self._path = path
        self._running: subprocess.Popen[str] | None = None
        self._is_wanted = False

    @property
    def pid(self) -> int:
        """The process id. Raises ControlPlaneError if it is not started."""
        if self._running is None:
            raise ControlPlaneError(f"{self.name} is not started")
        return self._running.pid

    def start(self) -> None:
        """Start it, with its output appended to its log; no effect while it runs."""
        if self._running is not None:
            return
        environment = kept_environment() | {"HOME": str(self._directory), "PATH": self._path}
        with self.log.open("ab") as log:
            self._running = spawn(
                self._command, directory=self._working_directory, environment=environment, output=log
            )
            self._is_wanted = True

    def check(self) -> None:
        """Raise ComponentCrashedError if it has ended by itself."""
        running = self._running
        code = running.poll() if running else None
        if code is not None and self._is_wanted:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise ComponentCrashedError(f"{self.name} {how}; {self.log_tail()}")

    def log_tail(self) -> str:
        """Return the last lines of the log, with a heading that names the file."""
        with self.log.open(errors="replace") as stream:
            lines = deque(stream, maxlen=_TAIL_LINES)
        return f"the last lines of {self.log}:\n" + "".join(f"  {line}" for line in lines)

    def stop(self, *, patience_seconds: float = 5.0) -> None:
        """Terminate it, and kill it after a timeout; no effect if it does not run."""
        if self._running is None:
            return
        self._is_wanted = False
        try:
            self._running.terminate()
            self._running.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            pass  # killed below
        finally:
            self._running.kill()
            self._running.wait()
            self._running = None


_ASK_SECONDS = 0.05
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A URL that returns 2xx when the component is ready."""

    url: str
    authority: str | None = None
    """Path of the CA certificate; None for plain HTTP."""

    client: str | None = None
    """Path of the client certificate, without `.crt` and `.key`; None for no client certificate."""

    def caller(self) -> Callable[[], str | None]:
        """Return a function that probes once: it returns None if ready, else the response."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.authority is not None:
            context = ssl.create_default_context(cafile=self.authority)
            if self.client is not None:
                context.load_cert_chain(f"{self.client}.crt", f"{self.client}.key")
            handlers.append(urllib.request.HTTPSHandler(context=context))
        opener = urllib.request.build_opener(*handlers)
        return lambda: _ask(opener, self.url)


def wait_until_ready(process: Process, probe: Probe, *, patience_seconds: float) -> None:
    """Poll the probe. Raises ComponentCrashedError if the process ends, NotReadyError after a timeout."""
    deadline = time.monotonic() + patience_seconds
    ask = probe.caller()
    while (answer := ask()) is not None:
        process.check()
        if time.monotonic() > deadline:
            raise NotReadyError(
                f"{process.name} is not ready after {patience_seconds:.0f} s ({probe.url}: {answer}); "
                f"{process.log_tail()}"
            )
        time.sleep(_ASK_SECONDS)
    process.check()


def _ask(opener: urllib.request.OpenerDirector, url: str) -> str | None:
    try:
        with opener.open(url, timeout=_ANSWER_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read(200).decode(errors='replace')}"
    except OSError as error:
        return str(error)
