"""Parsing of durations in Go syntax: `15s`, `1m30s`, `100ms`.

Grammar: `time.ParseDuration` of Go's standard library, which decodes every `metav1.Duration`. Signs are
deliberately not supported, since none of our fields has a negative duration.
"""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from typing import Final

PATTERN: Final = r"^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""The pattern of what `time.ParseDuration` accepts, without a sign."""

LONGEST_CHARACTERS: Final = 64
"""The maximum number of characters. Every field of this type has this limit, and a longer text is invalid."""

SAYS: Final = "a length of time such as 15s, 1m30s or 100ms"
"""The description of the pattern."""

_WHOLE: Final = re.compile(PATTERN)
_PART: Final = re.compile(r"([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}


def nanoseconds(text: str) -> int | None:
    """Return a duration in whole nanoseconds, or None if the text is not a duration.

    A text beyond the length limit is not a duration. The result may exceed the 292 years that Go can
    represent; every field has a far lower limit.
    """
    return _nanoseconds(text) if len(text) <= LONGEST_CHARACTERS else None


@functools.lru_cache(maxsize=4096)
def _nanoseconds(text: str) -> int | None:
    if not _WHOLE.fullmatch(text):
        return None
    parts = _PART.findall(text)
    return int(sum(Decimal(number) * _NANOSECONDS[unit] for number, unit in parts))


def seconds(text: str) -> float | None:
    """Return a duration in seconds, or None if the text is not a duration."""
    length = nanoseconds(text)
    return None if length is None else length / 1e9
