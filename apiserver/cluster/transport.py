"""HTTP requests to the API server: timeouts, errors of our own, renewal of credentials, and watch events.

A watch is a stream of bytes with one JSON object per line.
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn, Self

import aiohttp
import msgspec

from apiserver.cluster.errors import NotLeading, Oversized, Unavailable, error_of
from apiserver.cluster.resource import JSON_TYPE
from apiserver.schema.json import without_depths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from apiserver.cluster.credentials import ApiClient, Credentials
    from apiserver.schema.json import Json, JsonValue


CALL_SECONDS = 10.0
"""The default timeout of a call, in seconds."""
_UNAUTHORIZED = 401
_FIRST_ERROR = 300
_CONNECT_SECONDS = 5.0
_READ_BUFFER_BYTES = 1 << 18
_CHECK_BEFORE_SENDING: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request to the API server."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: JsonValue = None
    content_type: str = JSON_TYPE
    accept: str = JSON_TYPE
    limit_bytes: int | None = None
    """The size above which the response is not read; None if it is read whatever its size."""

    timeout_seconds: float = CALL_SECONDS
    """The timeout in seconds, from the first byte sent to the last byte read. A watch sets its own duration
    plus some slack."""


class Transport:
    """Sends calls through the client library's session."""

    def __init__(self, api: ApiClient, credentials: Credentials) -> None:
        self._api = api
        self._credentials = credentials
        self._renewal = asyncio.Lock()
        self._may_write: Callable[[], bool] = lambda: True
        api.rest_client.pool_manager = _without_environment(api.rest_client.pool_manager)

    @property
    def host(self) -> str:
        """The base URL of the API server."""
        return str(self._api.configuration.host)

    def with_fence(self, may_write: Callable[[], bool]) -> Self:
        """Return the same session, which sends only GET requests while `may_write()` is False."""
        fenced = copy.copy(self)
        fenced._may_write = may_write  # noqa: SLF001 (a copy of this object)
        return fenced

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def read(self, call: Call) -> bytes:
        """Return the body of a successful response. Raises `ClusterError` for any other."""
        async with self.open(call) as response:
            if call.limit_bytes is None:
                return await response.read()
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > call.limit_bytes:
                    raise Oversized(f"{call.method} {call.path}: more than {call.limit_bytes} bytes")
            return bytes(body)

    async def json(self, call: Call) -> Json:
        """Return the JSON object of a response."""
        answer = decode(await self.read(call))
        if not isinstance(answer, dict):
            raise Unavailable(f"{call.method} {call.path}: the response is not a JSON object")
        return answer

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the successful response, whose body has not been read yet."""
        try:
            response = await self._send(call)
            async with response:
                if response.status >= _FIRST_ERROR:
                    await _raise_for(response)
                yield response
        except aiohttp.ConnectionTimeoutError as error:
            raise Unavailable(
                f"{call.method} {call.path}: no connection to the API server within {_CONNECT_SECONDS:g} s"
            ) from error
        except TimeoutError as error:
            raise Unavailable(
                f"{call.method} {call.path}: no complete response within {call.timeout_seconds:g} s"
            ) from error
        except aiohttp.ClientConnectorError as error:
            number = error.errno or 0  # of a failed look-up of the name it is negative
            reason = os.strerror(number) if number > 0 else error.os_error
            raise Unavailable(
                f"{call.method} {call.path}: no connection to {error.host}:{error.port}: {reason}"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{call.method} {call.path}: {str(error) or type(error).__name__}") from error

    async def _send(self, call: Call) -> aiohttp.ClientResponse:
        token = self._token()
        response = await self._send_once(call)
        if response.status != _UNAUTHORIZED:
            return response
        response.release()
        await self._renew(token)
        return await self._send_once(call)

    async def _send_once(self, call: Call) -> aiohttp.ClientResponse:
        if call.method == "GET":
            return await self._call(call)

        def check_fence() -> None:
            if not self._may_write():
                raise NotLeading(
                    f"{call.method} {call.path}: not sent, because this process does not hold the lease"
                )

        check_fence()
        token = _CHECK_BEFORE_SENDING.set(check_fence)
        try:
            return await self._call(call)
        except aiohttp.ClientConnectionError as error:
            if isinstance(error.__cause__, NotLeading):
                raise error.__cause__ from None
            raise
        finally:
            _CHECK_BEFORE_SENDING.reset(token)

    async def _call(self, call: Call) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self._api.call_api(
            call.path,
            call.method,
            query_params=list(call.query.items()),
            header_params={"Accept": call.accept, "Content-Type": call.content_type},
            body=call.body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=aiohttp.ClientTimeout(
                total=call.timeout_seconds, sock_connect=min(call.timeout_seconds, _CONNECT_SECONDS)
            ),
        )
        return response

    def _token(self) -> str | None:
        token: str | None = self._api.configuration.api_key.get("BearerToken")
        return token

    async def _renew(self, refused: str | None) -> None:
        """Reload the credentials, once for all concurrent calls that were rejected with the same token."""
        async with self._renewal:
            if self._token() == refused:
                fresh = await self._credentials.load()
                self._api.configuration.api_key.update(fresh.api_key)


def decode(body: bytes | bytearray) -> JsonValue:
    """Return parsed JSON; in what is nested too deeply, values below 256 levels are null.

    Raises `Unavailable` if it is invalid, as when a proxy responds instead.
    """
    try:
        try:
            return msgspec.json.decode(body)
        except RecursionError:
            return msgspec.json.decode(without_depths(body))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unavailable(f"the response is not JSON: {error}") from error


async def _raise_for(response: aiohttp.ClientResponse) -> NoReturn:
    body = await response.read()
    try:
        status = decode(body)
    except Unavailable:
        status = {"message": body[:1024].decode(errors="replace").strip()}
    if not isinstance(status, dict):
        status = {}
    raise error_of(response.status, status=status, retry_after=response.headers.get("Retry-After"))


def _without_environment(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """Return a session with the same connector that ignores proxy environment variables and netrc."""
    connector = session.connector
    session.detach()
    traces = aiohttp.TraceConfig()
    traces.on_request_chunk_sent.append(_check_before_sending)
    return aiohttp.ClientSession(
        connector=connector, trust_env=False, read_bufsize=_READ_BUFFER_BYTES, trace_configs=[traces]
    )


async def _check_before_sending(
    _session: aiohttp.ClientSession, _context: object, _chunk: aiohttp.TraceRequestChunkSentParams
) -> None:
    """Check the fence again when a connection is there, just before headers and body are sent.

    A process may have been stopped for long since it was checked first. aiohttp calls this before it writes
    a chunk, despite the name of its signal.
    """
    _CHECK_BEFORE_SENDING.get()()


EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. The object of a bookmark has only its resource version."""

    type: EventType
    object: Json

    @property
    def resource_version(self) -> str:
        """The resource version to resume from after this event."""
        return str(self.object["metadata"]["resourceVersion"])


async def events_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    """Yield events. Raises the reported error for an `ERROR` event, `Unavailable` for a malformed line."""
    async for line in _lines(chunks):
        yield _event_of(decode(line))


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines of any length: the HTTP library's own reader fails on large objects."""
    pending: list[bytes] = []
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            whole = b"".join([*pending, line])
            pending.clear()
            if whole:
                yield whole
        if rest:
            pending.append(rest)


def _event_of(line: object) -> WatchEvent:
    if not isinstance(line, dict) or not isinstance(line.get("object"), dict):
        raise Unavailable("the watch sent a line that is not an event")
    if line.get("type") == "ERROR":
        raise error_of(int(line["object"].get("code") or 500), status=line["object"])
    metadata = line["object"].get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
        raise Unavailable("the watch sent an event without a resource version")
    return WatchEvent(line["type"], line["object"])
