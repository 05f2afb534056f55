"""The reference implementation in the benchmark behaves like the observed reference."""

from __future__ import annotations

from collections.abc import Callable

from controller.policies.policy import Bounds, PolicyMetric, ScalingPolicy, StableLimits
from hack.bench.policies.kthena import Reference

BOUNDS = Bounds(min_replicas=1, max_replicas=20)
POLICY = ScalingPolicy(
    metrics=(PolicyMetric(name="m", target=10.0),),
    up=StableLimits(instances=4, percent=100, period_seconds=60.0),
    down=StableLimits(instances=0, percent=100, period_seconds=60.0, window_seconds=300.0),
)


def play(load: Callable[[float], float], *, is_mended: bool, first: int, ticks: int) -> dict[float, int]:
    """Return the changes of replicas by time; all replicas are ready at once."""
    found, current, changes = Reference(POLICY, BOUNDS, is_mended=is_mended), first, {}
    for tick in range(ticks):
        now = 15.0 * tick
        wanted = found.decide(now, current=current, ready=current, total=load(now))
        if wanted != current:
            changes[now] = wanted
        current = wanted
    return changes


def test_e1_growth_in_steps() -> None:
    """Load 10 until 60 s, then 180: 5, 10 and 18 replicas, each a period and an interval later."""
    for is_mended in (False, True):
        changes = play(lambda now: 10.0 if now < 60 else 180.0, is_mended=is_mended, first=1, ticks=20)

        assert changes == {60.0: 5, 135.0: 10, 210.0: 18}


def test_e2_a_window_that_is_prolonged_by_its_own_result() -> None:
    """Load 100 until 120 s, then 15: replicas stay; the corrected version removes them after the window."""

    def load(now: float) -> float:
        return 100.0 if now < 120 else 15.0

    assert play(load, is_mended=False, first=10, ticks=72) == {}
    assert play(load, is_mended=True, first=10, ticks=72) == {420.0: 2}
