"""What decisions remember: recent recommendations, recent numbers of replicas, panic and activity.

Everything is bounded. Recommendations and numbers of replicas are kept as two staircases each, of the highest
and the lowest since each moment: all that any window or limit can ask for. When a list would grow too long,
it is shortened so that scaling is slower for it, never faster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

from apiserver.schema.json import JsonValue

HORIZON_SECONDS: Final = 1800.0
"""The longest window or period that a policy may have."""

MOST_ENTRIES: Final = 64
"""Of each list."""

MOST_METRICS: Final = 32
"""As many as a policy may name."""

LONGEST_CHARACTERS: Final = 65_536
"""A longer document is none."""

MOST_REPLICAS: Final = 10**9
"""No more are ever recommended."""

_FORMAT: Final = 2
_LONGEST_NAME: Final = 256


class UnreadableHistoryError(ValueError):
    """A document that is no history."""


class Entry(NamedTuple):
    """So many replicas, at one moment or since then."""

    seconds: float
    replicas: int


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """Of one binding. `at` must be asked before anything else: it forgets what is too old."""

    highs: tuple[Entry, ...] = ()
    """Recommendations that no later one reached; the highest first."""

    lows: tuple[Entry, ...] = ()
    """Recommendations that no later one fell to; the lowest first."""

    peaks: tuple[Entry, ...] = ()
    """The most replicas that were asked for from each moment on; the most first."""

    dips: tuple[Entry, ...] = ()
    """The fewest replicas that were asked for from each moment on; the fewest first."""

    recommended_seconds: float | None = None
    """When the newest recommendation was made."""

    panic_since_seconds: float | None = None
    panic_until_seconds: float | None = None
    active_seconds: float | None = None
    """When something was last asked for."""

    silent: Mapping[str, float] = field(default_factory=dict)
    """Since when some pods say nothing of a metric."""

    @property
    def counts(self) -> tuple[Entry, ...]:
        """Return all that is known of numbers of replicas; nothing where none was counted yet."""
        return (*self.peaks, *self.dips)

    def at(self, now_seconds: float) -> History:
        """Return the history without what is too old; what lies in the future happened just now."""
        since = now_seconds - HORIZON_SECONDS
        return replace(
            self,
            highs=tuple(_recent(self.highs, since, now_seconds)),
            lows=tuple(_recent(self.lows, since, now_seconds)),
            peaks=_counts_since(self.peaks, since, now_seconds),
            dips=_counts_since(self.dips, since, now_seconds),
            recommended_seconds=_past(self.recommended_seconds, now_seconds),
            panic_since_seconds=_past(self.panic_since_seconds, now_seconds),
            panic_until_seconds=_past(self.panic_until_seconds, now_seconds + HORIZON_SECONDS),
            active_seconds=_past(self.active_seconds, now_seconds),
            silent={name: min(since, now_seconds) for name, since in self.silent.items()},
        )

    def recommended(self, now_seconds: float, replicas: int) -> History:
        """Return the history with a recommendation."""
        entry = Entry(now_seconds, replicas)
        highs = (*(item for item in self.highs if item.replicas > replicas), entry)
        lows = (*(item for item in self.lows if item.replicas < replicas), entry)
        return replace(self, highs=_merged(highs), lows=_merged(lows), recommended_seconds=now_seconds)

    def counted(self, now_seconds: float, replicas: int) -> History:
        """Return the history with the replicas that are asked for from now on."""
        higher = tuple(item for item in self.peaks if item.replicas > replicas)
        lower = tuple(item for item in self.dips if item.replicas < replicas)
        peak, dip = (
            Entry(items[len(kept)].seconds if len(kept) < len(items) else now_seconds, replicas)
            for items, kept in ((self.peaks, higher), (self.dips, lower))
        )
        return replace(self, peaks=_thinned((*higher, peak)), dips=_thinned((*lower, dip)))

    def highest(self, now_seconds: float, window_seconds: float) -> int | None:
        """Return the highest recommendation of a window; None where it holds none, or is no window."""
        return _first_within(self.highs, now_seconds, window_seconds)

    def lowest(self, now_seconds: float, window_seconds: float) -> int | None:
        """Return the lowest recommendation of a window; None where it holds none, or is no window."""
        return _first_within(self.lows, now_seconds, window_seconds)

    def most(self, now_seconds: float, period_seconds: float) -> int | None:
        """Return the most replicas that there were in a period, its start included; None if unknown."""
        return _last_by(self.peaks, now_seconds - period_seconds)

    def fewest(self, now_seconds: float, period_seconds: float) -> int | None:
        """Return the fewest replicas that there were in a period, its start included; None if unknown."""
        return _last_by(self.dips, now_seconds - period_seconds)

    def document(self) -> str:
        """Return all of it as a short JSON text."""
        return json.dumps(
            {
                "format": _FORMAT,
                "highs": [[_rounded(seconds), replicas] for seconds, replicas in self.highs],
                "lows": [[_rounded(seconds), replicas] for seconds, replicas in self.lows],
                "peaks": [[_rounded(seconds), replicas] for seconds, replicas in self.peaks],
                "dips": [[_rounded(seconds), replicas] for seconds, replicas in self.dips],
                "recommended": _rounded(self.recommended_seconds),
                "panicSince": _rounded(self.panic_since_seconds),
                "panicUntil": _rounded(self.panic_until_seconds),
                "active": _rounded(self.active_seconds),
                "silent": {name: _rounded(since) for name, since in sorted(self.silent.items())},
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )


def read_history(text: str) -> History:
    """Return the history that a document holds. Raises UnreadableHistoryError."""
    if len(text) > LONGEST_CHARACTERS:
        raise UnreadableHistoryError(f"longer than {LONGEST_CHARACTERS} characters")
    try:
        found = json.loads(text)
        if found["format"] != _FORMAT:
            raise UnreadableHistoryError(f"its format is not {_FORMAT}")
        return History(
            highs=_read_entries(found["highs"], falling=True),
            lows=_read_entries(found["lows"], rising=True),
            peaks=_read_entries(found["peaks"], falling=True),
            dips=_read_entries(found["dips"], rising=True),
            recommended_seconds=_read_moment(found["recommended"]),
            panic_since_seconds=_read_moment(found["panicSince"]),
            panic_until_seconds=_read_moment(found["panicUntil"]),
            active_seconds=_read_moment(found["active"]),
            silent=_read_silent(found["silent"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise UnreadableHistoryError(f"no history: {error}") from error


def _recent(entries: Iterable[Entry], since: float, now_seconds: float) -> Iterable[Entry]:
    return (Entry(min(item.seconds, now_seconds), item.replicas) for item in entries if item.seconds >= since)


def _counts_since(entries: tuple[Entry, ...], since: float, now_seconds: float) -> tuple[Entry, ...]:
    before = [item for item in entries if item.seconds < since][-1:]
    return (*before, *_recent(entries, since, now_seconds))


def _past(moment: float | None, latest: float) -> float | None:
    return None if moment is None else min(moment, latest)


def _merged(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return so few entries as are kept: of two that become one, the stronger value lasts for both."""
    while len(entries) > MOST_ENTRIES:
        gaps = [later.seconds - entry.seconds for entry, later in pairwise(entries)]
        place = gaps.index(min(gaps))
        one = Entry(entries[place + 1].seconds, entries[place].replicas)
        entries = (*entries[:place], one, *entries[place + 2 :])
    return entries


def _thinned(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return so few entries as are kept: of two that become one, the earlier value lasts for both.

    It is the stronger one. The shortest two become one, so none lasts a minute longer than it did.
    """
    while len(entries) > MOST_ENTRIES:
        spans = [after.seconds - entry.seconds for entry, after in zip(entries, entries[2:], strict=False)]
        place = spans.index(min(spans)) + 1
        entries = (*entries[:place], *entries[place + 1 :])
    return entries


def _last_by(entries: tuple[Entry, ...], moment: float) -> int | None:
    """Return the replicas of a moment; before all that is known, those of the first entry."""
    known = [item.replicas for item in entries if item.seconds <= moment]
    return known[-1] if known else next((item.replicas for item in entries), None)


def _first_within(entries: tuple[Entry, ...], now_seconds: float, window_seconds: float) -> int | None:
    if window_seconds <= 0:
        return None
    start = now_seconds - window_seconds
    return next((item.replicas for item in entries if item.seconds >= start), None)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _read_entries(
    values: list[tuple[float, int]], *, falling: bool = False, rising: bool = False
) -> tuple[Entry, ...]:
    entries = tuple(Entry(_moment(seconds), _replicas(replicas)) for seconds, replicas in values)
    pairs = list(pairwise(entries))
    if len(entries) > MOST_ENTRIES or any(later.seconds < entry.seconds for entry, later in pairs):
        raise ValueError("too many entries, or not in order")
    if (falling and any(later.replicas >= entry.replicas for entry, later in pairs)) or (
        rising and any(later.replicas <= entry.replicas for entry, later in pairs)
    ):
        raise ValueError("no staircase")
    return entries


def _read_silent(values: Mapping[str, float]) -> dict[str, float]:
    if len(values) > MOST_METRICS or any(len(name) > _LONGEST_NAME for name in values):
        raise ValueError("too many metrics, or too long names")
    return {str(name): _moment(since) for name, since in values.items()}


def _read_moment(value: float | None) -> float | None:
    return None if value is None else _moment(value)


def _moment(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("a moment must be a finite number of seconds")
    return float(value)


def _replicas(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_REPLICAS:
        raise TypeError(f"replicas must be a whole number from 0 to {MOST_REPLICAS}")
    return value
