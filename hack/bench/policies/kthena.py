"""The algorithm of the reference, Kthena: as released, at the revision of our kinds, and as mended later.

Source: `pkg/autoscaler/algorithm` and `pkg/autoscaler/autoscaler` of volcano-sh/kthena. As released, a pod
that is not ready stops scaling of its target, the corrected replica count is recorded as the recommendation,
and scale-down steps start from the minimum of a period instead of its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from controller.policies.policy import Bounds, PolicyMetric, ScalingPolicy, StableLimits
from hack.calling.load import WrongAnswerError

Best = Callable[[Iterable[int]], int]

_BOUNDS: Final = Bounds(min_replicas=1, max_replicas=20)
_POLICY: Final = ScalingPolicy(
    metrics=(PolicyMetric(name="m", target=10.0),),
    up=StableLimits(instances=4, percent=100, period_seconds=60.0),
    down=StableLimits(instances=0, percent=100, period_seconds=60.0, window_seconds=300.0),
)
_INTERVAL_SECONDS: Final = 15.0
_TICKS: Final = 72


@dataclass(kw_only=True)
class _Records:
    """The best recommendation within a window."""

    window_seconds: float
    best: Best
    values: list[tuple[float, int]] = field(default_factory=list)

    def add(self, now_seconds: float, value: int) -> None:
        self.values.append((now_seconds, value))

    def get(self, now_seconds: float) -> int | None:
        self.values = [item for item in self.values if item[0] + self.window_seconds >= now_seconds]
        return self.best(value for _, value in self.values) if self.values and self.window_seconds else None


@dataclass(kw_only=True)
class _Line:
    """The best value that held within a window; each holds until the next one, or at most for two windows."""

    window_seconds: float
    best: Best
    closed: list[tuple[float, int]] = field(default_factory=list)
    open: tuple[float, int] | None = None

    def add(self, now_seconds: float, value: int) -> None:
        if self.open is not None:
            self.closed.append((now_seconds, self.open[1]))
        self.open = now_seconds, value

    def get(self, now_seconds: float, current: int) -> int:
        self.closed = [item for item in self.closed if item[0] + self.window_seconds >= now_seconds]
        values = [current, *(value for _, value in self.closed)]
        if self.open is not None and self.open[0] + 2 * self.window_seconds >= now_seconds:
            values.append(self.open[1])
        return self.best(values) if self.window_seconds else current


class Reference:
    """Kthena's decisions for the sum of one metric over the pods."""

    def __init__(self, policy: ScalingPolicy, bounds: Bounds, *, is_mended: bool) -> None:
        self._policy = policy
        self._bounds = bounds
        self._is_mended = is_mended
        up, down, panic = policy.up, policy.down, policy.panic
        self._most_said = _Records(window_seconds=down.window_seconds, best=max)
        self._least_said = _Records(window_seconds=up.window_seconds, best=min)
        self._most_held = _Line(window_seconds=down.period_seconds, best=max if is_mended else min)
        self._least_held = _Line(window_seconds=up.period_seconds, best=min)
        self._least_in_panic = _Line(window_seconds=panic.period_seconds if panic else 0.0, best=min)
        self._panic_until = -math.inf

    def decide(self, now_seconds: float, *, current: int, ready: int, total: float) -> int:
        """Return the desired replicas; `total` is the sum of the metric."""
        if not ready or (ready < current and not self._is_mended):
            return current
        recommended = self._recommendation(current, total)
        panic = self._policy.panic
        if panic and panic.hold_seconds and recommended * 100 >= current * panic.threshold_percent:
            self._panic_until = now_seconds + panic.hold_seconds
        done = self._correction(now_seconds, current, recommended)
        for records in (self._most_said, self._least_said):
            records.add(now_seconds, recommended if self._is_mended else done)
        for line in (self._most_held, self._least_held, self._least_in_panic):
            line.add(now_seconds, done)
        return done

    def _recommendation(self, current: int, total: float) -> int:
        bounds = self._bounds
        if not bounds.min_replicas <= current <= bounds.max_replicas:
            return min(max(current, bounds.min_replicas), bounds.max_replicas)
        ratio = total / self._policy.metrics[0].target
        # The sum over all pods is compared with the target of one pod.
        near = abs(ratio - 1) <= self._policy.tolerance_percent / 100
        recommended = current if near else math.ceil(ratio)
        return min(max(recommended, bounds.min_replicas), bounds.max_replicas)

    def _correction(self, now_seconds: float, current: int, recommended: int) -> int:
        bounds, policy = self._bounds, self._policy
        if now_seconds <= self._panic_until and policy.panic:
            start = self._least_in_panic.get(now_seconds, current)
            reach = start + start * policy.panic.percent // 100
            done = max(min(recommended, reach) if policy.panic.period_seconds else recommended, current)
        elif recommended < current:
            most = self._most_said.get(now_seconds)
            steady = recommended if most is None else max(recommended, most)
            start = self._most_held.get(now_seconds, current)
            done = min(max(steady, start - _step(policy.down, start)), current)
        elif recommended > current:
            least = self._least_said.get(now_seconds)
            steady = recommended if least is None else min(recommended, least)
            start = self._least_held.get(now_seconds, current)
            done = max(min(steady, start + _step(policy.up, start)), current)
        else:
            done = recommended
        return min(max(done, bounds.min_replicas), bounds.max_replicas)


def _step(limits: StableLimits, start: int) -> int:
    choose = max if limits.select == "Or" else min
    return choose(limits.instances, start * limits.percent // 100)


def check_reference() -> None:
    """Raise WrongAnswerError unless the reference replays what was observed.

    Growth is limited to one step for each period and interval. As released, a window is prolonged by its own
    result, so that replicas stay; the mended version removes them after the window.
    """
    steps = {60.0: 5, 135.0: 10, 210.0: 18}
    for is_mended, removed in ((False, {}), (True, {420.0: 2})):
        _expect(lambda now: 10.0 if now < 60 else 180.0, is_mended=is_mended, first=1, want=steps)  # noqa: PLR2004 (seconds)
        _expect(lambda now: 100.0 if now < 120 else 15.0, is_mended=is_mended, first=10, want=removed)  # noqa: PLR2004 (seconds)


def _expect(load: Callable[[float], float], *, is_mended: bool, first: int, want: dict[float, int]) -> None:
    reference, current, changes = Reference(_POLICY, _BOUNDS, is_mended=is_mended), first, dict[float, int]()
    for tick in range(_TICKS):
        now = _INTERVAL_SECONDS * tick
        recommended = reference.decide(now, current=current, ready=current, total=load(now))
        if recommended != current:
            changes[now] = recommended
        current = recommended
    if changes != want:
        raise WrongAnswerError(f"the reference changes replicas to {changes} instead of {want}")
