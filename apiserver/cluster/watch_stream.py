"""Decoding of the byte stream of a watch into events, one JSON object per line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from apiserver.cluster.errors import Unavailable, error_of
from apiserver.cluster.transport import decode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from apiserver.schema.json import Json

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
