"""Request rates of a replica within its targets: worked examples, limits, and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.planning.load import MOST_RATE, Capacity, CapacitySource, Target
from controller.sizing.capacity import batch_of, declared_capacity, duration, learned_capacity
from controller.sizing.lengths import Lengths
from controller.sizing.records import Profile, SizingSettings, StepParameters, Targets

TARGETS = Targets(ttft_seconds=2.0, itl_seconds=0.08)
CHAT = Lengths(prompt=1155, computed=1155, output=211, inequality=1.9)
LONG = Lengths(prompt=12035, computed=12035, output=343, inequality=2.7)
H100 = StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.03)
L40S = StepParameters(alpha_ms=18.0, beta_ms=0.12, delta_ms=0.11)
SETTINGS = SizingSettings()

VECTORS = {
    "the batch size is the tightest limit": (H100, CHAT, 256.0, 18.883, Target.BATCH),
    "the time per step is the tightest limit": (L40S, CHAT, 114.2, 4.717, Target.ITL),
    "waiting behind long prompts is the tightest limit": (H100, LONG, 31.5, 1.641, Target.TTFT),
}


def capacity(
    parameters: StepParameters, lengths: Lengths, *, batch: float = 256.0, targets: Targets = TARGETS
) -> Capacity:
    """Return the capacity of a replica by its learned step times."""
    source = CapacitySource.LEARNED
    return learned_capacity(parameters, lengths, targets, batch=batch, source=source, settings=SETTINGS)


@pytest.mark.parametrize("name", VECTORS)
def test_the_capacity_is_the_tightest_limit(name: str) -> None:
    """This limit is the first one in the list."""
    parameters, lengths, batch, rate, target = VECTORS[name]

    found = capacity(parameters, lengths, batch=batch)

    assert round(found.requests_per_second, 3) == rate
    assert found.limits[0].target is target
    assert not found.unreachable


def test_an_unreachable_target_is_reported_with_the_best_value_and_is_no_limit() -> None:
    """Steps of at least 70 ms cannot have a mean of 64 ms; the batch size is still a limit."""
    found = capacity(StepParameters(alpha_ms=70.0, beta_ms=0.12, delta_ms=0.11), CHAT, batch=114.2)

    assert found.unreachable == ("ITL 80 ms cannot be met: the best that an idle replica reaches is 87.5 ms",)
    assert found.limits[0].target is Target.BATCH
    assert round(found.requests_per_second, 3) == 3.284


def test_without_targets_the_batch_size_is_the_only_limit() -> None:
    """It is used up to 85 % of 256 sequences."""
    found = capacity(H100, CHAT, targets=Targets())

    assert [item.target for item in found.limits] == [Target.BATCH]
    assert found.limits[0].text == "a batch of 256"


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


PROFILE = Profile(
    parameters=StepParameters(alpha_ms=6.958, beta_ms=0.042, gamma_ms=5.2, delta_ms=0.1), max_batch_size=512
)
SHORT = Lengths(prompt=128, computed=128, output=128)


def test_the_capacity_of_a_profile_is_that_of_the_queue_model() -> None:
    """ITL limits it before TTFT; lengths are rounded to steps of a twentieth."""
    targets = Targets(ttft_seconds=1.0, itl_seconds=0.009)

    found = declared_capacity(PROFILE, SHORT, targets, batch=512, correction=1.0)

    assert found.requests_per_second == pytest.approx(26.9, rel=0.1)
    assert found.limits[0].target is Target.ITL
    assert found.source is CapacitySource.PROFILE


def test_a_target_that_a_profile_cannot_meet_is_reported() -> None:
    """A single step takes 7 ms."""
    found = declared_capacity(PROFILE, SHORT, Targets(itl_seconds=0.005), batch=512, correction=1.0)

    assert found.unreachable == ("ITL 5 ms cannot be met: the best that an idle replica reaches is 7 ms",)
    assert found.requests_per_second > 0


ABSURD = {
    "prompts cost nothing and answers are one token": (
        StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.0, gamma_ms=0.0),
        Lengths(prompt=100, computed=100, output=1),
        64,
    ),
    "a batch of ten million": (StepParameters(alpha_ms=8.0, beta_ms=0.05, delta_ms=0.03), SHORT, 10**7),
}


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_profile_gives_a_valid_rate(name: str) -> None:
    """Users declare profiles, so an absurd one must not end the cycle for all models."""
    parameters, lengths, batch = ABSURD[name]
    profile = Profile(parameters=parameters, max_batch_size=batch)

    found = declared_capacity(profile, lengths, TARGETS, batch=float(batch), correction=2.0)

    assert 0 < found.requests_per_second <= MOST_RATE


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


@given(PARAMETERS, st.floats(1, 500))
def test_the_capacity_is_positive_and_at_most_one_request_per_its_work(
    parameters: StepParameters, batch: float
) -> None:
    """The work of a request is a lower bound of its time."""
    found = capacity(parameters, CHAT, batch=batch)
    work_seconds = (parameters.beta_ms * CHAT.output + parameters.delta_ms * CHAT.prompt) / 1e3

    assert found.requests_per_second > 0
    assert found.requests_per_second * work_seconds <= 1 + 1e-9


DURATIONS = {2.0: "2 s", 0.08: "80 ms", 0.0875: "87.5 ms", 0.0004: "0.4 ms", 12.34: "12.3 s"}


@pytest.mark.parametrize("seconds", DURATIONS)
def test_durations_are_in_seconds_or_milliseconds_with_three_digits(seconds: float) -> None:
    """Trailing zeros are omitted."""
    assert duration(seconds) == DURATIONS[seconds]
