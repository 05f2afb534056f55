"""Learn at which utilization a variant's engines keep the promised share of requests within their targets.

A target is a promise per request, and what a mean leaves for it depends on the traffic: on bursts, on long
prompts that delay others, on the router. So the missed share is measured, from the engines' histograms of
times, together with the utilization at which it occurred. It is assumed to grow with a power of utilization
(`EXPONENT`). Its level is measured, and thereby the utilization at which it reaches what the promise leaves.

Utilization is the capacity that a model requires, by the forecast's upper bound, divided by the rate that
its ready replicas serve at any latency. So bursts count in the same way when the missed share is measured and
when capacity is planned. Without measurements, an assumed utilization applies; it counts as some requests
beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from controller.sizing.records import EngineInterval, Histogram, Targets

EXPONENT: Final = 2.5
"""Exponent of the missed share as a function of utilization. In simulations of four recorded traces on two
engines each, doubling the replicas divided the missed share by 4 to 8.
"""

FORGETTING: Final = 0.995
"""Factor per cycle on earlier measurements; they are halved after 35 minutes."""

ASSUMED_REQUESTS: Final = 300.0
"""Weight of the assumed utilization, in requests."""

AIM: Final = 0.45
"""Share of the requests allowed to miss that is planned for. The others miss when the load exceeds its
forecast: utilization is then higher than planned, and what is missed says little about the planned one.
"""

_HOUR_SECONDS: Final = 3600.0
_SLOT_SECONDS: Final = 300.0
"""Time for which one sum is kept: an hour is a few sums instead of hundreds of cycles."""

_MOST_ASSUMED: Final = 0.8
"""Maximum assumed share of what a target leaves that the mean may take."""


def shares(attainment: float) -> float:
    """Return the assumed share of what a target leaves that the mean may take, for a promised share.

    It is that of an exponential distribution: of a mean m, a share `exp(-t / m)` of its values exceeds t.
    """
    return min(_MOST_ASSUMED, 1 / -math.log(1 - attainment))


def above(histogram: Histogram, target: float) -> tuple[float, float]:
    """Return the requests of a histogram above a value, spread evenly within its bucket, and all of them."""
    bounds, counts = histogram
    if not bounds:
        return 0.0, 0.0
    below, counted = 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=True):
        if bound >= target:
            # In the last bucket, whose bound is infinite, all are above.
            share = (target - below) / (bound - below) if bound > below else 1.0
            return counts[-1] - counted - max(0.0, count - counted) * share, counts[-1]
        below, counted = bound, max(counted, count)
    return 0.0, counts[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attainment:
    """Requests of some engines in one cycle, or over some time: how many there were, and how many missed."""

    requests: float = 0.0
    missed_ttft: float = 0.0
    missed_itl: float = 0.0
    """Requests beyond each target; those beyond both count in both."""

    @property
    def missed(self) -> float:
        """Requests that missed a target, as if missing one had no influence on missing the other."""
        if not self.requests:
            return 0.0
        within = (1 - self.missed_ttft / self.requests) * (1 - self.missed_itl / self.requests)
        # Engines report both times in separate histograms, so it is not known which requests missed both.
        return self.requests * (1 - within)

    def times(self, factor: float) -> Attainment:
        """Return it with a weight."""
        return Attainment(
            requests=self.requests * factor,
            missed_ttft=self.missed_ttft * factor,
            missed_itl=self.missed_itl * factor,
        )

    def __add__(self, other: Attainment) -> Attainment:
        return Attainment(
            requests=self.requests + other.requests,
            missed_ttft=self.missed_ttft + other.missed_ttft,
            missed_itl=self.missed_itl + other.missed_itl,
        )


NO_REQUESTS: Final = Attainment()
"""Nothing was attained or missed."""


def attainment_of(interval: EngineInterval, targets: Targets) -> Attainment:
    """Return how many requests of an interval missed each target.

    Requests are those with a first token. The ITL of requests that finished in the interval stands for that
    of those, because there may be fewer or more.
    """
    requests = missed_ttft = missed_itl = 0.0
    if targets.ttft_seconds is not None:
        missed_ttft, requests = above(interval.first_token_times, targets.ttft_seconds)
    if targets.itl_seconds is not None:
        slow, finished = above(interval.token_times, targets.itl_seconds)
        # Without first tokens, or a target for them, those that finished are all requests.
        requests = requests or finished
        missed_itl = slow / finished * requests if finished else 0.0
    return Attainment(requests=requests, missed_ttft=missed_ttft, missed_itl=missed_itl)


Slots = tuple[tuple[float, Attainment], ...]
"""What was attained in the slots of the last hour, oldest first, each with the time of its start."""


def within_the_hour(slots: Slots) -> Attainment:
    """Return what was attained in all slots together."""
    return sum([item for _, item in slots], start=NO_REQUESTS)


def record(slots: Slots, new: Iterable[Attainment], now_seconds: float) -> Slots:
    """Return the slots of the last hour with what was attained in this cycle."""
    kept = [item for item in slots if now_seconds - _HOUR_SECONDS < item[0] <= now_seconds]
    begin_seconds = now_seconds // _SLOT_SECONDS * _SLOT_SECONDS
    latest = kept.pop()[1] if kept and kept[-1][0] == begin_seconds else NO_REQUESTS
    return (*kept, (begin_seconds, sum(new, start=latest)))


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetAttainment:
    """The targets of a variant's service class, and what the engines of its model attained."""

    targets: Targets
    attained: Attainment
    """Requests of the last hour, or since the controller began to watch; never none. Those that clients gave
    up count as beyond the TTFT target.
    """

    @property
    def share(self) -> float:
        """Share of the requests within both targets."""
        return 1 - self.attained.missed / self.attained.requests

    @property
    def ttft_missed(self) -> float:
        """Share of the requests beyond the TTFT target."""
        return self.attained.missed_ttft / self.attained.requests

    @property
    def itl_missed(self) -> float:
        """Share of the requests beyond the ITL target."""
        return self.attained.missed_itl / self.attained.requests


def service_level(attained: Attainment, targets: Targets) -> TargetAttainment | None:
    """Return what was attained beside the targets; None without targets or requests."""
    if not attained.requests or (targets.ttft_seconds is None and targets.itl_seconds is None):
        return None
    return TargetAttainment(targets=targets, attained=attained)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experience:
    """What the engines of one variant attained, discounted with age."""

    former: float | None = None
    """Utilization that was learned before the controller started. It replaces the assumed one."""

    attained: Attainment = NO_REQUESTS
    strain: float = 0.0
    """Sum over requests of the utilization to the power of `EXPONENT`."""

    def discount(self) -> Experience:
        """Return what remains after one cycle."""
        return replace(self, attained=self.attained.times(FORGETTING), strain=self.strain * FORGETTING)

    def add(self, seen: Attainment, *, utilization: float, usual: float) -> Experience:
        """Return it with the requests of a cycle; `usual` is the utilization that is planned for at present.

        Cycles far below it, as at night, or far above it, as while replicas start, say little about it and
        weigh less.
        """
        if not seen.requests or utilization <= 0 or usual <= 0:
            return self
        weight = min((utilization / usual) ** 2, (usual / utilization) ** 4)
        requests = weight * seen.requests
        return replace(
            self,
            attained=self.attained + seen.times(weight),
            strain=self.strain + requests * utilization**EXPONENT,
        )

    def utilization(self, assumed: float, allowed: float, unavoidable: float = 0.0) -> float:
        """Return the utilization at which at most the allowed share of requests misses a target.

        The `unavoidable` share, which misses at any utilization, does not count.
        """
        allowed *= AIM
        measured = max(0.0, self.attained.missed - unavoidable * self.attained.requests)
        missed = measured + ASSUMED_REQUESTS * allowed
        expected = assumed if self.former is None else self.former
        strain = self.strain + ASSUMED_REQUESTS * expected**EXPONENT
        # With `missed = c * sum of u^EXPONENT` over requests, c is `missed / strain`; solve `allowed = c *
        # u^EXPONENT`. The assumed requests miss as allowed at the expected utilization, which is the result
        # without others.
        return float((allowed * strain / missed) ** (1 / EXPONENT))


NO_EXPERIENCE: Final = Experience()
"""That of a variant whose engines have not reported."""
