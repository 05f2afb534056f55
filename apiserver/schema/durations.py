"""Lengths of time as Go writes them: `15s`, `1m30s`, `100ms`.

Grammar: `time.ParseDuration` of Go's standard library, which decodes every `metav1.Duration`. A sign is
left out on purpose: no field of ours means a negative time.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import re2

from apiserver.schema.remembering import remembered

PATTERN: Final = r"^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""What `time.ParseDuration` reads, less the sign."""

LONGEST_CHARACTERS: Final = 64
"""A longer text is none, whatever it says: every field of this type is bounded so."""

SAYS: Final = "a length of time such as 15s, 1m30s or 100ms"
"""The pattern in words."""

_WHOLE: Final = re2.compile(PATTERN)
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


@remembered
def nanoseconds(text: str) -> int | None:
    """Return the length of time in whole nanoseconds, or None for a text that is none.

    A text beyond its bound is none. It may exceed what Go can hold, 292 years; every field bounds it far
    below.
    """
    if len(text) > LONGEST_CHARACTERS or not _WHOLE.search(text):
        return None
    # The plain engine steps on from match to match, where that of RE2 reads the rest of the text for each.
    parts = _PART.findall(text)
    return int(sum(Decimal(number) * _NANOSECONDS[unit] for number, unit in parts))


def seconds(text: str) -> float | None:
    """Return the length of time in seconds, or None for a text that is none."""
    length = nanoseconds(text)
    return None if length is None else length / 1e9
