"""A server under measurement: its own process, its own certificate, on a loopback port."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.bench.connection import Connection
from hack.controlplane import ControlPlaneError
from hack.controlplane.certificates import Authority
from hack.controlplane.process import Process

ROOT: Final = Path(__file__).resolve().parent.parent.parent
ADDRESS: Final = "127.0.0.1"
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02


def new_identity(directory: Path, *, server_name: str) -> ssl.SSLContext:
    """Write `tls.crt` and `tls.key` (P-256) into a directory; return how a client trusts just them.

    Like kube-apiserver's client: certificate and name are checked, TLS 1.3, http/1.1.
    """
    authority = Authority.create("bench")
    authority.server(server_name, names=(server_name,)).write(directory, "tls")
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A server that runs."""

    port: int
    """On the loopback address."""
    context: ssl.SSLContext
    """How a client trusts it."""
    server_name: str
    pid: int

    def connect(self) -> Connection:
        """Open a connection to it; raises OSError."""
        return Connection.open((ADDRESS, self.port), self.context, server_name=self.server_name)


@contextmanager
def serving(
    command: list[str], *, name: str, directory: Path, port: int, context: ssl.SSLContext, server_name: str
) -> Iterator[Server]:
    """Run a server, whose home and log lie in a directory, to the end of the block.

    It dies with us, however we end. Raises ControlPlaneError when it ends, or does not listen in time.
    """
    process = Process(name, command, directory=directory, working_directory=ROOT)
    try:
        process.start()
        server = Server(port=port, context=context, server_name=server_name, pid=process.pid)
        _wait(process, server)
        yield server
    finally:
        process.stop(patience_seconds=_STOP_SECONDS)


def _wait(process: Process, server: Server) -> None:
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
