"""A server under measurement: its own process, its own certificate, on a loopback port."""

from __future__ import annotations

import os
import ssl
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from hack.bench.connection import Connection
from hack.controlplane.certificates import Authority
from hack.controlplane.process import spawn

ROOT: Final = Path(__file__).resolve().parent.parent.parent
ADDRESS: Final = "127.0.0.1"
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02


class ServerNotStartedError(Exception):
    """The server ended, or did not listen in time; the message quotes its log."""


def new_identity(directory: Path, *, server_name: str) -> ssl.SSLContext:
    """Write `tls.crt` and `tls.key` (P-256) into a directory; return how a client trusts just them.

    Like kube-apiserver's client: certificate and name are checked, TLS 1.3, http/1.1.
    """
    authority = Authority("bench")
    authority.server(server_name, names=(server_name,)).write(directory, "tls")
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


class ServerProcess:
    """A server from `with` to the end of the block; it dies with us, however we end."""

    def __init__(
        self,
        command: list[str],
        *,
        port: int,
        log: Path,
        context: ssl.SSLContext,
        server_name: str,
        environment: Mapping[str, str],
    ) -> None:
        self._command = command
        self.port = port
        """On the loopback address."""
        self._log = log
        self.context = context
        """How a client trusts it."""
        self._server_name = server_name
        self._environment = dict(environment)
        self._running: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The process id, while it runs."""
        if self._running is None:
            raise ServerNotStartedError(f"{self._log.stem} is not started")
        return self._running.pid

    def connect(self) -> Connection:
        """Open a connection to it; raises OSError."""
        return Connection.open((ADDRESS, self.port), self.context, server_name=self._server_name)

    def __enter__(self) -> Self:
        # Nothing of the user's surroundings: a kubeconfig would make it a client of some cluster.
        environment = {"PATH": os.defpath} | self._environment
        with self._log.open("ab") as log:
            try:
                self._running = spawn(self._command, directory=ROOT, environment=environment, output=log)
                self._wait()
            except BaseException:
                self._stop()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.connect().close()
            except OSError as error:
                code = self._running.poll() if self._running else None
                if code is not None or time.monotonic() > deadline:
                    raise ServerNotStartedError(f"{error}; its log:\n{self._log.read_text()}") from error
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _stop(self) -> None:
        if self._running is None:
            return
        self._running.terminate()
        try:
            self._running.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running = None
