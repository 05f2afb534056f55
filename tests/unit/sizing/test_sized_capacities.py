"""Capacities and start-up times that sizing gives to planning: declared, learned or estimated."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import pytest
from support.sizing_cycles import H100, TARGETS, Watch, facts, interval, report, variant

from controller.planning.load import CapacitySource, LimitingTarget, ModelLoad
from controller.planning.snapshot import Snapshot, Variant
from controller.sizing.memory import SizingMemory
from controller.sizing.records import (
    EngineInterval,
    Estimate,
    LearnedProfile,
    Profile,
    SizingSettings,
    StepParameters,
    Targets,
    VariantFacts,
)
from controller.sizing.sizing import size_models

SUMMED = tuple(
    item.name
    for item in fields(EngineInterval)
    if item.name not in {"seconds", "prompt_lengths", "first_token_times", "token_times"}
)
"""Counts that are sums over the engines of a pod."""

STATED = ModelLoad(
    namespace="llm",
    model_id="llama",
    requests_per_second=10.0,
    upper_requests_per_second=10.0,
    prompt_tokens=1000.0,
    output_tokens=200.0,
    required_requests_per_second=11.0,
    releasable_requests_per_second=11.0,
)


def test_a_declared_profile_gives_the_capacity_before_engines_run() -> None:
    """The stated load has request lengths, for which the step times of the profile are used."""
    profile = Profile(parameters=replace(H100, gamma_ms=1.0), max_batch_size=256)
    watch = Watch(variants=(variant(ready=0),), facts=facts(profile=profile))
    snapshot = Snapshot(nodes=(), variants=watch.variants, loads=(STATED,), taken_seconds=1.0)

    found = size_models(snapshot, watch.facts, {}, SizingMemory(), SizingSettings())

    capacity = found.snapshot.variants[0].capacity
    assert found.snapshot.loads == (STATED,)
    assert capacity is not None
    assert capacity.source is CapacitySource.PROFILE
    assert 5 < capacity.requests_per_second < 25


def test_a_wrong_profile_is_reported_with_both_numbers_and_replaced() -> None:
    """It predicts steps twice as fast as those of the engines."""
    profile = Profile(
        parameters=StepParameters(alpha_ms=4.0, beta_ms=0.025, delta_ms=0.015), max_batch_size=256
    )
    watch = Watch(variants=(variant(),), facts=facts(profile=profile))

    found = watch.steady(40)

    (text,) = found.variants["llm", "llama"].problems
    assert text.startswith("variantProfile predicts ")
    assert ", engines show " in text
    learned = found.variants["llm", "llama"].learned
    assert learned is not None
    assert learned.parameters.alpha_ms == pytest.approx(8.0, rel=0.3)


def test_learning_continues_from_the_status_after_a_restart() -> None:
    """The published step times and start-up time apply at once."""
    known = LearnedProfile(parameters=H100, samples=100.0, kv_tokens=384_000)
    watch = Watch(variants=(variant(),), facts=facts(learned=known, known_start_seconds=240.0))

    found = watch.steady(1, each=1.0)

    capacity = found.snapshot.variants[0].capacity
    assert capacity is not None
    assert capacity.source is CapacitySource.LAST_KNOWN
    assert 15 < capacity.requests_per_second < 25
    assert found.snapshot.variants[0].start_seconds == 240.0
    assert found.variants["llm", "llama"].learned == known


def test_nothing_is_learned_of_an_engine_whose_clients_give_up() -> None:
    """It computes prompts of requests that leave before their first token, and never counts these tokens."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    before = watch.steady(20, each=5.0).variants["llm", "llama"].learned

    slow = replace(H100, alpha_ms=900.0)
    stuck = interval(0.5, engine=slow, first_tokens=1.0, first_token_seconds=59.0, prompt_tokens=0.0)
    for _ in range(40):
        found = watch.see({"llama-0": report(stuck, waiting=900)}).variants["llm", "llama"].learned

    assert found is not None
    assert before is not None
    assert found.parameters == before.parameters


def test_requests_that_miss_their_targets_lower_the_capacity_of_a_variant() -> None:
    """Half of them take longer than two seconds to their first token, at half of the throughput."""
    slow = (1.0, 3.0, math.inf), (75.0, 75.0, 150.0)
    calm = (1.0, 3.0, math.inf), (150.0, 150.0, 150.0)
    found = []
    for times in (calm, slow):
        watch = Watch(variants=(variant(),), facts=facts())
        size = watch.steady(80, each=10.0, first_token_times=times).snapshot.variants[0].capacity
        assert size is not None
        found.append(size)

    assert found[1].requests_per_second < 0.6 * found[0].requests_per_second
    assert found[1].limits[0].target is LimitingTarget.TTFT


def test_requests_that_miss_their_targets_in_a_long_queue_do_not_lower_the_capacity() -> None:
    """In a shortage every request is late, whatever the utilization that is planned for."""
    slow = (1.0, 3.0, math.inf), (0.0, 0.0, 150.0)
    watch = Watch(variants=(variant(),), facts=facts())
    before = watch.steady(80, each=10.0).snapshot.variants[0].capacity
    late = interval(10.0, first_token_seconds=150 * 40.0, first_token_times=slow)

    for _ in range(40):
        after = (
            watch.see({pod: report(late, waiting=400) for pod in watch.pods()}).snapshot.variants[0].capacity
        )

    assert before is not None
    assert after is not None
    assert after.requests_per_second == pytest.approx(before.requests_per_second, rel=0.01)


def test_requests_that_miss_while_more_arrive_than_is_served_do_not_lower_the_capacity() -> None:
    """The queue grows by ten requests per second, because other replicas start; it is not yet long."""
    slow = (1.0, 3.0, math.inf), (0.0, 0.0, 300.0)
    watch = Watch(variants=(variant(),), facts=facts())
    before = watch.steady(80, each=20.0).snapshot.variants[0].capacity
    late = interval(20.0, first_token_times=slow, waiting_change=150.0)

    for _ in range(10):
        after = watch.see({pod: report(late, waiting=150) for pod in watch.pods()})

    found = after.snapshot.variants[0].capacity
    assert before is not None
    assert found is not None
    assert found.requests_per_second == pytest.approx(before.requests_per_second, rel=0.01)


def test_the_start_up_time_is_the_median_of_existing_pods() -> None:
    """One that became ready hours after its start has no influence."""
    watch = Watch(variants=(variant(),), facts=facts(start_seconds=(90.0, 100.0, 7200.0)))

    assert watch.steady(1).snapshot.variants[0].start_seconds == 100.0


def never_ran(**changes: Any) -> Variant:
    """Return a variant on another accelerator, without replicas."""
    return variant("small", ready=0, accelerator="L40S", cost_per_replica=Decimal(20), **changes)


def test_a_variant_that_never_ran_is_used_only_if_the_setting_allows_it() -> None:
    """By default its estimated capacity is not usable; with the setting one replica may start."""
    cautious = Watch(variants=(variant(), never_ran()), facts=facts())
    curious = replace(cautious, settings=SizingSettings(tries_unknown_variants=True), memory=SizingMemory())

    left, tried = cautious.steady(10).snapshot.variants[1], curious.steady(10).snapshot.variants[1]

    assert left.capacity is not None
    assert (left.capacity.source, left.capacity.is_usable) == (CapacitySource.ESTIMATED, False)
    assert left.max_replicas is None
    assert tried.capacity is not None
    assert 1 < tried.capacity.requests_per_second < 10
    assert tried.max_replicas == 1


def test_a_variant_that_cannot_meet_the_targets_is_not_usable_beside_one_that_can() -> None:
    """Its steps take at least 100 ms, and the ITL target is 80 ms."""
    slow = LearnedProfile(parameters=replace(H100, alpha_ms=100.0), samples=50.0)
    known = facts() | {("llm", "small"): VariantFacts(targets=TARGETS, learned=slow)}
    watch = Watch(variants=(variant(), never_ran()), facts=known)

    found = watch.steady(10)

    assert found.snapshot.variants[1].capacity is not None
    assert not found.snapshot.variants[1].capacity.is_usable
    text = "ITL 80 ms cannot be met: a step of an idle engine takes 100 ms"
    assert found.variants["llm", "small"].hard_targets == (text,)
    assert not any(item.problems for item in found.variants.values())


def test_a_running_variant_is_usable_if_only_an_estimated_one_meets_the_targets() -> None:
    """The estimated one must not start, so otherwise no variant would be usable."""
    targets = Targets(itl_seconds=0.02)
    fast = variant("fast", ready=0, accelerator="H100", cost_per_replica=Decimal(100))
    slow = variant(accelerator="L40S")
    known = {item.key: VariantFacts(targets=targets) for item in (slow, fast)}
    watch = Watch(variants=(slow, fast), facts=known)

    found = watch.steady(10, each=2.0, engine=replace(H100, alpha_ms=30.0)).snapshot

    assert [item.capacity.is_usable for item in found.variants if item.capacity] == [True, False]
    assert found.variants[0].capacity is not None
    assert found.variants[0].capacity.unreachable


def test_engines_by_arguments_count_until_a_replica_reports() -> None:
    """Otherwise, a variant without replicas would seem to need as many as it has engines, after a restart."""
    known = LearnedProfile(parameters=H100, samples=100)
    found = []
    for engines in (1, 8):
        watch = Watch(variants=(variant(ready=0),), facts=facts(learned=known, engines=engines))
        snapshot = Snapshot(nodes=(), variants=watch.variants, loads=(STATED,), taken_seconds=1.0)
        sizes = size_models(snapshot, watch.facts, {}, SizingMemory(), SizingSettings())
        capacity = sizes.snapshot.variants[0].capacity
        assert capacity is not None
        found.append(capacity.requests_per_second)

    assert found[1] == pytest.approx(8 * found[0])


def test_a_replica_of_eight_engines_serves_eight_times_as_much_as_one() -> None:
    """Each has a batch of 256 sequences of its own, and computes a prompt as slowly as a single one."""
    single = Watch(variants=(variant(ready=1),), facts=facts())
    eight = Watch(variants=(variant(ready=1),), facts=facts())
    prompt, output = 20_000.0, 300.0
    for number in range(60):
        rate = 0.2 + 0.1 * (number % 5)
        one = interval(rate, prompt=prompt, output=output)
        all_of_them = replace(one, **{name: 8 * getattr(one, name) for name in SUMMED})
        alone = single.see({"llama-0": report(one, kv_tokens=4_000_000)}).snapshot.variants[0].capacity
        found = eight.see({"llama-0": report(all_of_them, kv_tokens=32_000_000, engines=8)})
        together = found.snapshot.variants[0].capacity

    assert alone is not None
    assert together is not None
    assert together.requests_per_second == together.limits[0].requests_per_second
    for limit, other in zip(together.limits, alone.limits, strict=True):
        assert limit.target is other.target
        assert limit.requests_per_second == pytest.approx(8 * other.requests_per_second, rel=0.1)


@pytest.mark.parametrize(
    ("itl_seconds", "want"),
    [
        pytest.param(0.08, (), id="eight times the time of an idle engine's step"),
        pytest.param(
            0.009,
            ("ITL 9 ms is only met at less than 10 % of a replica's throughput",),
            id="almost out of reach",
        ),
    ],
)
def test_a_target_that_leaves_little_of_a_replicas_throughput_is_reported(
    itl_seconds: float, want: tuple[str, ...]
) -> None:
    """An idle engine's step takes 8 ms. Planning orders the replicas that the target needs in any case."""
    known = LearnedProfile(parameters=H100, samples=1000.0, kv_tokens=384_000)
    strict = VariantFacts(targets=Targets(itl_seconds=itl_seconds), learned=known)
    watch = Watch(variants=(variant(),), facts={("llm", "llama"): strict})

    assert watch.steady(10, each=1.0).variants["llm", "llama"].hard_targets == want


CATALOG = Estimate(
    parameters=StepParameters(alpha_ms=7.0, beta_ms=0.06, delta_ms=0.03), kv_tokens=400_000, basis="a guess"
)


def test_without_anything_else_the_catalog_gives_a_capacity_that_starts_nothing() -> None:
    """As long as no replica runs, it is an estimate like that of a sibling, and marked as such."""
    for ready in (0, 2):
        watch = Watch(variants=(variant(ready=ready),), facts=facts(estimate=CATALOG))
        snapshot = Snapshot(nodes=(), variants=watch.variants, loads=(STATED,), taken_seconds=1.0)

        found = size_models(snapshot, watch.facts, {}, SizingMemory(), SizingSettings())

        capacity = found.snapshot.variants[0].capacity
        assert capacity is not None
        assert (capacity.source, capacity.is_usable) == (CapacitySource.CATALOG, bool(ready))
        assert 10 < capacity.requests_per_second < 30
        assert found.variants["llm", "llama"].learned is None


def test_weights_that_do_not_fit_give_no_capacity() -> None:
    """Then the model or the accelerator is not what it seems."""
    watch = Watch(variants=(variant(ready=1),), facts=facts(estimate=replace(CATALOG, kv_tokens=0)))
    snapshot = Snapshot(nodes=(), variants=watch.variants, loads=(STATED,), taken_seconds=1.0)

    found = size_models(snapshot, watch.facts, {}, SizingMemory(), SizingSettings())

    assert found.snapshot.variants[0].capacity is None


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 10.0])
def test_an_estimate_is_soon_replaced_by_what_engines_show(factor: float) -> None:
    """Even if it is off by ten, the capacity is within a third of the true one after two minutes."""
    wrong = replace(
        CATALOG,
        parameters=StepParameters(
            alpha_ms=factor * H100.alpha_ms, beta_ms=factor * H100.beta_ms, delta_ms=factor * H100.delta_ms
        ),
    )

    def shown(**known: Any) -> float:
        watch = Watch(variants=(variant(ready=1),), facts=facts(**known))
        capacity = watch.steady(9, 5.0).snapshot.variants[0].capacity
        assert capacity is not None
        assert capacity.source is CapacitySource.LEARNED
        return capacity.requests_per_second

    assert shown(estimate=wrong) == pytest.approx(shown(), rel=0.33)
