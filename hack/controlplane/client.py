"""A keep-alive connection to the API server as administrator, for frequent requests."""

from __future__ import annotations

import http.client
import json
import math
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from apiserver.schema.json import Json

_TIMEOUT_SECONDS: Final = 60.0


class RefusedError(Exception):
    """The API server rejected a request that should succeed."""


class ConflictError(RefusedError):
    """The object was changed since it was read."""


class Client:
    """A JSON client for one API server; not thread-safe."""

    def __init__(self, server: str, pki: Path) -> None:
        self._address = urlsplit(server)
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._connection = self._new()

    def _new(self) -> http.client.HTTPSConnection:
        host, port = self._address.hostname or "", self._address.port
        return http.client.HTTPSConnection(host, port, context=self._context, timeout=_TIMEOUT_SECONDS)

    def call(self, method: str, path: str, value: Json | None = None) -> bytes:
        """Send a request and return the body.

        Raises ConflictError if the object was changed since it was read, RefusedError for other error codes,
        and OSError if the server cannot be reached.
        """
        headers = {"Content-Type": "application/json"}
        body = None if value is None else json.dumps(value)
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            answered = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = self._new()
            raise
        if response.status >= http.client.BAD_REQUEST:
            raise _refused(response.status, f"{method} {path}", answered)
        return answered

    def value(self, method: str, path: str, value: Json | None = None) -> Json:
        """Send a request and return the decoded object."""
        answered: Json = json.loads(self.call(method, path, value))
        return answered

    def timed(self, method: str, path: str, value: Json | None = None) -> tuple[float, bytes]:
        """Send a request and return the elapsed seconds and the body."""
        began = time.perf_counter()
        answered = self.call(method, path, value)
        return time.perf_counter() - began, answered

    def watch(self, collection: str, name: str, *, seconds: float) -> Iterator[Json]:
        """Yield the current state of an object, and each later one, for some seconds; {} once it is deleted.

        Raises RefusedError, and OSError if the server cannot be reached.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:  # a server may end a watch at any time
            query = f"watch=true&fieldSelector=metadata.name%3D{name}&timeoutSeconds={math.ceil(left)}"
            with closing(self._new()) as connection:
                connection.request("GET", f"{collection}?{query}")
                response = connection.getresponse()
                if response.status >= http.client.BAD_REQUEST:
                    raise _refused(response.status, f"GET {collection}", response.read())
                for event in map(json.loads, response):
                    if event["type"] == "ERROR":
                        break
                    yield {} if event["type"] == "DELETED" else event["object"]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _refused(status: int, what: str, answered: bytes) -> RefusedError:
    refused = ConflictError if status == http.client.CONFLICT else RefusedError
    return refused(f"{what}: {status}: {answered[:500].decode(errors='replace')}")
