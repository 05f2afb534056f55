"""The history between decisions: recent recommendations, recent replica counts, panic mode and activity.

Everything is bounded. Recommendations and replica counts are kept as two monotone sequences each, of the
maxima and the minima since each time: all that a window or rate limit can ask for. A list that would become
too long is shortened such that scaling becomes slower, never faster.
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
"""Maximum window or period of a policy, in seconds."""

MOST_ENTRIES: Final = 64
"""Maximum entries per list."""

MOST_METRICS: Final = 32
"""Maximum metrics per policy."""

LONGEST_CHARACTERS: Final = 65_536
"""Maximum length of a serialized history, in characters."""

MOST_REPLICAS: Final = 10**9
"""Maximum number of recommended replicas."""

_FORMAT: Final = 2
_LONGEST_NAME: Final = 256
_NEARLY: Final = 0.01
"""Seconds by which stored times can differ, as they are rounded."""


class UnreadableHistoryError(ValueError):
    """A document that is not a valid history."""


class Entry(NamedTuple):
    """A number of replicas, at a time or since then."""

    seconds: float
    replicas: int


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The history of one binding. Call `at` first, which drops outdated entries."""

    highs: tuple[Entry, ...] = ()
    """Recommendations that no later one reached, in descending order."""

    lows: tuple[Entry, ...] = ()
    """Recommendations that no later one was as low as, in ascending order."""

    peaks: tuple[Entry, ...] = ()
    """Maxima of the requested replicas since each time, in descending order."""

    dips: tuple[Entry, ...] = ()
    """Minima of the requested replicas since each time, in ascending order."""

    decided_seconds: float | None = None
    """Time of the latest decision, in seconds."""

    recommended_seconds: float | None = None
    """Time of the latest recommendation, in seconds; decisions without metrics have none."""

    panic_since_seconds: float | None = None
    panic_until_seconds: float | None = None
    active_seconds: float | None = None
    """Time of the latest activity, in seconds."""

    silent: Mapping[str, float] = field(default_factory=dict)
    """Time since which some pods do not report a metric, by metric."""

    @property
    def counts(self) -> tuple[Entry, ...]:
        """All recorded replica counts; empty if none was recorded."""
        return (*self.peaks, *self.dips)

    def at(self, now_seconds: float) -> History:
        """Return the history without outdated entries; future times are set to the current time."""
        since = now_seconds - HORIZON_SECONDS
        return replace(
            self,
            highs=tuple(_recent(self.highs, since, now_seconds)),
            lows=tuple(_recent(self.lows, since, now_seconds)),
            peaks=_counts_since(self.peaks, since, now_seconds),
            dips=_counts_since(self.dips, since, now_seconds),
            decided_seconds=_past(self.decided_seconds, now_seconds),
            recommended_seconds=_past(self.recommended_seconds, now_seconds),
            panic_since_seconds=_past(self.panic_since_seconds, now_seconds),
            panic_until_seconds=_past(self.panic_until_seconds, now_seconds + HORIZON_SECONDS),
            active_seconds=_past(self.active_seconds, now_seconds),
            silent={name: min(since, now_seconds) for name, since in self.silent.items()},
        )

    def add_recommendation(self, now_seconds: float, replicas: int) -> History:
        """Return the history with a recommendation added."""
        entry = Entry(now_seconds, replicas)
        highs = (*(item for item in self.highs if item.replicas > replicas), entry)
        lows = (*(item for item in self.lows if item.replicas < replicas), entry)
        return replace(self, highs=_merge(highs), lows=_merge(lows), recommended_seconds=now_seconds)

    def add_request(self, now_seconds: float, replicas: int) -> History:
        """Return the history with the replicas that are requested from now on."""
        higher = tuple(item for item in self.peaks if item.replicas > replicas)
        lower = tuple(item for item in self.dips if item.replicas < replicas)
        peak, dip = (
            Entry(items[len(kept)].seconds if len(kept) < len(items) else now_seconds, replicas)
            for items, kept in ((self.peaks, higher), (self.dips, lower))
        )
        return replace(self, peaks=_thin((*higher, peak)), dips=_thin((*lower, dip)))

    def resume(self, seen_seconds: float, *, hold_seconds: float) -> History:
        """Return a stored history as if what its last decision saw had gone on until `seen_seconds`.

        A history is not stored with every decision. The decisions since then had the same limits, so the last
        stored one stands for them: its recommendation, activity, and surge, whose panic mode lasts
        `hold_seconds`. What was over at that decision stays over. The time without recommendations stays a
        gap.
        """
        decided, until = self.decided_seconds, self.panic_until_seconds
        if decided is None or seen_seconds <= decided:
            return self
        since = decided - _NEARLY
        is_surge = until is not None and until - hold_seconds > since
        is_active = self.active_seconds is not None and self.active_seconds > since
        is_recommended = self.recommended_seconds is not None and self.recommended_seconds > since
        repeats = bool(self.highs) and is_recommended
        repeated = self.add_recommendation(seen_seconds, self.highs[-1].replicas) if repeats else self
        return replace(
            repeated,
            recommended_seconds=self.recommended_seconds,
            panic_until_seconds=seen_seconds + hold_seconds if is_surge else until,
            active_seconds=seen_seconds if is_active else self.active_seconds,
        )

    def highest(self, now_seconds: float, window_seconds: float) -> int | None:
        """Return the highest recommendation within a window; None if it has none or the length is 0."""
        return _first_within(self.highs, now_seconds, window_seconds)

    def lowest(self, now_seconds: float, window_seconds: float) -> int | None:
        """Return the lowest recommendation within a window; None if it has none or the length is 0."""
        return _first_within(self.lows, now_seconds, window_seconds)

    def most(self, now_seconds: float, period_seconds: float) -> int | None:
        """Return the maximum of replicas in a period, including its start; None if unknown."""
        return _last_by(self.peaks, now_seconds - period_seconds)

    def fewest(self, now_seconds: float, period_seconds: float) -> int | None:
        """Return the minimum of replicas in a period, including its start; None if unknown."""
        return _last_by(self.dips, now_seconds - period_seconds)

    def document(self) -> str:
        """Return the history as compact JSON."""
        return json.dumps(
            {
                "format": _FORMAT,
                "highs": [[_round(seconds), replicas] for seconds, replicas in self.highs],
                "lows": [[_round(seconds), replicas] for seconds, replicas in self.lows],
                "peaks": [[_round(seconds), replicas] for seconds, replicas in self.peaks],
                "dips": [[_round(seconds), replicas] for seconds, replicas in self.dips],
                "decided": _round(self.decided_seconds),
                "recommended": _round(self.recommended_seconds),
                "panicSince": _round(self.panic_since_seconds),
                "panicUntil": _round(self.panic_until_seconds),
                "active": _round(self.active_seconds),
                "silent": {name: _round(since) for name, since in sorted(self.silent.items())},
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )


def read_history(text: str) -> History:
    """Return the history of a document. Raises UnreadableHistoryError."""
    if len(text) > LONGEST_CHARACTERS:
        raise UnreadableHistoryError(f"longer than {LONGEST_CHARACTERS} characters")
    try:
        document = json.loads(text)
        if document["format"] != _FORMAT:
            raise UnreadableHistoryError(f"its format is not {_FORMAT}")
        return History(
            highs=_read_entries(document["highs"], falling=True),
            lows=_read_entries(document["lows"], rising=True),
            peaks=_read_entries(document["peaks"], falling=True),
            dips=_read_entries(document["dips"], rising=True),
            # Older documents lack the time of the decision.
            decided_seconds=_read_moment(document.get("decided", document["recommended"])),
            recommended_seconds=_read_moment(document["recommended"]),
            panic_since_seconds=_read_moment(document["panicSince"]),
            panic_until_seconds=_read_moment(document["panicUntil"]),
            active_seconds=_read_moment(document["active"]),
            silent=_read_silent(document["silent"]),
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


def _merge(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return at most MOST_ENTRIES entries: merged pairs keep the stronger value with the later time."""
    while len(entries) > MOST_ENTRIES:
        gaps = [later.seconds - entry.seconds for entry, later in pairwise(entries)]
        place = gaps.index(min(gaps))
        one = Entry(entries[place + 1].seconds, entries[place].replicas)
        entries = (*entries[:place], one, *entries[place + 2 :])
    return entries


def _thin(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return at most MOST_ENTRIES entries: merged pairs keep the earlier, stronger value.

    The shortest pair is merged, so that no value is extended by more than a minute.
    """
    while len(entries) > MOST_ENTRIES:
        spans = [after.seconds - entry.seconds for entry, after in zip(entries, entries[2:], strict=False)]
        place = spans.index(min(spans)) + 1
        entries = (*entries[:place], *entries[place + 1 :])
    return entries


def _last_by(entries: tuple[Entry, ...], moment: float) -> int | None:
    """Return the replicas at a time; before the first entry, those of the first entry."""
    known = [item.replicas for item in entries if item.seconds <= moment]
    return known[-1] if known else next((item.replicas for item in entries), None)


def _first_within(entries: tuple[Entry, ...], now_seconds: float, window_seconds: float) -> int | None:
    if window_seconds <= 0:
        return None
    start = now_seconds - window_seconds
    return next((item.replicas for item in entries if item.seconds >= start), None)


def _round(seconds: float | None) -> float | None:
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
