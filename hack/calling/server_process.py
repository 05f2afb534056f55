"""A measured server: a separate process with its own certificate, on a loopback port."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.calling.connection import Connection
from hack.controlplane import ControlPlaneError
from hack.controlplane.certificates import Authority
from hack.controlplane.process import Process

ROOT: Final = Path(__file__).resolve().parent.parent.parent
ADDRESS: Final = "127.0.0.1"
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02


def new_identity(directory: Path, *, server_name: str) -> ssl.SSLContext:
    """Write `tls.crt` and `tls.key` (P-256) into a directory; return a client context that trusts only them.

    Like kube-apiserver's client, it verifies certificate and name, and requires TLS 1.3 and http/1.1.
    """
    authority = Authority.create("bench")
    authority.server(server_name, names=(server_name,)).write(directory, "tls")
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerProcess:
    """A running server."""

    port: int
    """Its port on the loopback address."""
    context: ssl.SSLContext
    """The client context that trusts it."""
    server_name: str
    pid: int

    def connect(self) -> Connection:
        """Open a connection. Raises OSError."""
        return Connection.open((ADDRESS, self.port), self.context, server_name=self.server_name)


@contextmanager
def run_server(
    command: list[str], *, name: str, directory: Path, port: int, context: ssl.SSLContext, server_name: str
) -> Iterator[ServerProcess]:
    """Run a server until the block ends; its home directory and log are in `directory`.

    It is killed if this process ends in any way. Raises ControlPlaneError if it exits before it listens, or
    does not listen in time.
    """
    process = Process(name, command, directory=directory, working_directory=ROOT)
    try:
        process.start()
        server = ServerProcess(port=port, context=context, server_name=server_name, pid=process.pid)
        _wait(process, server)
        yield server
    finally:
        process.stop(patience_seconds=_STOP_SECONDS)


def _wait(process: Process, server: ServerProcess) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            server.connect().close()
        except OSError as error:
            process.check()
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"{error}; {process.log_tail()}") from error
            time.sleep(_POLL_SECONDS)
        else:
            return
