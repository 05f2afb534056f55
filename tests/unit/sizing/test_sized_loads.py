"""Loads of models by the reports of their engines over some cycles, including silent and new engines."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.sizing_cycles import CYCLE_SECONDS, Watch, facts, interval, load, report, variant

from controller.planning.load import CapacitySource, Signal
from controller.planning.snapshot import Replica
from controller.sizing.records import EngineInterval


def test_a_steady_load_gives_a_rate_request_lengths_and_a_capacity() -> None:
    """Two engines serve 10 requests/s each; one could serve about 20 within its targets."""
    watch = Watch(variants=(variant(),), facts=facts())

    found = watch.steady(20)

    one, capacity = load(found), found.snapshot.variants[0].capacity
    assert (one.signal, one.requests_per_second) == (Signal.FRESH, pytest.approx(20.0))
    assert (one.prompt_tokens, one.output_tokens) == (pytest.approx(1000), pytest.approx(200))
    assert one.upper_requests_per_second == pytest.approx(20.0)
    assert one.required_requests_per_second == pytest.approx(20.0)
    assert one.start_seconds == 120.0
    assert capacity is not None
    assert capacity.source is CapacitySource.LEARNED
    assert 15 < capacity.requests_per_second < 25


def test_requests_that_clients_give_up_count_as_arrivals() -> None:
    """Counters lack them: they join the queue and leave it again, so it does not grow.

    Requests that get their first token waited for 50 s, and 500 wait: so 10 join the queue per second.
    """
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    watch.steady(4, each=20.0)

    slow = interval(4.0, first_token_seconds=60 * 50.0)
    watch.see({"llama-0": report(slow, waiting=500)})

    last = watch.memory.models["llm", "llama"].ticks[-1]
    assert last.counted_per_second == pytest.approx(4.0)
    assert last.requests_per_second == pytest.approx(10.0)


def test_a_queue_of_which_nothing_is_served_keeps_the_load() -> None:
    """All of its requests are given up before their first token, so the time that they wait is unknown."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    watch.steady(4, each=20.0)

    for _ in range(60):
        watch.see({"llama-0": report(interval(0.0), waiting=1100)})

    assert watch.memory.models["llm", "llama"].ticks[-1].requests_per_second == pytest.approx(20.0)


def test_a_long_queue_is_no_reason_to_expect_more_than_was_counted_recently() -> None:
    """Queues and waiting times lag behind each other while a backlog drains."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    watch.steady(4, each=8.0)

    slow = interval(4.0, first_token_seconds=60 * 10.0)
    watch.see({"llama-0": report(slow, waiting=500)})

    assert watch.memory.models["llm", "llama"].ticks[-1].requests_per_second == pytest.approx(8.0)


def test_a_model_without_replicas_keeps_its_load() -> None:
    """A preempted model would otherwise get no replica again once there is room."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    watch.steady(8, each=10.0)
    watch.variants = (variant(ready=0),)

    found = [load(watch.see({})) for _ in range(200)][-1]

    assert found.signal is Signal.HELD
    assert found.signal_age_seconds == 200 * CYCLE_SECONDS
    assert found.requests_per_second == pytest.approx(10.0)
    assert found.required_requests_per_second == pytest.approx(10.0)


def test_few_samples_of_unknown_engines_double_the_ready_replicas_at_the_most() -> None:
    """The first step times of an overloaded engine seem ten times as slow as they are."""
    watch = Watch(variants=(variant(ready=2),), facts=facts())
    slow = {pod: report(interval(10.0, waiting_change=6_000.0), waiting=20_000) for pod in watch.pods()}

    watch.see(slow)
    found = watch.see(slow)

    capacity = found.snapshot.variants[0].capacity
    assert capacity is not None
    assert load(found).required_requests_per_second == pytest.approx(2 * 2 * capacity.requests_per_second)
    settled = watch.steady(45)
    assert load(settled).required_requests_per_second < 2 * 2 * capacity.requests_per_second


@pytest.mark.parametrize(
    "answer",
    [{}, {"output": 1.0, "inter_tokens": 0.0, "inter_token_seconds": 0.0}],
    ids=["answers of many tokens", "one result"],
)
def test_a_model_that_has_too_much_load_from_the_first_moment_grows(answer: dict[str, Any]) -> None:
    """Nothing else is known of its engines, whose requests wait for a minute."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    slow = interval(8.0, first_token_seconds=8 * 15 * 60.0, waiting_change=60.0, **answer)

    found = [watch.see({"llama-0": report(slow, waiting=500)}) for _ in range(4)][-1]

    capacity = found.snapshot.variants[0].capacity
    assert capacity is not None
    assert capacity.source is CapacitySource.LEARNED
    assert load(found).required_requests_per_second > capacity.requests_per_second


@pytest.mark.parametrize("cycles", [10, 1000], ids=["a few minutes", "longer than the history"])
def test_requests_that_were_held_while_nothing_ran_did_not_arrive_at_once(cycles: int) -> None:
    """A preempted model gets a replica again, and with it the requests of the last minute."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    watch.steady(4, each=10.0)
    watch.keep(0)
    for _ in range(cycles):
        watch.see({})
    watch.keep(1)
    held = interval(12.0, first_token_seconds=12 * 15 * 5.0, waiting_change=600.0)
    watch.see({"llama-0": report(held, waiting=600)})
    drained = interval(15.0, first_token_seconds=15 * 15 * 20.0, waiting_change=-75.0)
    watch.see({"llama-0": report(drained, waiting=525)})

    found = [tick.requests_per_second for tick in watch.memory.models["llm", "llama"].ticks[-2:]]
    assert found == [pytest.approx(12.0), pytest.approx(12.0)]


def test_capacity_is_held_for_five_minutes_after_it_was_required() -> None:
    """In the first five minutes after a start nothing is known to be superfluous."""
    watch = Watch(variants=(variant(),), facts=facts())
    first = load(watch.steady(1, each=10.0))
    for _ in range(60):
        watch.steady(1, each=10.0)
    before = load(watch.steady(1, each=10.0))
    held = [load(watch.steady(1, each=2.0)).releasable_requests_per_second or 0 for _ in range(80)]

    assert first.releasable_requests_per_second is None
    assert before.releasable_requests_per_second == pytest.approx(20.0)
    assert held[15] >= 20.0
    assert held[-1] == pytest.approx(4.0)


def test_a_load_grows_while_more_is_required_than_before_within_the_hold() -> None:
    """It no longer does when the load is constant, and when it falls."""
    watch = Watch(variants=(variant(),), facts=facts())

    def grows(*rates: float) -> list[bool]:
        return [load(watch.steady(1, each=rate)).is_growing for rate in rates]

    assert not any(grows(5.0, 5.0, 5.0))
    assert all(grows(6.0, 7.0, 8.0, 9.0))
    assert not any(grows(*[9.0] * 40)[10:])
    assert not any(grows(8.0, 7.0, 6.0))


def test_the_load_is_unknown_before_engines_have_answered_twice() -> None:
    """A single answer has counters, but no rate."""
    watch = Watch(variants=(variant(),))

    found = watch.see({"llama-0": report(None), "llama-1": report(None)})

    assert load(found).signal is Signal.UNKNOWN
    assert load(found).requests_per_second is None


def test_queue_growth_counts_as_arrivals_and_requests_that_remain_as_backlog() -> None:
    """More than two requests in the queue of an engine are work to be done."""
    watch = Watch(variants=(variant(),), facts=facts())
    watch.steady(10)

    full = interval(20.0, waiting_change=150.0)
    found = watch.see({pod: report(full, waiting=1500) for pod in watch.pods()})

    assert watch.memory.models["llm", "llama"].ticks[-1].counted_per_second == pytest.approx(60.0)
    assert load(found).backlog_requests == 2996


@pytest.mark.parametrize(("start_seconds", "seconds"), [(120.0, 120), (0.0, CYCLE_SECONDS)])
def test_a_backlog_is_to_be_worked_off_within_a_start_up(start_seconds: float, seconds: float) -> None:
    """Of 1,204 waiting requests, four begin with the next steps; a cycle is the least time."""
    watch = Watch(variants=(variant(),), facts=facts(start_seconds=(start_seconds,)))
    watch.steady(60, each=10.0)

    found = watch.see({pod: report(interval(10.0), waiting=602) for pod in watch.pods()})

    assert load(found).requests_per_second == pytest.approx(20.0)
    assert load(found).required_requests_per_second == pytest.approx(20.0 + 1200 / seconds)


def test_a_rollout_does_not_hide_growth_of_the_load() -> None:
    """One pod is replaced in every cycle while the load rises fivefold."""
    watch = Watch(variants=(variant(ready=0),))
    for cycle in range(40):
        pods = [f"llama-{number}" for number in range(cycle, cycle + 10)]
        replicas = tuple(Replica(name=name, node="n", ready=True) for name in pods)
        watch.variants = (replace(watch.variants[0], current_replicas=10, replicas=replicas),)
        found = watch.see({name: report(interval(2 + 0.2 * cycle)) for name in pods})

    assert load(found).requests_per_second == pytest.approx(98.0, rel=0.05)


def test_engines_that_are_scraped_alternately_do_not_limit_the_rate() -> None:
    """Prometheus has new samples of half of them in each cycle, but no pod was removed."""
    watch = Watch(variants=(variant(ready=10),))
    pods = list(watch.pods())
    for cycle in range(40):
        half = pods[cycle % 2 :: 2]
        each = 10.0 if cycle < 20 else 20.0
        found = watch.see({name: report(interval(2 * each, seconds=30.0)) for name in half})

    assert load(found).requests_per_second == pytest.approx(200.0)


def test_with_one_silent_engine_of_eight_the_load_is_held_and_then_estimated_by_a_quorum() -> None:
    """After five minutes, the silent engine is assumed to serve as much as the others."""
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


def test_the_load_stays_held_without_a_quorum() -> None:
    """Three of eight engines are no quorum."""
    watch = Watch(variants=(variant(ready=8),))
    watch.steady(10, each=2.0)

    for _ in range(40):
        found = watch.see({f"llama-{number}": report(interval(2.0)) for number in range(3)})

    assert load(found).signal is Signal.HELD


def test_the_load_is_held_and_then_unknown_if_all_engines_are_silent() -> None:
    """If the source of the reports is missing, the load is never taken for zero."""
    watch = Watch(variants=(variant(),))
    watch.steady(10)

    seen = [
        load(watch.see({pod: report(None, age_seconds=age) for pod in watch.pods()}))
        for age in (15.0, 75.0, 290.0, 310.0)
    ]

    assert [item.signal for item in seen] == [Signal.FRESH, Signal.HELD, Signal.HELD, Signal.UNKNOWN]


def test_a_clock_that_jumps_back_discards_the_trend_but_not_the_step_times() -> None:
    """Samples from the future are not used."""
    watch = Watch(variants=(variant(),), facts=facts())
    watch.steady(20)
    watch.now -= 10_000.0

    found = watch.steady(1)

    assert len(watch.memory.models["llm", "llama"].ticks) == 1
    assert found.snapshot.variants[0].capacity is not None
    assert load(found).releasable_requests_per_second is None


NUMBERS = st.one_of(st.just(0.0), st.floats(0, 1e12))


@example([(1.0, 1.0, 2.2e-311, 2.2e-311, 0)], 120.0)
@example([(1.0, 1.0, 1.0, 1.0, 9)], 0.0)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 10**7)), min_size=1, max_size=6),
    NUMBERS,
)
def test_any_counters_of_engines_give_a_valid_load(
    rows: list[tuple[float, float, float, float, int]], start_seconds: float
) -> None:
    """Absurd counters and start-up times neither end a cycle nor give an invalid rate."""
    watch = Watch(variants=(variant(ready=1),), facts=facts(start_seconds=(start_seconds,)))
    for first, prompts, tokens, seconds, waiting in rows:
        odd = EngineInterval(
            seconds=CYCLE_SECONDS,
            first_tokens=first,
            first_token_seconds=seconds,
            waiting_change=float(waiting),
            prompt_tokens=prompts,
            examined_prompt_tokens=prompts,
            computed_prompt_tokens=prompts,
            generation_tokens=tokens,
            begun=first,
            finished=first,
            ended=first,
            inter_token_seconds=seconds,
            inter_tokens=tokens,
            steps=tokens,
            first_token_times=((seconds, math.inf), (0.0, first)),
            token_times=((seconds, math.inf), (first, first)),
        )
        found = load(watch.see({"llama-0": report(odd, waiting=waiting)}))

        assert found.required_requests_per_second >= 0
        assert found.releasable_requests_per_second is None or (
            found.releasable_requests_per_second >= found.required_requests_per_second
        )


def test_requests_within_targets_are_counted_per_model_over_an_hour() -> None:
    """Of 60 requests per cycle, 6 got their first token after more than 2 s."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    times = ((2.0, math.inf), (54.0, 60.0))

    for _ in range(300):
        found = watch.see({"llama-0": report(interval(4.0, first_token_times=times))})

    level = found.variants["llm", "llama"].service_level
    assert level is not None
    assert level.share == pytest.approx(0.9)
    assert level.attained.requests == pytest.approx(4.0 * 3600, rel=0.1)


def test_requests_that_clients_give_up_count_as_late() -> None:
    """10 arrive per second, and 4 of them are served, all of them late."""
    watch = Watch(variants=(variant(ready=1),), facts=facts())
    watch.steady(4, each=20.0)
    times = ((2.0, math.inf), (0.0, 60.0))
    slow = interval(4.0, first_token_seconds=60 * 50.0, first_token_times=times)

    found = watch.see({"llama-0": report(slow, waiting=500)})

    level = found.variants["llm", "llama"].service_level
    assert level is not None
    attained = level.attained
    assert attained.requests == pytest.approx(150.0)
    assert attained.missed_ttft == pytest.approx(150.0)
