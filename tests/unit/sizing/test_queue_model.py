"""The queue model of declared profiles, checked against the examples of its source."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.sizing.queue_model import QueueModel, within
from controller.sizing.records import Profile, StepParameters, Targets


def profile(alpha: float, beta: float, gamma: float, delta: float, batch: int) -> Profile:
    """Return a profile; the parameters are in the order of the source."""
    parameters = StepParameters(alpha_ms=alpha, beta_ms=beta, gamma_ms=gamma, delta_ms=delta)
    return Profile(parameters=parameters, max_batch_size=batch)


SMALL = profile(1, 0.01, 10, 0.001, 8)
A100 = (20.58, 0.41, 5.2, 0.1)

OPERATIONS = {
    50: (50.0, 19.3741, 0.0, 0.9687, 1.0197, 10.1969, 0.1211),
    200: (199.9999, 20.2636, 0.3278, 3.9871, 1.0492, 10.8203, 0.4984),
}
"""Throughput, response, wait, in service, ITL, TTFT and utilization by rate; 16 may wait."""


@pytest.mark.parametrize("rate", OPERATIONS)
def test_steady_states_equal_those_of_the_source(rate: int) -> None:
    """Requests have 100 prompt and 10 output tokens."""
    model = QueueModel(SMALL, prompt_tokens=100, output_tokens=10, queue=16)

    at = model.operate(rate)

    shown = (
        at.throughput,
        at.response_ms,
        at.wait_ms,
        at.in_service,
        at.itl_ms,
        at.ttft_ms,
        at.utilization,
    )
    assert shown == pytest.approx(OPERATIONS[rate], abs=2e-4)


def test_the_highest_stable_rate_equals_that_of_the_source() -> None:
    """Without targets it is the rate that a full batch serves, less a thousandth."""
    model = QueueModel(SMALL, prompt_tokens=100, output_tokens=10, queue=16)

    at = model.operate(model.most)

    assert (at.throughput, at.ttft_ms) == pytest.approx((370.5041, 28.7418), abs=2e-4)


RATES = {
    "ITL binds for long answers without prompts, per minute": (
        profile(*A100, 256),
        (500, 24),
        (0, 1024),
        17.9675 / 60,
    ),
    "TTFT binds for a small batch without prompts": (profile(*A100, 4), (500, 24), (0, 178), 0.5648),
    "TTFT binds for a small batch with prompts": (profile(*A100, 4), (500, 24), (64, 128), 0.8323),
    "ITL binds on a fast accelerator": (
        profile(6.958, 0.042, 5.2, 0.1, 512),
        (1000, 9),
        (128, 128),
        26.8955,
    ),
    "loose targets are met up to the batch": (
        profile(20.58, 0.41, 200, 0.021, 32),
        (2000, 200),
        (256, 512),
        1.6174,
    ),
    "a tight ITL binds before TTFT": (
        profile(20.58, 0.41, 200, 0.021, 32),
        (1000, 30),
        (256, 512),
        1.4080,
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_rates_within_targets_equal_those_of_the_source(name: str) -> None:
    """Targets are in ms, lengths in tokens."""
    given_profile, (ttft, itl), (prompt, output), rate = RATES[name]

    found = within(given_profile, Targets(ttft_seconds=ttft / 1e3, itl_seconds=itl / 1e3), prompt, output)

    assert found.rate == pytest.approx(rate, rel=2e-4)


def test_replicas_that_share_a_load_equal_those_of_the_source() -> None:
    """Each of seven replicas gets an equal part of the load."""
    model = QueueModel(profile(*A100, 256), prompt_tokens=0, output_tokens=1024)

    at = model.operate(122.67 / 60 / 7)

    assert (at.itl_ms, at.utilization) == pytest.approx((23.9152, 0.027918), abs=1e-4)


def test_a_target_below_the_fastest_step_is_unreachable() -> None:
    """It is not met even at the lowest rate."""
    found = within(SMALL, Targets(ttft_seconds=0.001, itl_seconds=0.0001), 100, 10)

    assert (found.ttft, found.itl) == (0.0, 0.0)
    assert found.rate == found.full > 0


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e9])
def test_rates_that_are_not_positive_or_not_stable_are_rejected(rate: float) -> None:
    """A queue that grows forever has no steady state."""
    with pytest.raises(ValueError, match="must be greater than 0 and at most"):
        QueueModel(SMALL, prompt_tokens=100, output_tokens=10).operate(rate)


PROFILES = st.builds(
    profile, st.floats(1, 50), st.floats(0, 1), st.floats(0, 100), st.floats(0, 0.1), st.integers(1, 64)
)


@given(PROFILES, st.floats(0.05, 5), st.floats(0.01, 0.5))
def test_looser_targets_never_lower_the_rate(one: Profile, ttft: float, itl: float) -> None:
    """The rate is monotone in both targets."""
    tight = within(one, Targets(ttft_seconds=ttft, itl_seconds=itl), 256, 64)
    loose = within(one, Targets(ttft_seconds=2 * ttft, itl_seconds=2 * itl), 256, 64)

    assert loose.ttft is not None
    assert tight.ttft is not None
    assert loose.ttft >= tight.ttft * (1 - 1e-4)
    assert loose.itl is not None
    assert tight.itl is not None
    assert loose.itl >= tight.itl * (1 - 1e-4)


@given(PROFILES, st.floats(0.001, 1), st.integers(0, 700))
def test_the_closed_form_of_the_queue_equals_the_sum_over_all_states(
    one: Profile, share: float, queue: int
) -> None:
    """The Markov chain has a state for each number of requests."""
    model = QueueModel(one, prompt_tokens=256, output_tokens=64, queue=queue)
    rate, given_parameters = share * model.most, one.parameters
    likely, states = [1.0], range(1, one.max_batch_size + queue + 1)
    for number in states:
        served = min(number, one.max_batch_size)
        prefill = given_parameters.gamma_ms + given_parameters.delta_ms * 256 * served
        decode = given_parameters.alpha_ms + given_parameters.beta_ms * served
        likely.append(likely[-1] * rate / 1e3 * (prefill + 63 * decode) / served)
    whole = math.fsum(likely)
    waiting = math.fsum(max(0, n - one.max_batch_size) * likely[n] for n in states) / whole
    in_service = math.fsum(min(n, one.max_batch_size) * likely[n] for n in states) / whole

    at = model.operate(rate)

    assert at.throughput == pytest.approx(rate * (1 - likely[-1] / whole), rel=1e-9)
    assert at.in_service == pytest.approx(in_service, rel=1e-9)
    assert at.wait_ms == pytest.approx(waiting / at.throughput * 1e3, rel=1e-9, abs=1e-12)


def test_results_are_cached_for_as_many_variants_as_are_supported() -> None:
    """A cycle over 10,000 different profiles is as fast as one over equal profiles."""
    within.cache_clear()
    profiles = [profile(8 + number / 1e3, 0.05, 0, 0.03, 4) for number in range(10_000)]

    for one in [*profiles, *profiles]:
        within(one, Targets(), 256, 64)

    assert within.cache_info().hits == len(profiles)
