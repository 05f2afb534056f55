"""Request rates of a replica within its targets: worked examples, limits, and properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.planning.load import MOST_RATE, Capacity, CapacitySource, LimitingTarget
from controller.sizing.attainment import NO_EXPERIENCE, Attainment, Experience
from controller.sizing.capacity import BATCH_SHARE, batch_of, duration, sized_capacity
from controller.sizing.lengths import Lengths
from controller.sizing.records import StepParameters, Targets

TARGETS = Targets(ttft_seconds=2.0, itl_seconds=0.08)
CHAT = Lengths(prompt=1155, computed=1155, output=211, inequality=1.9)
LONG = Lengths(prompt=12035, computed=12035, output=343, inequality=2.7)
H100 = StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.03)
L40S = StepParameters(alpha_ms=18.0, beta_ms=0.12, delta_ms=0.11)


def capacity(
    parameters: StepParameters,
    lengths: Lengths,
    *,
    batch: float = 256.0,
    targets: Targets = TARGETS,
    experience: Experience = NO_EXPERIENCE,
    engines: int = 1,
) -> Capacity:
    """Return the capacity of a replica by its step times."""
    return sized_capacity(
        parameters, lengths, targets, experience, batch=batch, engines=engines, source=CapacitySource.LEARNED
    ).capacity


EXAMPLES = {
    "the batch size is the tightest limit": (H100, CHAT, 256.0, 16.411, LimitingTarget.BATCH),
    "the time per step is the tightest limit": (L40S, CHAT, 114.2, 3.51, LimitingTarget.ITL),
    "waiting behind long prompts is the tightest limit": (H100, LONG, 31.5, 1.381, LimitingTarget.TTFT),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_capacity_is_the_tightest_limit(name: str) -> None:
    """This limit is the first one in the list."""
    parameters, lengths, batch, rate, target = EXAMPLES[name]

    found = capacity(parameters, lengths, batch=batch)

    assert round(found.requests_per_second, 3) == rate
    assert found.limits[0].target is target
    assert found.limits[0].requests_per_second == found.requests_per_second
    assert not found.unreachable


def test_an_unreachable_target_is_reported_with_the_time_of_an_idle_engine_and_is_no_limit() -> None:
    """Steps of 90 ms cannot have a mean of 80 ms; the batch size is still a limit."""
    found = capacity(StepParameters(alpha_ms=90.0, beta_ms=0.12, delta_ms=0.11), CHAT, batch=114.2)

    assert found.unreachable == ("ITL 80 ms cannot be met: a step of an idle engine takes 90.1 ms",)
    assert found.limits[0].target is LimitingTarget.BATCH


def test_a_target_that_too_many_prompts_exceed_is_reported_with_the_share_that_can_meet_it() -> None:
    """A tenth of the prompts has 4,000 tokens or more, of 0.5 ms each."""
    prompts = (1000.0, 4000.0, math.inf), (800.0, 900.0, 1000.0)
    lengths = Lengths(prompt=1500, computed=1500, output=100, prompts=prompts)
    slow = StepParameters(alpha_ms=20.0, beta_ms=0.1, delta_ms=0.4949)

    (text,) = capacity(slow, lengths, targets=Targets(ttft_seconds=2.0)).unreachable
    assert text == (
        "TTFT 2 s can be met for at most 90 % of the requests, of the promised 95 %: the prompts of the"
        " others alone take longer"
    )
    relaxed = Targets(ttft_seconds=2.0, attainment=0.8)
    assert not capacity(slow, lengths, targets=relaxed).unreachable


def test_without_targets_the_batch_size_is_the_only_limit() -> None:
    """It is used up to 85 % of the throughput with 256 sequences."""
    found = capacity(H100, CHAT, targets=Targets())

    assert [item.target for item in found.limits] == [LimitingTarget.BATCH]
    assert found.limits[0].text == "a batch of 256"


def test_requests_that_missed_a_target_lower_the_capacity_and_name_the_target() -> None:
    """Four times as many as allowed missed TTFT at half of the throughput."""
    seen = Attainment(requests=5000.0, missed_ttft=1000.0)
    experience = Experience(attained=seen, strain=5000 * 0.5**2.5)

    found, before = capacity(H100, CHAT, experience=experience), capacity(H100, CHAT)

    assert found.requests_per_second < 0.5 * before.requests_per_second
    assert found.limits[0].target is LimitingTarget.TTFT


def test_requests_within_their_targets_raise_the_capacity_up_to_that_of_the_batch() -> None:
    """Strict targets were assumed to allow less."""
    targets = Targets(ttft_seconds=2.0, itl_seconds=0.03)
    seen = Attainment(requests=50_000.0)
    experience = Experience(attained=seen, strain=50_000 * 0.7**2.5)

    found, before = (
        capacity(H100, CHAT, targets=targets, experience=item) for item in (experience, NO_EXPERIENCE)
    )

    assert before.requests_per_second < found.requests_per_second
    assert found.requests_per_second <= capacity(H100, CHAT, targets=Targets()).requests_per_second


BATCHES = {
    "the engine's own limit": (256, 10**9, 256.0),
    "the KV cache by half-finished requests": (256, 144_000, pytest.approx(114.2, abs=0.05)),
    "at least one request": (256, 16, 1.0),
    "the engine's own limit if the cache size is unknown": (64, None, 64.0),
}


@pytest.mark.parametrize("name", BATCHES)
def test_the_batch_is_the_smaller_of_two_limits(name: str) -> None:
    """They are the engine's own limit and the requests that fit into its KV cache."""
    most, tokens, expected = BATCHES[name]

    assert batch_of(CHAT, max_num_seqs=most, kv_tokens=tokens) == expected


ABSURD = {
    "prompts cost nothing and answers are one token": (
        StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.0, gamma_ms=0.0),
        Lengths(prompt=100, computed=100, output=1),
        64.0,
    ),
    "a batch of ten million": (H100, Lengths(prompt=128, computed=128, output=128), 1e7),
    "steps that take no time but the first": (
        StepParameters(alpha_ms=1e-6, beta_ms=0.0, delta_ms=0.0),
        CHAT,
        256.0,
    ),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_step_times_give_a_valid_rate(name: str) -> None:
    """Users declare profiles, so an absurd one must not end the cycle for all models."""
    parameters, lengths, batch = ABSURD[name]

    assert 0 < capacity(parameters, lengths, batch=batch).requests_per_second <= MOST_RATE


PARAMETERS = st.builds(
    StepParameters, alpha_ms=st.floats(1, 60), beta_ms=st.floats(0, 1), delta_ms=st.floats(0, 0.5)
)


@given(PARAMETERS, st.floats(1, 30), st.floats(0.02, 1), st.floats(1, 500))
def test_looser_targets_never_lower_the_capacity(
    parameters: StepParameters, ttft: float, itl: float, batch: float
) -> None:
    """The capacity is monotone in both targets, as long as they can be met at all."""
    tight = capacity(parameters, CHAT, batch=batch, targets=Targets(ttft_seconds=ttft, itl_seconds=itl))
    loose = capacity(
        parameters, CHAT, batch=batch, targets=Targets(ttft_seconds=2 * ttft, itl_seconds=2 * itl)
    )

    if not tight.unreachable:
        assert loose.requests_per_second >= tight.requests_per_second * (1 - 1e-9)


@given(PARAMETERS, st.floats(0.5, 0.99), st.floats(1, 500))
def test_a_stricter_promise_never_raises_the_capacity(
    parameters: StepParameters, attainment: float, batch: float
) -> None:
    """The promised share is that of requests within the targets."""
    loose = Targets(ttft_seconds=2.0, itl_seconds=0.08, attainment=attainment)
    strict = Targets(ttft_seconds=2.0, itl_seconds=0.08, attainment=(1 + attainment) / 2)

    assert capacity(parameters, CHAT, batch=batch, targets=strict).requests_per_second <= capacity(
        parameters, CHAT, batch=batch, targets=loose
    ).requests_per_second * (1 + 1e-9)


@given(PARAMETERS, st.floats(1, 500))
def test_the_capacity_is_positive_and_at_most_one_request_per_its_work(
    parameters: StepParameters, batch: float
) -> None:
    """The work of a request is a lower bound of its time."""
    found = capacity(parameters, CHAT, batch=batch)
    work_seconds = (parameters.beta_ms * CHAT.output + parameters.delta_ms * CHAT.prompt) / 1e3

    assert found.requests_per_second > 0
    assert found.requests_per_second * work_seconds <= BATCH_SHARE + 1e-9


DURATIONS = {2.0: "2 s", 0.08: "80 ms", 0.0875: "87.5 ms", 0.0004: "0.4 ms", 12.34: "12.3 s"}


@pytest.mark.parametrize("seconds", DURATIONS)
def test_durations_are_in_seconds_or_milliseconds_with_three_digits(seconds: float) -> None:
    """Trailing zeros are omitted."""
    assert duration(seconds) == DURATIONS[seconds]
