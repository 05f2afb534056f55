"""Compute the values that decisions use from what pods expose.

A gauge is used as it is. A counter becomes its rate per second, and a histogram the 95th percentile of its
increase, both over the last minute. For that, the scrapes of each pod are remembered for a few minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.policies.exposed import Exposed
from controller.policies.histograms import UncountableError, quantile

PERCENT: Final = 95
"""Percentile of a histogram's increase."""

WINDOW_SECONDS: Final = 60.0
"""Minimum time range of rates and quantiles, once a pod has been observed for that long."""

KEPT_SECONDS: Final = 300.0
"""Maximum age of a scrape to compare with, in seconds."""

MOST_LOOKS: Final = 64
"""Maximum number of remembered scrapes per pod."""


class Look(NamedTuple):
    """What a pod exposed at one time."""

    seconds: float
    exposed: Mapping[str, Exposed]


@dataclass(frozen=True, kw_only=True, slots=True)
class PodMemory:
    """The recent scrapes of a pod, oldest first. A new pod of the same name starts with an empty memory."""

    looks: tuple[Look, ...] = ()

    def with_look(self, look: Look) -> PodMemory:
        """Return the memory with a scrape added; of those older than the window, only the newest is kept."""
        counted = {name: item for name, item in look.exposed.items() if item.is_counter or item.buckets}
        latest = self.looks[-1].exposed if self.looks else {}
        anew = {name for name, item in counted.items() if not _goes_on(latest.get(name, item), item)}
        kept = [
            Look(item.seconds, {name: old for name, old in item.exposed.items() if name not in anew})
            for item in self.looks
            if look.seconds - KEPT_SECONDS <= item.seconds < look.seconds
        ]
        compared = [place for place, item in enumerate(kept) if look.seconds - item.seconds >= WINDOW_SECONDS]
        needed = kept[compared[-1] :] if compared else kept
        return PodMemory(looks=(*needed, Look(look.seconds, counted))[-MOST_LOOKS:])

    def values(self, look: Look) -> dict[str, float]:
        """Return the values of a scrape by metric; those that cannot be computed yet are omitted."""
        found = {}
        for name, item in look.exposed.items():
            value = self._value(name, item, look.seconds)
            if value is not None:
                found[name] = value
        return found

    def _value(self, name: str, now: Exposed, now_seconds: float) -> float | None:
        if not now.is_counter and not now.buckets:
            return now.value
        before = baseline([item for item in self.looks if name in item.exposed], now_seconds)
        if before is None:
            return None
        past = before.exposed[name]
        if now.is_counter:
            gained = now.value - past.value
            return gained / (now_seconds - before.seconds) if gained >= 0 else None
        try:
            return quantile(past.buckets, now.buckets, PERCENT)
        except UncountableError:
            return None


NO_LOOKS: Final = PodMemory()
"""Memory of a pod that was never scraped."""


def _goes_on(old: Exposed, new: Exposed) -> bool:
    """Return whether a counter or histogram continues the old one; it restarted if it decreased."""
    fell = new.value < old.value or new.buckets.get(math.inf, 0.0) < old.buckets.get(math.inf, 0.0)
    return not fell and new.buckets.keys() == old.buckets.keys()


def baseline(
    looks: list[Look],
    now_seconds: float,
    *,
    window_seconds: float = WINDOW_SECONDS,
    kept_seconds: float = KEPT_SECONDS,
) -> Look | None:
    """Return the scrape to compare with: the newest that is a window old, otherwise the oldest."""
    usable = [look for look in looks if 0 < now_seconds - look.seconds <= kept_seconds]
    old = [look for look in usable if now_seconds - look.seconds >= window_seconds]
    return old[-1] if old else next(iter(usable), None)
