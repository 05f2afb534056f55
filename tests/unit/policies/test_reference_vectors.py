"""The reference's test vectors by number, where our specification agrees.

R are recommendations, C corrections, H histograms, W windows. In a vector of the reference, `unready` are
replicas that are requested and not ready. Our specification differs in these:

- R5, R25: target 0. Admission refuses it, as the reference's own does
- R11: 5 replicas for 9 are 4 apart, less than 9 * 50 %: the seed says replicas, so 9 stay
- R26: target 1e-100. Admission refuses it, yet here it gives the same
- C4: selectPolicy Unknown. Admission refuses it
- W4 at 28 s: a number of replicas stays until another one is seen, however long that takes
- E1: changes count until they are a period old: 5 at 60 s, 10 at 120 s, not at 135 s
- E2: raw recommendations stand in the window, so load that fell is followed after 300 s
- ratio repair: the kinds have no ratio of prefill and decode; later revisions of the reference do
- aggregation: metrics are sums over the replicas, whatever their names: an average would be divided by the
  target as if it were a sum
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest

from controller.policies.deciding import decide
from controller.policies.history import Entry, History
from controller.policies.measuring import ExposedMetric, PodExposure, baseline, quantile
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
from controller.policies.recommending import correction_steps

NOW = 1_000_000.0
FREE = StableLimits(period_seconds=0.0)
"""No limit and no window: the decision is the recommendation."""

ORDINARY = StableLimits()
NOTHING = History()


@dataclass(frozen=True, kw_only=True)
class R:
    """A recommendation: bounds, current replicas, metrics of pods, and the expected replicas."""

    bounds: tuple[int, int]
    current: int
    tolerance: int = 0
    targets: tuple[float, ...] = (1.0,)
    pods: tuple[tuple[float | None, ...], ...] = ()
    total: float | None = None
    want: int


def same(count: int, value: float | None) -> tuple[tuple[float | None, ...], ...]:
    """Return pods with the same value of one metric."""
    return ((value,),) * count


def said(value: float | None) -> Value | None:
    """Return the value that a pod or a source reports."""
    return None if value is None else Value(value=value)


RECOMMENDED = {
    "R1": R(bounds=(5, 10), current=4, tolerance=10, targets=(), want=5),
    "R2": R(bounds=(5, 10), current=11, tolerance=10, targets=(), want=10),
    "R4": R(bounds=(1, 10**6), current=3, targets=(3, 5, 4), pods=((6, 500, 20),) * 3, want=300),
    "R7": R(bounds=(1, 100), current=3, pods=((19.1,), (3.1,), (7.1,)), want=30),
    "R8": R(bounds=(5, 20), current=10, pods=same(10, 0.1), want=5),
    "R10": R(bounds=(1, 100), current=9, tolerance=50, pods=same(10, 0.51), want=9),
    "R11 by the seed": R(bounds=(1, 100), current=9, tolerance=50, pods=same(10, 0.49), want=9),
    "R13": R(bounds=(1, 100), current=9, tolerance=50, pods=same(10, 1.51), want=16),
    "R14": R(bounds=(1, 100), current=58, pods=same(8, 0.15), want=2),
    "R16": R(bounds=(1, 100), current=58, pods=same(8, 3.9), want=58),
    "R17": R(bounds=(1, 100), current=10, pods=same(2, None) + same(8, 0.5), want=6),
    "R19": R(bounds=(1, 100), current=58, pods=same(50, None) + same(8, 2.9), want=58),
    "R20": R(bounds=(1, 100), current=58, pods=same(4, None) + same(8, 2.9), want=58),
    "R22": R(bounds=(1, 100), current=10, tolerance=49, targets=(3,), total=14.9, want=5),
    "R23": R(bounds=(1, 100), current=10, tolerance=51, targets=(3,), total=44.9, want=10),
    "R26": R(bounds=(1, 100), current=1, targets=(1e-100,), total=1e100, want=100),
}


@pytest.mark.parametrize("case", RECOMMENDED.values(), ids=RECOMMENDED.keys())
def test_recommendations_of_the_reference(case: R) -> None:
    """The values are per pod, and silent pods have been silent for so long that the others decide."""
    names = [f"m{place}" for place in range(len(case.targets))]
    metrics = tuple(PolicyMetric(name=name, target=t) for name, t in zip(names, case.targets, strict=True))
    policy = ScalingPolicy(metrics=metrics, tolerance_percent=case.tolerance, up=FREE, down=FREE)
    seen = {
        name: MetricObservation(
            pods=tuple(PodValue(seen=said(pod[place])) for pod in case.pods), total=said(case.total)
        )
        for place, name in enumerate(names)
    }
    history = History(silent=dict.fromkeys(names, NOW - 10_000))
    found = decide(
        policy,
        Bounds(min_replicas=case.bounds[0], max_replicas=case.bounds[1]),
        history,
        Observation(current_replicas=case.current, metrics=seen),
        NOW,
    )

    assert found.replicas == case.want


@dataclass(frozen=True, kw_only=True)
class C:
    """A correction: current, wanted and expected replicas."""

    current: int
    wanted: int
    up: StableLimits = ORDINARY
    down: StableLimits = ORDINARY
    panic_percent: int | None = None
    history: History = NOTHING
    want: int


def limits(instances: int, percent: int, select: str, *, window: float = 0.0) -> StableLimits:
    """Return limits over a minute."""
    limit = StableLimits(instances=instances, percent=percent, period_seconds=60.0, window_seconds=window)
    return replace(limit, select="And") if select == "And" else limit


BEFORE = NOW - 1.0
CORRECTED = {
    "C1": C(current=7, wanted=7, want=7),
    "C2": C(down=limits(1, 40, "Or"), current=10, wanted=5, want=6),
    "C5": C(
        down=limits(2, 20, "Or", window=60),
        current=10,
        wanted=5,
        history=History(highs=(Entry(BEFORE, 9), Entry(NOW, 5))),
        want=9,
    ),
    "C7": C(up=limits(3, 100, "Or"), current=5, wanted=20, want=10),
    "C8": C(up=limits(3, 100, "And"), current=5, wanted=20, want=8),
    "C10": C(
        up=limits(3, 100, "Or", window=60),
        current=5,
        wanted=20,
        history=History(lows=(Entry(BEFORE, 12), Entry(NOW, 20))),
        want=10,
    ),
    "C11": C(
        up=limits(2, 50, "Or"),
        current=10,
        wanted=50,
        history=History().add_request(BEFORE, 6).add_request(NOW, 10),
        want=10,
    ),
    "C13": C(panic_percent=100, current=5, wanted=15, want=10),
    "C14": C(
        panic_percent=100,
        current=10,
        wanted=30,
        history=History().add_request(BEFORE, 6).add_request(NOW, 10),
        want=12,
    ),
    "C16": C(panic_percent=100, current=0, wanted=5, want=5),
    "C17": C(panic_percent=1000, current=10, wanted=3, want=10),
}


@pytest.mark.parametrize("case", CORRECTED.values(), ids=CORRECTED.keys())
def test_corrections_of_the_reference(case: C) -> None:
    """Limits, windows and panic mode are applied to a recommendation."""
    panic = None
    if case.panic_percent is not None:
        panic = PanicRules(percent=case.panic_percent, period_seconds=60.0)
    policy = ScalingPolicy(metrics=(), up=case.up, down=case.down, panic=panic)
    steps = list(
        correction_steps(
            policy,
            case.history,
            current=case.current,
            recommended=case.wanted,
            in_panic=panic is not None,
            now_seconds=NOW,
        )
    )

    assert (steps[-1].after if steps else case.wanted) == case.want


def test_c19_bounds_take_precedence() -> None:
    """C19: the maximum is 10, and 15 replicas exist."""
    policy = ScalingPolicy(metrics=(PolicyMetric(name="m", target=1.0),))
    seen = Observation(current_replicas=15, metrics={"m": MetricObservation(total=Value(value=15))})

    assert decide(policy, Bounds(min_replicas=1, max_replicas=10), History(), seen, NOW).replicas == 10


INF = math.inf
Buckets = dict[float, float]
QUANTILES: dict[str, tuple[Buckets, Buckets, int, float | None]] = {
    "H1": ({0.5: 2, INF: 5}, {0.5: 2, INF: 4}, 95, None),
    "H2": ({0.5: 2, INF: 5}, {0.5: 2, INF: 5}, 95, 0.0),
    "H4": ({0.5: 2, 0.75: 4, INF: 5}, {0.5: 4, 0.75: 5, INF: 8}, 95, None),
    "H5": ({0.5: 2, 0.75: 4, INF: 5}, {0.5: 4, 0.75: 8, INF: 10}, 100, 1.5),
    "H7": ({}, {}, 95, 0.0),
    "H8": ({0.5: 2, 0.75: 4, INF: 5}, {0.5: 3, 0.75: 8, INF: 10}, 1, 0.5),
}


@pytest.mark.parametrize(("past", "now", "percent", "want"), QUANTILES.values(), ids=QUANTILES.keys())
def test_quantiles_of_the_reference(past: Buckets, now: Buckets, percent: int, want: float | None) -> None:
    """They are quantiles of a histogram's increase, interpolated within its bucket; none if it decreased."""
    assert quantile(past, now, percent) == want


def history_of(values: tuple[int, ...]) -> History:
    """Return a history with a recommendation every two seconds."""
    history = History()
    for seconds, value in zip((1.0, 3.0, 5.0, 7.0), values, strict=True):
        history = history.add_recommendation(seconds, value)
    return history


@pytest.mark.parametrize(("now", "want"), [(7, 6), (12, 5), (14, 5), (16, 2), (18, None)])
def test_w1_the_highest_recommendation_of_a_window(now: float, want: int | None) -> None:
    """The recommendations are 6, 3, 5 and 2 at 1, 3, 5 and 7 s; the window is 10 s."""
    assert history_of((6, 3, 5, 2)).highest(now, 10.0) == want


@pytest.mark.parametrize(("now", "want"), [(7, 3), (12, 3), (14, 5), (16, 7), (18, None)])
def test_w2_the_lowest_recommendation_of_a_window(now: float, want: int | None) -> None:
    """The recommendations are 6, 3, 5 and 7 at 1, 3, 5 and 7 s; the window is 10 s."""
    assert history_of((6, 3, 5, 7)).lowest(now, 10.0) == want


@pytest.mark.parametrize(("now", "current", "want"), [
    (7, 10, 3), (12, 10, 3), (14, 10, 3), (16, 10, 4), (18, 10, 4), (18, 2, 2), (26, 10, 4),
])  # fmt: skip
def test_w4_the_fewest_replicas_of_a_period(now: float, current: int, want: int) -> None:
    """There are 6, 3, 9 and 4 replicas since 1, 3, 5 and 7 s; the period is 10 s."""
    history = History()
    for seconds, count in ((1, 6), (3, 3), (5, 9), (7, 4)):
        history = history.add_request(seconds, count)
    fewest = history.fewest(now, 10.0)

    assert fewest is not None
    assert min(fewest, current) == want


@pytest.mark.parametrize(
    ("now", "want"), [(12, "foo"), (14, "bar"), (16, "quz"), (18, "abc"), (21, "abc"), (23, None)]
)
def test_w5_the_scrape_that_another_one_is_compared_with(now: float, want: str | None) -> None:
    """It is the newest scrape that is at least 10 s and at most 15 s old.

    At 7 s the reference has none; here the oldest one is used until then, so that a new pod has a value at
    its second scrape.
    """
    looks = [
        PodExposure(s, {name: ExposedMetric()})
        for s, name in ((1, "foo"), (3, "bar"), (5, "quz"), (7, "abc"))
    ]
    found = baseline(looks, float(now), window_seconds=10.0, kept_seconds=15.0)

    assert (next(iter(found.exposed)) if found else None) == want


def test_e3_generated_policies_with_default_values_enter_panic_mode_at_once() -> None:
    """E3: load 10, and 180 from 60 s on; a panic policy without a period has no limit."""
    policy = ScalingPolicy(
        metrics=(PolicyMetric(name="m", target=10.0),), panic=PanicRules(period_seconds=0.0)
    )
    history, current, made = History(), 1, []
    for number in range(8):
        load = 10.0 if number < 4 else 180.0
        seen = Observation(
            current_replicas=current, metrics={"m": MetricObservation(total=Value(value=load))}
        )
        decision = decide(policy, Bounds(min_replicas=1, max_replicas=20), history, seen, NOW + 15.0 * number)
        history, current = decision.history, decision.replicas
        made.append(current)

    assert made == [1, 1, 1, 1, 18, 18, 18, 18]
