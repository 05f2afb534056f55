"""How long calls of the API server took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hack.bench.percentiles import percentile

_MILLI: Final = 1e3


@dataclass(frozen=True, kw_only=True, slots=True)
class Waits:
    """How long calls of one sort took."""

    calls: int
    p50_ms: float
    p99_ms: float


def waits(seconds: Sequence[float]) -> Waits:
    """Sum up calls. Raises ValueError for none."""
    return Waits(
        calls=len(seconds),
        p50_ms=percentile(seconds, 50) * _MILLI,
        p99_ms=percentile(seconds, 99) * _MILLI,
    )
