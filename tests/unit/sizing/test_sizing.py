"""All of sizing at once: what engines report over some cycles, and what planning is told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.planning.load import CapacitySource, ModelLoad, Signal
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.sizing.memory import SizingMemory
from controller.sizing.records import (
    EngineInterval,
    EngineReport,
    Key,
    Learned,
    Profile,
    SizingSettings,
    StepParameters,
    Targets,
    VariantFacts,
)
from controller.sizing.sizing import Sized, sized

H100 = StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.03)
TARGETS = Targets(ttft_seconds=2.0, itl_seconds=0.08)
CYCLE_SECONDS = 15.0


def variant(name: str = "llama", *, ready: int = 2, **changes: Any) -> Variant:
    """Return a variant whose replicas are all ready."""
    pods = tuple(Replica(name=f"{name}-{number}", node="n", ready=True) for number in range(ready))
    fields: dict[str, Any] = {
        "namespace": "llm",
        "name": name,
        "model_id": "llama",
        "accelerator": "H100",
        "accelerators_per_replica": 1,
        "cost_per_replica": Decimal(100),
        "current_replicas": ready,
        "replicas": pods,
    }
    return Variant(**fields | changes)


def interval(
    rate: float,
    *,
    engine: StepParameters = H100,
    prompt: float = 1000.0,
    output: float = 200.0,
    **changes: Any,
) -> EngineInterval:
    """Return a cycle of an engine that serves so many requests per second."""
    busy = 1 - rate * (engine.beta_ms * output + engine.delta_ms * prompt) / 1e3
    tau, count = engine.alpha_ms / 1e3 / busy, rate * CYCLE_SECONDS
    fields: dict[str, Any] = {
        "seconds": CYCLE_SECONDS,
        "first_tokens": count,
        "waiting_change": 0.0,
        "prompt_tokens": count * prompt,
        "computed_prompt_tokens": count * prompt,
        "generation_tokens": count * output,
        "finished": count,
        "inter_token_seconds": count * output * tau,
        "inter_tokens": count * output,
    }
    return EngineInterval(**fields | changes)


def report(found: EngineInterval | None, **changes: Any) -> EngineReport:
    """Return a fresh report."""
    fields: dict[str, Any] = {"age_seconds": 1.0, "waiting": 0, "running": 1, "kv_tokens": 384_000}
    return EngineReport(**fields | {"interval": found} | changes)


@dataclass
class Watch:
    """Cycles over the same variants, with memory."""

    variants: tuple[Variant, ...]
    facts: Mapping[Key, VariantFacts] = field(default_factory=dict)
    settings: SizingSettings = SizingSettings()  # noqa: RUF009 (frozen)
    memory: SizingMemory = field(default_factory=SizingMemory)
    now: float = 100_000.0

    def see(self, reports: Mapping[str, EngineReport]) -> Sized:
        """Size once, a cycle later; reports are by pod."""
        self.now += CYCLE_SECONDS
        snapshot = Snapshot(nodes=(), variants=self.variants, taken_seconds=self.now)
        known = {("llm", pod): item for pod, item in reports.items()}
        found = sized(snapshot, self.facts, known, self.memory, self.settings)
        self.memory = found.memory
        return found

    def keep(self, ready: int) -> None:
        """Let the last pods go."""
        self.variants = (variant(ready=ready),)

    def pods(self) -> Iterator[str]:
        """Yield all pods."""
        yield from (pod.name for item in self.variants for pod in item.replicas)

    def steady(self, cycles: int, each: float = 10.0, **changes: Any) -> Sized:
        """Let every engine serve so many requests per second for some cycles."""
        found = [
            self.see({pod: report(interval(each, **changes)) for pod in self.pods()}) for _ in range(cycles)
        ]
        return found[-1]


def load(found: Sized) -> ModelLoad:
    """Return the load of the one model."""
    assert len(found.snapshot.loads) == 1
    return found.snapshot.loads[0]


def facts(**changes: Any) -> dict[Key, VariantFacts]:
    """Return the facts of the variant."""
    return {("llm", "llama"): VariantFacts(targets=TARGETS, **changes)}


def test_a_steady_load_is_known_with_its_lengths_and_what_a_replica_serves() -> None:
    """Two engines with 10 requests/s each; one would serve some 20 within its targets."""
    watch = Watch(variants=(variant(),), facts=facts())

    found = watch.steady(20)

    one, capacity = load(found), found.snapshot.variants[0].capacity
    assert (one.signal, one.requests_per_second) == (Signal.FRESH, pytest.approx(20.0))
    assert (one.prompt_tokens, one.output_tokens) == (pytest.approx(1000), pytest.approx(200))
    assert one.upper_requests_per_second == pytest.approx(20.0)
    assert one.required_requests_per_second == pytest.approx(20.0 / 0.85)
    assert one.start_seconds == 120.0
    assert capacity is not None
    assert capacity.source is CapacitySource.LEARNED
    assert 15 < capacity.requests_per_second < 25


def test_nothing_is_known_before_engines_have_answered_twice() -> None:
    """One answer has counters, and no rate."""
    watch = Watch(variants=(variant(),))

    found = watch.see({"llama-0": report(None), "llama-1": report(None)})

    assert load(found).signal is Signal.UNKNOWN
    assert load(found).requests_per_second is None


def test_a_queue_that_grows_counts_as_arrivals_and_one_that_is_left_as_backlog() -> None:
    """Requests that wait have come, too; those that replicas which are coming cannot serve ask for more."""
    watch = Watch(variants=(variant(),), facts=facts())
    watch.steady(10)

    full = interval(20.0, waiting_change=150.0)
    found = watch.see({pod: report(full, waiting=1500) for pod in watch.pods()})

    assert load(found).requests_per_second == pytest.approx(60.0)
    assert load(found).backlog_requests > 1000
    assert load(found).required_requests_per_second > 60 / 0.85


def test_a_pod_that_left_takes_its_retries_out_of_the_rate() -> None:
    """What it had not finished comes again elsewhere, and is no growth."""
    watch = Watch(variants=(variant(),))
    watch.steady(10)
    watch.keep(1)

    found = watch.see({"llama-0": report(interval(40.0))})

    assert load(found).requests_per_second == pytest.approx(20.0)


@pytest.mark.parametrize(("seconds", "ticks"), [(1.0, 15), (2.0, 8), (15.0, 1), (60.0, 1)])
def test_retries_count_as_new_only_when_they_no_longer_come(seconds: float, ticks: int) -> None:
    """A quarter of a minute long, however many cycles that is."""
    watch = Watch(variants=(variant(),), settings=SizingSettings(interval_seconds=seconds))
    watch.steady(10)
    watch.keep(1)

    seen = []
    for _ in range(ticks + 1):
        watch.see({"llama-0": report(interval(40.0))})
        seen.append(watch.memory.models["llm", "llama"].ticks[-1].requests_per_second)

    assert seen == pytest.approx([20.0] * ticks + [40.0])


def test_a_dip_while_retries_come_does_not_hold_the_rate_down() -> None:
    """What came before the pod left is the most, not what came since."""
    watch = Watch(variants=(variant(),), settings=SizingSettings(interval_seconds=2.0))
    watch.steady(10)
    watch.keep(1)
    watch.see({"llama-0": report(interval(5.0))})

    found = watch.see({"llama-0": report(interval(40.0))})

    assert load(found).requests_per_second == pytest.approx(20.0)


def test_a_rollout_does_not_hide_that_the_load_grows() -> None:
    """One pod is replaced in every cycle while the load rises fivefold."""
    watch = Watch(variants=(variant(ready=0),))
    for cycle in range(40):
        pods = [f"llama-{number}" for number in range(cycle, cycle + 10)]
        replicas = tuple(Replica(name=name, node="n", ready=True) for name in pods)
        watch.variants = (replace(watch.variants[0], current_replicas=10, replicas=replicas),)
        found = watch.see({name: report(interval(2 + 0.2 * cycle)) for name in pods})

    assert load(found).requests_per_second == pytest.approx(98.0, rel=0.05)


def test_engines_that_are_scraped_in_turns_do_not_hold_the_rate() -> None:
    """Prometheus has new samples of one half of them in each cycle; nobody has left."""
    watch = Watch(variants=(variant(ready=10),))
    pods = list(watch.pods())
    for cycle in range(40):
        half = pods[cycle % 2 :: 2]
        each = 10.0 if cycle < 20 else 20.0
        found = watch.see({name: report(interval(2 * each, seconds=30.0)) for name in half})

    assert load(found).requests_per_second == pytest.approx(200.0)


def test_an_engine_that_started_anew_does_the_same() -> None:
    """Its counters began at zero, its clients ask again."""
    watch = Watch(variants=(variant(),))
    watch.steady(10)

    again = interval(30.0, restarted=True)
    found = watch.see({"llama-0": report(again), "llama-1": report(interval(10.0))})

    assert load(found).requests_per_second == pytest.approx(20.0)


def test_one_silent_engine_of_eight_holds_and_then_the_others_decide() -> None:
    """Held for five minutes, then by quorum; the silent one is taken to serve as much as the others."""
    watch = Watch(variants=(variant(ready=8),))
    watch.steady(10, each=2.0)

    signals = []
    for cycle in range(30):
        reports = {pod: report(interval(2.0)) for pod in watch.pods()}
        reports["llama-0"] = report(None, age_seconds=CYCLE_SECONDS * (cycle + 1))
        found = watch.see(reports)
        signals.append(load(found).signal)

    assert signals[:3] == [Signal.FRESH] * 3
    assert set(signals[4:20]) == {Signal.HELD}
    assert signals[-1] is Signal.QUORUM
    assert load(found).silent_replicas == 1
    assert load(found).requests_per_second == pytest.approx(16.0)


def test_too_few_that_report_hold_for_good() -> None:
    """Three of eight are no quorum."""
    watch = Watch(variants=(variant(ready=8),))
    watch.steady(10, each=2.0)

    for _ in range(40):
        found = watch.see({f"llama-{number}": report(interval(2.0)) for number in range(3)})

    assert load(found).signal is Signal.HELD


def test_silence_of_all_is_unknown_after_a_while() -> None:
    """A source that is gone: held, then nothing is known, and nothing is zero."""
    watch = Watch(variants=(variant(),))
    watch.steady(10)

    seen = [
        load(watch.see({pod: report(None, age_seconds=age) for pod in watch.pods()}))
        for age in (15.0, 75.0, 290.0, 310.0)
    ]

    assert [item.signal for item in seen] == [Signal.FRESH, Signal.HELD, Signal.HELD, Signal.UNKNOWN]


def test_a_declared_profile_is_believed_until_the_engines_run() -> None:
    """A stated load has lengths, and the profile a queue model."""
    profile = Profile(parameters=replace(H100, gamma_ms=1.0), max_batch_size=256)
    watch = Watch(variants=(variant(ready=0),), facts=facts(profile=profile))
    stated = ModelLoad(
        namespace="llm",
        model_id="llama",
        requests_per_second=10.0,
        upper_requests_per_second=10.0,
        prompt_tokens=1000.0,
        output_tokens=200.0,
        required_requests_per_second=11.0,
        releasable_requests_per_second=11.0,
    )
    snapshot = Snapshot(nodes=(), variants=watch.variants, loads=(stated,), taken_seconds=1.0)

    found = sized(snapshot, watch.facts, {}, SizingMemory(), SizingSettings())

    capacity = found.snapshot.variants[0].capacity
    assert found.snapshot.loads == (stated,)
    assert capacity is not None
    assert capacity.source is CapacitySource.PROFILE
    assert 5 < capacity.requests_per_second < 25


def test_a_profile_that_lies_is_reported_with_both_numbers_and_replaced() -> None:
    """It promises steps twice as fast."""
    profile = Profile(
        parameters=StepParameters(alpha_ms=4.0, beta_ms=0.025, delta_ms=0.015), max_batch_size=256
    )
    watch = Watch(variants=(variant(),), facts=facts(profile=profile))

    found = watch.steady(40)

    assert list(found.problems) == [("llm", "llama")]
    text = found.problems["llm", "llama"][0]
    assert text.startswith("variantProfile predicts ")
    assert ", engines show " in text
    learned = found.learned["llm", "llama"].parameters
    assert learned.alpha_ms == pytest.approx(8.0, rel=0.3)


def test_learning_goes_on_from_the_status_after_a_restart() -> None:
    """What was published is the capacity at once, by what engines showed before."""
    known = Learned(parameters=H100, samples=100.0, kv_tokens=384_000)
    watch = Watch(variants=(variant(),), facts=facts(learned=known, known_start_seconds=240.0))

    found = watch.steady(1, each=1.0)

    capacity = found.snapshot.variants[0].capacity
    assert capacity is not None
    assert capacity.source is CapacitySource.LAST_KNOWN
    assert 15 < capacity.requests_per_second < 25
    assert found.snapshot.variants[0].start_seconds == 240.0
    assert found.learned["llm", "llama"] == known


def test_start_up_times_are_those_of_the_pods_that_are_there() -> None:
    """The median; one that flapped hours after its start does not count."""
    watch = Watch(variants=(variant(),), facts=facts(start_seconds=(90.0, 100.0, 7200.0)))

    assert watch.steady(1).snapshot.variants[0].start_seconds == 100.0


def never_ran(**changes: Any) -> Variant:
    """Return a variant on another accelerator, without replicas."""
    return variant("small", ready=0, accelerator="L40S", cost_per_replica=Decimal(20), **changes)


def test_a_variant_that_never_ran_is_left_alone_unless_it_may_be_tried() -> None:
    """Its estimate is not counted on; with the setting one replica may start."""
    cautious = Watch(variants=(variant(), never_ran()), facts=facts())
    curious = replace(cautious, settings=SizingSettings(tries_unknown_variants=True), memory=SizingMemory())

    left, tried = cautious.steady(10).snapshot.variants[1], curious.steady(10).snapshot.variants[1]

    assert left.capacity is not None
    assert (left.capacity.source, left.capacity.is_usable) == (CapacitySource.ESTIMATED, False)
    assert left.max_replicas is None
    assert tried.capacity is not None
    assert 1 < tried.capacity.requests_per_second < 10
    assert tried.max_replicas == 1


def test_a_variant_that_cannot_meet_the_targets_does_not_count_beside_one_that_can() -> None:
    """Steps of 100 ms at the least, where 80 are the target."""
    slow = Learned(parameters=replace(H100, alpha_ms=100.0), samples=50.0)
    known = facts() | {("llm", "small"): VariantFacts(targets=TARGETS, learned=slow)}
    watch = Watch(variants=(variant(), never_ran()), facts=known)

    found = watch.steady(10)

    assert found.snapshot.variants[1].capacity is not None
    assert not found.snapshot.variants[1].capacity.is_usable
    assert found.problems["llm", "small"] == (
        "ITL 80 ms cannot be met: the best that an idle replica reaches is 125 ms",
    )


def test_a_variant_that_runs_counts_where_only_an_estimate_would_meet_the_targets() -> None:
    """Nobody may start the other one, so it is no reason to count on nobody."""
    targets = Targets(itl_seconds=0.02)
    fast = variant("fast", ready=0, accelerator="H100", cost_per_replica=Decimal(100))
    slow = variant(accelerator="L40S")
    known = {item.key: VariantFacts(targets=targets) for item in (slow, fast)}
    watch = Watch(variants=(slow, fast), facts=known)

    found = watch.steady(10, each=2.0, engine=replace(H100, alpha_ms=30.0)).snapshot

    assert [item.capacity.is_usable for item in found.variants if item.capacity] == [True, False]
    assert found.variants[0].capacity is not None
    assert found.variants[0].capacity.unreachable


def test_a_clock_that_jumps_back_forgets_the_trend_and_not_the_step_times() -> None:
    """Ticks that are to come are none."""
    watch = Watch(variants=(variant(),), facts=facts())
    watch.steady(20)
    watch.now -= 10_000.0

    found = watch.steady(1)

    assert len(watch.memory.models["llm", "llama"].ticks) == 1
    assert found.snapshot.variants[0].capacity is not None
    assert load(found).releasable_requests_per_second is None


NUMBERS = st.one_of(st.just(0.0), st.floats(0, 1e12))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 10**7)), min_size=1, max_size=6))
def test_whatever_engines_count_makes_a_load_or_none(
    rows: list[tuple[float, float, float, float, int]],
) -> None:
    """Absurd counters never crash a cycle, nor make a rate that is none."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    for first, prompts, tokens, seconds, waiting in rows:
        odd = EngineInterval(
            seconds=CYCLE_SECONDS,
            first_tokens=first,
            waiting_change=float(waiting),
            prompt_tokens=prompts,
            computed_prompt_tokens=prompts,
            generation_tokens=tokens,
            finished=first,
            inter_token_seconds=seconds,
            inter_tokens=tokens,
        )
        found = load(watch.see({"llama-0": report(odd, waiting=waiting)}))

        assert found.required_requests_per_second >= 0
        assert found.releasable_requests_per_second is None or (
            found.releasable_requests_per_second >= found.required_requests_per_second
        )
