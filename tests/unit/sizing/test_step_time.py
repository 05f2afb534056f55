"""Step times estimated from counters: worked examples, priors, signs, outliers, and idle engines."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sizing_cycles import CYCLE_SECONDS, H100, interval

from controller.engines.readings import reading_of
from controller.engines.records import EngineRecords
from controller.simulation.profile import EngineProfile
from controller.simulation.reconciler import series_of
from controller.simulation.server import Server
from controller.simulation.workload import Request
from controller.sizing.lengths import Lengths
from controller.sizing.records import EngineInterval, StepParameters
from controller.sizing.step_time import (
    NO_TIMES,
    IntervalSample,
    Prior,
    StepTimes,
    fit,
    learn,
    predicted_seconds,
    sample_of,
)

KEY = ("llm", "llama-0")

VECTOR = ((8.7, 400, 2000), (10.5, 1200, 6000), (14.8, 2000, 12000), (17.8, 2600, 14000), (32, 3000, 20000))
"""(time between tokens in ms, decoded and prompt tokens per second)."""


def sample(parameters: StepParameters, sequences: float, prompts: float) -> IntervalSample:
    """Return the sample of an engine with these parameters, a batch size, and prompt tokens per step."""
    tau = (parameters.alpha_ms + parameters.beta_ms * sequences + parameters.delta_ms * prompts) / 1e3
    return IntervalSample(tau_seconds=tau, decoded=sequences / tau, prompted=prompts / tau)


def busy(**changes: Any) -> EngineInterval:
    """Return fifteen seconds of an engine that decodes 1,200 tokens per second in steps of 10.5 ms."""
    changes.setdefault("inter_token_seconds", 189.0)
    return interval(5.0, prompt=1200.0, output=240.0, **changes)


def observed(samples: list[IntervalSample]) -> StepTimes:
    """Return the equations of the samples, none of which is discounted."""
    times = NO_TIMES
    for item in samples:
        times = times.add(item)
    return times


ALONE = {"inter_tokens": 20.0, "inter_token_seconds": 0.21, "first_tokens": 1.0, "first_token_seconds": 1.2}

STEPS: dict[str, tuple[dict[str, float], float]] = {
    "the engine counts its steps": ({"steps": 1500.0}, 10.0),
    "the engine counts none": ({}, 10.5),
    "three API servers count each step": ({"steps": 4500.0}, 10.5),
    "a step yields three tokens of each request": ({"steps": 500.0}, 10.5),
    "a long prompt is computed alone": (ALONE | {"steps": 21.0}, 64.1),
    "three API servers count each step of a long prompt": (ALONE | {"steps": 63.0}, 10.5),
    "a step yields three tokens of one request": (ALONE | {"steps": 7.0}, 10.5),
}


@pytest.mark.parametrize("name", STEPS)
def test_the_time_of_a_step_is_that_of_counted_steps_if_they_are_plausible(name: str) -> None:
    """Otherwise it is the time between tokens."""
    counted, milliseconds = STEPS[name]

    found = sample_of(busy(**counted))

    assert found is not None
    assert found.tau_seconds == pytest.approx(milliseconds / 1e3, rel=0.001)


def test_the_fit_equals_that_of_a_worked_example() -> None:
    """Five engines between idle and saturated give one line, but do not separate decoding from prompts.

    Plain least squares gives 8.041 ms, .0576 and .0286: the same work for requests of such a mix.
    """
    samples = [IntervalSample(tau_seconds=tau / 1e3, decoded=g, prompted=p) for tau, g, p in VECTOR]

    found = fit(observed(samples))

    assert found is not None
    assert found.alpha_ms == pytest.approx(8.041, rel=0.01)
    work_ms = found.beta_ms * 211 + found.delta_ms * 1155
    assert work_ms == pytest.approx(0.0576 * 211 + 0.0286 * 1155, rel=0.01)


def test_an_interval_gives_the_rates_of_a_busy_engine() -> None:
    """A sample has tokens per second, and seconds per token."""
    found = sample_of(busy())

    assert found == IntervalSample(tau_seconds=0.0105, decoded=1200.0, prompted=6000.0)


def test_a_partly_idle_engine_counts_for_its_busy_time() -> None:
    """With a mean of 0.7 requests it is busy half of the time, in which its rates are twice as high.

    The requests whose prompts are computed count, too.
    """
    seconds = {"inter_token_seconds": 6.397, "first_token_seconds": 4.0}
    found = sample_of(busy(inter_tokens=1000.0, prompt_tokens=1500.0, steps=1000.0, **seconds))

    assert found is not None
    assert found.decoded == pytest.approx(1000 / 15 / 0.5, rel=0.001)
    assert found.prompted == pytest.approx(100 / 0.5, rel=0.001)
    assert found.weight == pytest.approx(0.5, rel=0.001)


def test_without_counted_steps_prompts_refer_to_the_whole_time() -> None:
    """A token waits for the prompts that arrive while its request decodes, at any time alike."""
    seconds = {"inter_token_seconds": 6.397, "first_token_seconds": 4.0}
    found = sample_of(busy(inter_tokens=1000.0, prompt_tokens=1500.0, **seconds))

    assert found is not None
    assert found.decoded == pytest.approx(1000 / 15 / 0.5, rel=0.001)
    assert found.prompted == pytest.approx(100, rel=0.001)


NOTHING_TO_LEARN = {
    "no token followed another": {"inter_tokens": 0.0, "inter_token_seconds": 0.0},
    "tokens without any time between them": {"inter_token_seconds": 0.0},
    "more than a minute between two tokens": {"inter_token_seconds": 18_000.0 * 61},
}


@pytest.mark.parametrize("name", NOTHING_TO_LEARN)
def test_no_sample_is_taken_from_unusable_counters(name: str) -> None:
    """They state no time between tokens, or an impossible one."""
    assert sample_of(busy(**NOTHING_TO_LEARN[name])) is None


def test_without_samples_there_are_no_parameters() -> None:
    """There is no default engine."""
    assert fit(NO_TIMES) is None


def test_one_sample_gives_parameters_in_the_ratios_of_common_engines() -> None:
    """The step time is that of the sample, and grows with the batch size."""
    seen = sample(H100, 20, 100)

    found = fit(observed([seen]))

    assert found is not None
    assert predicted_seconds(found, seen) == pytest.approx(seen.tau_seconds, rel=0.05)
    assert found.beta_ms > 0
    assert found.delta_ms > 0


def test_a_prior_is_returned_without_samples_and_corrected_by_samples() -> None:
    """The prior counts as a few samples."""
    slow = replace(H100, alpha_ms=30.0)
    prior = Prior(parameters=slow, weight=2.0)
    rng = random.Random(1)
    samples = [sample(H100, rng.uniform(10, 200), rng.uniform(0, 500)) for _ in range(400)]

    alone, corrected = fit(NO_TIMES, prior), fit(observed(samples), prior)

    assert alone is not None
    assert corrected is not None
    assert alone.alpha_ms == pytest.approx(30.0, rel=0.02)
    assert corrected.alpha_ms < 10.0


@given(st.floats(4, 80), st.floats(0.005, 0.4), st.floats(0.005, 0.2), st.integers(1, 1000))
def test_an_engine_with_linear_step_times_is_learned(
    alpha: float, beta: float, delta: float, seed: int
) -> None:
    """Over varied loads its step times are predicted to within 15 %."""
    truth = StepParameters(alpha_ms=alpha, beta_ms=beta, delta_ms=delta)
    rng = random.Random(seed)
    samples = [sample(truth, rng.uniform(5, 250), rng.uniform(0, 800)) for _ in range(60)]

    found = fit(observed(samples))

    assert found is not None
    for seen in samples:
        assert predicted_seconds(found, seen) == pytest.approx(seen.tau_seconds, rel=0.15)


@given(st.lists(st.tuples(st.floats(1e-4, 1), st.floats(0, 1e5), st.floats(0, 1e6)), min_size=1, max_size=20))
def test_no_samples_give_a_negative_parameter(rows: list[tuple[float, float, float]]) -> None:
    """Every step takes time, and neither sequences nor prompts shorten it."""
    samples = [IntervalSample(tau_seconds=tau, decoded=g, prompted=p) for tau, g, p in rows]

    found = fit(observed(samples))

    assert found is not None
    assert found.alpha_ms > 0
    assert found.beta_ms >= 0
    assert found.delta_ms >= 0


def test_a_single_outlier_is_ignored_but_a_changed_engine_is_learned() -> None:
    """Samples that are far off are ignored until there are many in a row."""
    times = learn(NO_TIMES, [sample(H100, n, 50) for n in range(10, 90)], expected=None)
    expected = fit(times)
    odd = sample(replace(H100, alpha_ms=80.0), 50, 50)

    once = learn(times, [odd], expected=expected)
    often = learn(times, [odd] * 40, expected=expected)

    assert once.xx == times.discount().xx
    assert often.xx != times.discount().xx


def test_a_saturated_engine_does_not_seem_slower_than_it_is() -> None:
    """Prompts count when they end: of each pair of intervals, one has a tenth of the other's tokens too many.

    A line of steps per second over the tokens would give an alpha of three times the true one.
    """
    rng = random.Random(3)
    times = observed([sample(H100, rng.uniform(1, 20), rng.uniform(0, 100)) for _ in range(10)])
    for _ in range(200):
        full = sample(H100, rng.uniform(20, 200), rng.uniform(500, 4000))
        for factor in (0.9, 1.1):
            times = times.add(replace(full, prompted=full.prompted * factor))

    found = fit(times)

    assert found is not None
    assert found.alpha_ms == pytest.approx(H100.alpha_ms, rel=0.15)
    assert found.beta_ms == pytest.approx(H100.beta_ms, rel=0.15)
    assert found.delta_ms == pytest.approx(H100.delta_ms, rel=0.15)


def test_prompts_count_when_they_are_computed_and_without_what_a_cache_holds() -> None:
    """Engines count computed tokens when a request finishes, which is some cycles later."""
    late = busy(computed_prompt_tokens=0.0)
    lengths = Lengths(prompt=1200.0, computed=300.0, output=240.0)

    found = sample_of(late, lengths=lengths)

    assert found is not None
    assert found.prompted == pytest.approx(6000.0 / 4)


def test_prompts_that_are_counted_at_the_end_count_by_first_tokens() -> None:
    """SGLang counts prompt tokens when a request ends: here, twice as many as began in the interval."""
    late = busy(begun=150.0, prompt_tokens=180_000.0)
    lengths = Lengths(prompt=1200.0, computed=1200.0, output=240.0)

    found = sample_of(late, lengths=lengths)

    assert found is not None
    assert found.prompted == pytest.approx(6000.0)


NEGATIVE = {
    "prompts seem to shorten steps": (30.0, 0.6, -0.01, "delta_ms"),
    "sequences seem to shorten steps": (30.0, -0.05, 0.3, "beta_ms"),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_only_the_coefficient_that_would_be_negative_is_zero(name: str) -> None:
    """The others are fitted again, instead of returning to the ratios of common engines."""
    alpha, beta, delta, zero = NEGATIVE[name]
    truth = StepParameters(alpha_ms=alpha, beta_ms=beta, delta_ms=delta)
    rng = random.Random(2)
    samples = [sample(truth, rng.uniform(10, 60), rng.uniform(0, 200)) for _ in range(300)]

    found = fit(observed(samples))

    assert found is not None
    assert getattr(found, zero) == 0
    other = "beta_ms" if zero == "delta_ms" else "delta_ms"
    assert getattr(found, other) == pytest.approx(getattr(truth, other), rel=0.15)


@pytest.mark.parametrize(
    ("alpha", "beta", "delta"),
    [
        pytest.param(40.0, 0.92, 0.11, id="a large sharded model"),
        pytest.param(10.0, 0.033, 0.08, id="a small quantized model"),
        pytest.param(20.0, 0.09, 0.3, id="an accelerator with slow prefill"),
    ],
)
def test_engines_are_learned_within_an_hour_whatever_their_ratios(
    alpha: float, beta: float, delta: float
) -> None:
    """The capacity that follows is within 10 % of that of the true step times."""
    truth = StepParameters(alpha_ms=alpha, beta_ms=beta, delta_ms=delta)
    found = fit(hour_of(truth))

    assert found is not None
    for itl_seconds in (2 * alpha / 1e3, 4 * alpha / 1e3):
        rates = [(1 - one.alpha_ms / 1e3 / itl_seconds) / work_of(one) for one in (found, truth)]
        assert rates[0] == pytest.approx(rates[1], rel=0.1)


def work_of(parameters: StepParameters) -> float:
    """Return the seconds of an engine that one request of the hour takes."""
    return (parameters.beta_ms * OUTPUT + parameters.delta_ms * PROMPT) / 1e3


PROMPT, OUTPUT = 600.0, 150.0


def hour_of(truth: StepParameters) -> StepTimes:
    """Return what is learned of a simulated engine at 40 % of its throughput, give or take a quarter."""
    rng, now, due = random.Random(4), 0.0, CYCLE_SECONDS
    engine = Server(
        EngineProfile(
            model_id="m",
            alpha_ms=truth.alpha_ms,
            beta_ms=truth.beta_ms,
            gamma_ms=0,
            delta_ms=truth.delta_ms,
            num_gpu_blocks=24_000,
            max_num_batched_tokens=2048,
        )
    )
    records, times, number = EngineRecords().update({}, [KEY], scraped_keys=[], now_seconds=0.0), NO_TIMES, 0
    while now < 3600:
        now += rng.expovariate(0.4 / work_of(truth) * (1.25 if int(now // 120) % 2 else 0.75))
        while due <= now:
            engine.advance(round(due * 1e6))
            reading = reading_of(series_of(engine), time_seconds=due)
            records = records.update({KEY: reading}, [KEY], scraped_keys=[KEY], now_seconds=due)
            seen = records.records[KEY].interval
            one = sample_of(seen) if seen else None
            times = learn(times, [one] if one else [], expected=fit(times))
            due += CYCLE_SECONDS
        engine.advance(round(now * 1e6))
        request = Request(
            request_id=number,
            arrival_us=round(now * 1e6),
            prompt_tokens=max(1, round(rng.expovariate(1 / PROMPT))),
            output_tokens=max(1, round(rng.expovariate(1 / OUTPUT))),
        )
        engine.submit(request, now_us=round(now * 1e6))
        number += 1
    return times
