"""Check of the reference algorithm: it scales as the released program was observed to scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from controller.policies.policy import Bounds, PolicyMetric, ScalingPolicy, StableLimits
from hack.bench.policies.kthena import Reference
from hack.calling.load import WrongAnswerError

_BOUNDS: Final = Bounds(min_replicas=1, max_replicas=20)
_POLICY: Final = ScalingPolicy(
    metrics=(PolicyMetric(name="m", target=10.0),),
    up=StableLimits(instances=4, percent=100, period_seconds=60.0),
    down=StableLimits(instances=0, percent=100, period_seconds=60.0, window_seconds=300.0),
)
_INTERVAL_SECONDS: Final = 15.0
_TICKS: Final = 72

Load = Callable[[float], float]


def check_reference() -> None:
    """Raise WrongAnswerError unless the reference replays what was observed.

    Growth is limited to one step for each period and interval. As released, a window is prolonged by its own
    result, so that replicas stay; the mended version removes them after the window.
    """
    steps = {60.0: 5, 135.0: 10, 210.0: 18}
    for is_mended, removed in ((False, {}), (True, {420.0: 2})):
        _expect(lambda now: 10.0 if now < 60 else 180.0, is_mended=is_mended, first=1, want=steps)  # noqa: PLR2004 (seconds)
        _expect(lambda now: 100.0 if now < 120 else 15.0, is_mended=is_mended, first=10, want=removed)  # noqa: PLR2004 (seconds)


def _expect(load: Load, *, is_mended: bool, first: int, want: dict[float, int]) -> None:
    reference, current, changes = Reference(_POLICY, _BOUNDS, is_mended=is_mended), first, dict[float, int]()
    for tick in range(_TICKS):
        now = _INTERVAL_SECONDS * tick
        wanted = reference.decide(now, current=current, ready=current, total=load(now))
        if wanted != current:
            changes[now] = wanted
        current = wanted
    if changes != want:
        raise WrongAnswerError(f"the reference changes replicas to {changes} instead of {want}")
