"""A replacement for kube-proxy: one address in front of several that may change at any time."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

Address = tuple[str, int]

_READ_BYTES = 1 << 16
_BACKLOG = 128


class Forwarder:
    """Forwards connections from an address to targets in rotation, during a `with` block.

    Like kube-proxy, it chooses once per connection and does not retry: a connection to a target on which
    nothing listens is closed. Existing connections keep their target.
    """

    def __init__(self, address: Address) -> None:
        self._listening = socket.create_server(address, backlog=_BACKLOG)
        self._targets: tuple[Address, ...] = ()
        self._turns = itertools.count()
        self._accepting = threading.Thread(target=self._accept, name="forwarder", daemon=True)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def rotate(self, targets: Sequence[Address]) -> None:
        """Send new connections to these targets from now on."""
        self._targets = tuple(targets)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        with self._lock:
            for stream in self._open:
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client:
            targets = self._targets
            if not targets:
                return
            try:
                server = socket.create_connection(targets[next(self._turns) % len(targets)])
            except OSError:
                return
            with server:
                self._both_ways(client, server)

    def _both_ways(self, client: socket.socket, server: socket.socket) -> None:
        with self._lock:
            self._open |= {client, server}
        try:
            with selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
                ready.register(client, selectors.EVENT_READ, server)
                ready.register(server, selectors.EVENT_READ, client)
                while len(ready.get_map()):
                    for key, _ in ready.select():
                        if not _moved(key.fileobj, key.data):
                            ready.unregister(key.fileobj)
        finally:
            with self._lock:
                self._open -= {client, server}


def _moved(source: object, sink: object) -> bool:
    """Forward received bytes, or the end of the stream."""
    assert isinstance(source, socket.socket)
    assert isinstance(sink, socket.socket)
    received = source.recv(_READ_BYTES)
    if received:
        sink.sendall(received)
    else:
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
    return bool(received)
