"""Waits where the API server asks to: after a definition changes, its caches take a moment to fill."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from apiserver.cluster.errors import Throttled

_TRIES: Final = 30
_PAUSE_SECONDS: Final = 1.0
_T = TypeVar("_T")


async def patiently(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return what an attempt gives, made again when told to wait; raises Throttled after half a minute."""
    for _ in range(_TRIES):
        try:
            return await attempt()
        except Throttled as error:
            await asyncio.sleep(error.retry_after_seconds or _PAUSE_SECONDS)
    return await attempt()
