"""A clock, exponential backoff with jitter, and timestamps in the format of the Kubernetes API (RFC 3339)."""

from __future__ import annotations

import asyncio
import random as random_module
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from apiserver.schema.json import JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Clock, sleep and random source, as injectable dependencies."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random_module.random


@dataclass(kw_only=True, slots=True)
class Backoff:
    """Exponential backoff up to a limit, in which jitter extends each delay by up to its own length.

    The numbers are those of client-go's reflector. The jitter keeps the many clients of a recovering server
    from retrying at the same time.
    """

    random: Callable[[], float]
    """Returns random numbers in [0, 1)."""
    first_seconds: float = 0.8
    limit_seconds: float = 30.0
    _failures: int = 0

    def next_seconds(self, at_least_seconds: float | None = None) -> float:
        """Return the delay after another failure, at least the one that the server asked for."""
        base = min(self.first_seconds * 2.0**self._failures, self.limit_seconds)
        if base < self.limit_seconds:
            self._failures += 1
        return max(base * (1.0 + self.random()), at_least_seconds or 0.0)

    def reset(self) -> None:
        """Restart from the first delay after a success."""
        self._failures = 0


def utc_now() -> datetime:
    """Return the current time, with time zone."""
    return datetime.now(UTC)


def rfc3339_micro(moment: datetime) -> str:
    """Return a `MicroTime`, with the six decimals that its parser requires."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: JsonValue) -> datetime | None:
    """Return the time of a timestamp in UTC, or None if it is missing or invalid."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
