"""The history between decisions: recent recommendations, recent replica counts, panic mode and activity.

Everything is bounded. Recommendations and replica counts are kept as two monotone sequences each, of the
maxima and the minima since each time: all that a window or rate limit can ask for. A list that would become
too long is shortened such that scaling becomes slower, never faster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

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

_NEARLY: Final = 0.01
"""Seconds by which stored times can differ, as they are rounded."""


class UnreadableHistoryError(ValueError):
    """A document that is not a valid history."""


class Entry(NamedTuple):
    """A number of replicas, at a time or since then."""

    seconds: float
    replicas: Annotated[int, msgspec.Meta(ge=0, le=MOST_REPLICAS)]


_Staircase = Annotated[tuple[Entry, ...], msgspec.Meta(max_length=MOST_ENTRIES)]
_MetricName = Annotated[str, msgspec.Meta(max_length=256)]


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
        # The first entry that the number reaches or passes gives it its time: since then, it is the extreme.
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
        # Times equal to that of the decision were updated by it; earlier ones had ended before.
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
                "format": 2,
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


class _Document(msgspec.Struct, kw_only=True):
    """The JSON of a history."""

    format: Literal[2]
    highs: _Staircase
    lows: _Staircase
    peaks: _Staircase
    dips: _Staircase
    decided: float | msgspec.UnsetType | None = msgspec.UNSET
    """Older documents lack it."""

    recommended: float | None
    panic_since: float | None = msgspec.field(name="panicSince")
    panic_until: float | None = msgspec.field(name="panicUntil")
    active: float | None
    silent: Annotated[dict[_MetricName, float], msgspec.Meta(max_length=MOST_METRICS)]


def read_history(text: str) -> History:
    """Return the history of a document. Raises UnreadableHistoryError."""
    if len(text) > LONGEST_CHARACTERS:
        raise UnreadableHistoryError(f"longer than {LONGEST_CHARACTERS} characters")
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise UnreadableHistoryError(f"no history: {error}") from error
    return History(
        highs=_check_order(document.highs, fall=True),
        lows=_check_order(document.lows, fall=False),
        peaks=_check_order(document.peaks, fall=True),
        dips=_check_order(document.dips, fall=False),
        decided_seconds=document.recommended if document.decided is msgspec.UNSET else document.decided,
        recommended_seconds=document.recommended,
        panic_since_seconds=document.panic_since,
        panic_until_seconds=document.panic_until,
        active_seconds=document.active,
        silent=document.silent,
    )


def _recent(entries: Iterable[Entry], since: float, now_seconds: float) -> Iterable[Entry]:
    return (Entry(min(item.seconds, now_seconds), item.replicas) for item in entries if item.seconds >= since)


def _counts_since(entries: tuple[Entry, ...], since: float, now_seconds: float) -> tuple[Entry, ...]:
    # The last of the outdated entries is what held when the horizon began.
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


def _check_order(entries: tuple[Entry, ...], *, fall: bool) -> tuple[Entry, ...]:
    """Return entries whose replicas all fall, or all rise, with time. Raises UnreadableHistoryError."""
    for entry, later in pairwise(entries):
        if later.seconds < entry.seconds or later.replicas == entry.replicas:
            raise UnreadableHistoryError("no history: entries are not in order")
        if (later.replicas < entry.replicas) is not fall:
            raise UnreadableHistoryError("no history: no staircase")
    return entries
