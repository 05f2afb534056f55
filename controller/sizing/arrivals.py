"""Estimate the arrival rate of a model's requests from counters, and forecast it over a start-up.

The forecast is the mean of the last two minutes, plus a bound from the spread of the last ten. A trend has no
value here: on recorded traces, the mean has less pinball loss one to seven minutes ahead than a line, damped
or not, or a moving average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from controller.sizing.lengths import total
from controller.sizing.memory import ModelMemory, Tick
from controller.sizing.records import EngineReport, SizingSettings

LEAST_WAIT_SECONDS: Final = 5.0
"""Mean time to first token from which clients may have given up: shorter ones contain a prefill."""

_ABSENT_CYCLES: Final = 3.0
"""Time without a counting engine, in cycles, after which queues do not tell when their requests arrived."""


def with_tick(
    before: ModelMemory,
    reports: Mapping[str, EngineReport],
    *,
    ready: AbstractSet[str],
    now_seconds: float,
    settings: SizingSettings,
) -> tuple[Tick, ...]:
    """Return the recent ticks, with one for this cycle if any engine counted; `reports` are by pod.

    Ready replicas without an interval are assumed to serve as much as the others, because Prometheus may have
    new samples of only some of them in each cycle.
    """
    since = now_seconds - settings.history_seconds
    if not ready and before.ticks:
        # Nobody sees the load of a model without replicas: it is assumed to be what it was last.
        since = before.ticks[-1].moment_seconds - settings.history_seconds
    kept = tuple([tick for tick in before.ticks if since < tick.moment_seconds < now_seconds])
    intervals = [report.interval for report in reports.values() if report.interval]
    if not intervals:
        return kept
    share = max(1.0, len(ready) / len(intervals))
    absent_seconds = now_seconds - kept[-1].moment_seconds if kept else math.inf
    was_absent = absent_seconds > _ABSENT_CYCLES * max([item.seconds for item in intervals])
    # After a time without engines, their queues contain requests that were held meanwhile.
    arrivals = [item.first_tokens if was_absent else item.arrivals for item in intervals]
    counted = sum([count / item.seconds for count, item in zip(arrivals, intervals, strict=True)]) * share
    joined = _joining_rate(list(reports.values()))
    rates = [tick.requests_per_second for tick in kept] or [0.0]
    # If no request of a queue was served, their number says little: the usual rate is assumed. Otherwise, the
    # highest recent rate is the limit, because queues and times lag behind each other.
    joined = fmean(rates) if math.isinf(joined) else min(joined * share, max(rates))
    arrived = max(counted, joined)
    tick = Tick(
        moment_seconds=now_seconds,
        requests_per_second=arrived,
        counted_per_second=counted,
        counts=total(intervals),
    )
    return (*kept, tick)


def _joining_rate(reports: Sequence[EngineReport]) -> float:
    """Return the rate of requests that join the queues of engines, in requests per second; 0 without queues.

    By Little's law, it is the requests in a queue divided by the time that they wait. It includes those that
    clients give up later; counters of arrivals lack these, because they leave the queue without being served.
    It is infinite if none of the requests in a queue is served, so that their time is unknown.
    """
    rate, is_queue = 0.0, False
    for report in reports:
        interval = report.interval
        if interval is None:
            continue
        if math.isinf(interval.mean_wait_seconds):
            if report.waiting > interval.waiting_change:  # all that waited has been given up, or still waits
                return math.inf
            rate += interval.arrivals / interval.seconds
            continue
        if interval.mean_wait_seconds >= LEAST_WAIT_SECONDS:
            rate, is_queue = rate + report.waiting / interval.mean_wait_seconds, True
        else:
            rate += interval.arrivals / interval.seconds
    return rate if is_queue else 0.0


MEAN_TICKS: Final = 8
"""Number of samples whose mean is the present rate."""

SPREAD_TICKS: Final = 40
"""Number of samples whose standard deviation counts."""

DEVIATIONS: Final = 1.645
"""Standard deviations of the bound: those of a probability of 95 percent."""

_SHARE_OF_SPREAD: Final = math.sqrt(0.75)
"""Standard deviation of a mean over a start-up around the present rate, relative to that of samples."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A forecast in requests per second."""

    now: float
    """Present rate."""

    upper: float
    """Upper bound of the rate until replicas that are started now are ready."""


def forecast(rates: Sequence[float]) -> Forecast:
    """Return the forecast from rates in requests per second, oldest first.

    Raises ValueError without rates.
    """
    if not rates:
        raise ValueError("a forecast needs at least one rate")
    recent = rates[-MEAN_TICKS:]
    mean = sum(recent) / len(recent)
    # Two high rates in a row are a jump, which the mean would follow only in minutes; a single one is noise.
    latest = min(rates[-2:])
    now = max(mean, latest)
    # Higher rates from before are of a load that is over, and no deviation from the present one.
    most = max(recent)
    wide = [min(rate, most) for rate in rates[-SPREAD_TICKS:]]
    center = sum(wide) / len(wide)
    spread = math.sqrt(sum([(rate - center) ** 2 for rate in wide]) / max(1, len(wide) - 1))
    return Forecast(now=now, upper=max(now, mean + DEVIATIONS * _SHARE_OF_SPREAD * spread))
