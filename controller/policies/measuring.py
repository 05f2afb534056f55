"""From what a pod exposes to the number that a decision counts with.

A gauge is its value. A counter is its rate per second, and a histogram the 95th percentile of what it gained,
both over the last minute. For that, what was exposed is remembered for each pod, for a few minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.policies.exposed import Exposed
from controller.policies.histograms import UncountableError, quantile

PERCENT: Final = 95
"""Of what a histogram gained, so many percent stay within its value."""

WINDOW_SECONDS: Final = 60.0
"""How far back rates and quantiles reach at least, once a pod is known for so long."""

KEPT_SECONDS: Final = 300.0
"""The oldest look that is compared with."""

MOST_LOOKS: Final = 64
"""That are remembered of each pod."""


class Look(NamedTuple):
    """What a pod exposed at one moment."""

    seconds: float
    exposed: Mapping[str, Exposed]


@dataclass(frozen=True, kw_only=True, slots=True)
class PodMemory:
    """The last looks at a pod, oldest first. Another pod of the same name has another memory."""

    looks: tuple[Look, ...] = ()

    def with_look(self, look: Look) -> PodMemory:
        """Return the memory with one look more: of those that are a window old, only the newest is kept."""
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
        """Return the numbers of a look by metric; those that cannot be told yet are left out."""
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
"""Of a pod that was never asked."""


def _goes_on(old: Exposed, new: Exposed) -> bool:
    """Tell whether what is counted now goes on from what was counted: it began anew where it fell."""
    fell = new.value < old.value or new.buckets.get(math.inf, 0.0) < old.buckets.get(math.inf, 0.0)
    return not fell and new.buckets.keys() == old.buckets.keys()


def baseline(
    looks: list[Look],
    now_seconds: float,
    *,
    window_seconds: float = WINDOW_SECONDS,
    kept_seconds: float = KEPT_SECONDS,
) -> Look | None:
    """Return what a look is compared with: the newest that is a window old, else the oldest there is."""
    usable = [look for look in looks if 0 < now_seconds - look.seconds <= kept_seconds]
    old = [look for look in usable if now_seconds - look.seconds >= window_seconds]
    return old[-1] if old else next(iter(usable), None)
