"""Loads of several shapes under one policy in virtual time: our decisions, and those of the reference.

A replica serves the target value of the policy's metric from the end of its start-up. The metric is the load,
spread evenly over the ready replicas. A second counts as overload if the load exceeds the capacity of the
ready replicas by more than the policy's tolerance, within which nothing has to be scaled.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.policies.deciding import decide
from controller.policies.history import History
from controller.policies.policy import (
    Bounds,
    MetricObservation,
    Observation,
    PanicRules,
    PodValue,
    PolicyMetric,
    ScalingPolicy,
    StableLimits,
    Value,
)
from hack.bench.policies.kthena import Reference

STARTS_SECONDS: Final = (0.0, 60.0, 180.0)
_TICK_SECONDS: Final = 15.0
_STEP_SECONDS: Final = 5.0
HOUR_SECONDS: Final = 3600.0
"""Duration of each load."""

TARGET: Final = 10.0
"""Target value of the metric per replica."""

BOUNDS: Final = Bounds(min_replicas=1, max_replicas=40)
"""Replica bounds of every scale target."""

POLICY: Final = ScalingPolicy(
    metrics=(PolicyMetric(name="m", target=TARGET),),
    up=StableLimits(instances=4, percent=100, period_seconds=60.0),
    down=StableLimits(instances=0, percent=100, period_seconds=60.0, window_seconds=300.0),
    panic=PanicRules(percent=200, period_seconds=30.0, threshold_percent=200, hold_seconds=60.0),
)
"""The policy of every scale target, for all algorithms."""

_LONG: Final = (600.0, 2400.0)
_SHORT: Final = ((600.0, 900.0), (2100.0, 2400.0))
TOLERATED: Final = 1 + POLICY.tolerance_percent / 100
"""Ratio of the load to the capacity of the ready replicas above which there is overload."""

Load = Callable[[float], float]
Decider = Callable[[float, int, int, float], int]
"""Returns the desired replicas for a time, requested replicas, ready replicas, and the sum of the metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectories:
    """The outcome of one load with one algorithm."""

    replica_hours: float
    overload_seconds: float
    replicas: tuple[int, ...]
    """Replicas at each decision, or at each sample of a live run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """The outcomes of one load with one start-up time, by algorithm."""

    shape: str
    start_seconds: float
    released: Trajectories
    """The reference as released."""

    mended: Trajectories
    """The reference as mended later. It compares the sum over all pods with the target of one pod, so its
    tolerance has no effect here."""

    ours: Trajectories
    exact: Trajectories
    """Ours without tolerance, for comparison with the mended reference."""


def trajectories() -> list[Trajectory]:
    """Return the trajectories of all shapes with all start-up times."""
    return [_trajectory(name, load, start) for name, load in LOADS.items() for start in STARTS_SECONDS]


def _trajectory(shape: str, load: Load, start_seconds: float) -> Trajectory:
    def by_reference(*, is_mended: bool) -> Trajectories:
        reference = Reference(POLICY, BOUNDS, is_mended=is_mended)
        return _play(
            load,
            start_seconds,
            lambda now, current, ready, total: reference.decide(
                now, current=current, ready=ready, total=total
            ),
        )

    return Trajectory(
        shape=shape,
        start_seconds=start_seconds,
        released=by_reference(is_mended=False),
        mended=by_reference(is_mended=True),
        ours=_play(load, start_seconds, ours(POLICY)),
        exact=_play(load, start_seconds, ours(replace(POLICY, tolerance_percent=0))),
    )


def ours(policy: ScalingPolicy) -> Decider:
    """Return our algorithm, which decides by the values of the pods."""
    histories = [History()]

    def decide_now(now: float, current: int, ready: int, total: float) -> int:
        pods = tuple(PodValue(seen=Value(value=total / ready)) for _ in range(ready))
        seen = Observation(current_replicas=current, metrics={"m": MetricObservation(pods=pods)})
        decision = decide(policy, BOUNDS, histories[-1], seen, now)
        histories[:] = [decision.history]
        return decision.replicas

    return decide_now


def _play(load: Load, start_seconds: float, decider: Decider) -> Trajectories:
    first = math.ceil(load(0.0))
    ready_at = [0.0] * first
    overloaded = held = 0.0
    counts = []
    for step in range(int(HOUR_SECONDS / _STEP_SECONDS)):
        now = step * _STEP_SECONDS
        ready = sum(moment <= now for moment in ready_at)
        if now % _TICK_SECONDS == 0:
            recommended = decider(now, len(ready_at), ready, load(now) * TARGET)
            counts.append(recommended)
            new = recommended - len(ready_at)
            ready_at = sorted(ready_at)[:recommended] + [now + start_seconds] * max(0, new)
            ready = sum(moment <= now for moment in ready_at)
        overloaded += _STEP_SECONDS * (load(now) > ready * TOLERATED + 1e-9)
        held += _STEP_SECONDS * len(ready_at)
    return Trajectories(
        replica_hours=held / HOUR_SECONDS, overload_seconds=overloaded, replicas=tuple(counts)
    )


def _step(now: float) -> float:
    return 12.0 if _is_within(now, _LONG) else 2.0


def _spike(now: float) -> float:
    return 16.0 if any(_is_within(now, part) for part in _SHORT) else 2.0


def _is_within(now: float, part: tuple[float, float]) -> bool:
    return part[0] <= now < part[1]


def _ramp(now: float) -> float:
    up, down = (now - 300) / 1200, (3300 - now) / 1200
    return 2.0 + 14.0 * min(1.0, max(0.0, min(up, down)))


def _noise() -> Sequence[float]:
    chance = random.Random(17)  # noqa: S311 (not used for security)
    level, drawn = 0.0, []
    for _ in range(int(HOUR_SECONDS / _STEP_SECONDS) + 1):
        level = 0.9 * level + chance.gauss(0.0, 0.5)
        drawn.append(max(0.5, 8.0 + level))
    return drawn


_NOISE: Final = _noise()


def _noisy(now: float) -> float:
    return _NOISE[int(now / _STEP_SECONDS)]


LOADS: Final[Mapping[str, Load]] = {"step": _step, "spike": _spike, "ramp": _ramp, "noisy": _noisy}
"""Loads by name, in replicas."""
