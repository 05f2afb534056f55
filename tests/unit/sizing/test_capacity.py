"""Requests per second within targets: worked vectors, what limits them, and laws."""

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
    "a large batch is what ends first": (H100, CHAT, 256.0, 18.883, Target.BATCH),
    "steps get too slow": (L40S, CHAT, 114.2, 4.717, Target.ITL),
    "long prompts make each other wait": (H100, LONG, 31.5, 1.641, Target.TTFT),
}


def capacity(
    parameters: StepParameters, lengths: Lengths, *, batch: float = 256.0, targets: Targets = TARGETS
) -> Capacity:
    """Return what a replica serves, by its own step times."""
    source = CapacitySource.LEARNED
    return learned_capacity(parameters, lengths, targets, batch=batch, source=source, settings=SETTINGS)


@pytest.mark.parametrize("name", VECTORS)
def test_worked_vectors(name: str) -> None:
    """The tightest limit is the capacity, and stands first."""
    parameters, lengths, batch, rate, target = VECTORS[name]

    found = capacity(parameters, lengths, batch=batch)

    assert round(found.requests_per_second, 3) == rate
    assert found.limits[0].target is target
    assert not found.unreachable


def test_a_target_that_cannot_be_met_is_named_with_the_best_and_does_not_count() -> None:
    """Steps of 70 ms at the least cannot give 64 ms in the mean; the batch still limits."""
    found = capacity(StepParameters(alpha_ms=70.0, beta_ms=0.12, delta_ms=0.11), CHAT, batch=114.2)

    assert found.unreachable == ("ITL 80 ms cannot be met: the best that an idle replica reaches is 87.5 ms",)
    assert found.limits[0].target is Target.BATCH
    assert round(found.requests_per_second, 3) == 3.284


def test_without_targets_the_batch_at_its_utilization_is_the_limit() -> None:
    """85 % of 256 sequences."""
    found = capacity(H100, CHAT, targets=Targets())

    assert [item.target for item in found.limits] == [Target.BATCH]
    assert found.limits[0].text == "a batch of 256"


BATCHES = {
    "the engine's own limit": (256, 10**9, 256.0),
    "what the cache holds of requests half-way": (256, 144_000, pytest.approx(114.2, abs=0.05)),
    "at least one request": (256, 16, 1.0),
    "the limit where the cache is not known": (64, None, 64.0),
}


@pytest.mark.parametrize("name", BATCHES)
def test_the_batch_is(name: str) -> None:
    """The smaller of two limits."""
    most, tokens, expected = BATCHES[name]

    assert batch_of(CHAT, max_num_seqs=most, kv_tokens=tokens) == expected


PROFILE = Profile(
    parameters=StepParameters(alpha_ms=6.958, beta_ms=0.042, gamma_ms=5.2, delta_ms=0.1), max_batch_size=512
)
SHORT = Lengths(prompt=128, computed=128, output=128)


def test_a_profile_promises_what_the_queue_model_says() -> None:
    """ITL binds before TTFT; lengths are rounded to a twentieth."""
    targets = Targets(ttft_seconds=1.0, itl_seconds=0.009)

    found = declared_capacity(PROFILE, SHORT, targets, batch=512, correction=1.0)

    assert found.requests_per_second == pytest.approx(26.9, rel=0.1)
    assert found.limits[0].target is Target.ITL
    assert found.source is CapacitySource.PROFILE


def test_a_profile_that_cannot_meet_a_target_says_so() -> None:
    """One step alone takes 7 ms."""
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
def test_an_absurd_profile_makes_a_rate_that_is_one(name: str) -> None:
    """It is declared, so it must not end the cycle for everybody."""
    parameters, lengths, batch = ABSURD[name]
    profile = Profile(parameters=parameters, max_batch_size=batch)

    found = declared_capacity(profile, lengths, TARGETS, batch=float(batch), correction=2.0)

    assert 0 < found.requests_per_second <= MOST_RATE


PARAMETERS = st.builds(
    StepParameters, alpha_ms=st.floats(1, 60), beta_ms=st.floats(0, 1), delta_ms=st.floats(0, 0.5)
)


@given(PARAMETERS, st.floats(1, 30), st.floats(0.02, 1), st.floats(1, 500))
def test_looser_targets_never_serve_less(
    parameters: StepParameters, ttft: float, itl: float, batch: float
) -> None:
    """Monotone in each target, as long as it can be met at all."""
    tight = capacity(parameters, CHAT, batch=batch, targets=Targets(ttft_seconds=ttft, itl_seconds=itl))
    loose = capacity(
        parameters, CHAT, batch=batch, targets=Targets(ttft_seconds=2 * ttft, itl_seconds=2 * itl)
    )

    if not tight.unreachable:
        assert loose.requests_per_second >= tight.requests_per_second * (1 - 1e-9)


@given(PARAMETERS, st.floats(1, 500))
def test_a_replica_serves_something_and_never_more_than_its_arithmetic(
    parameters: StepParameters, batch: float
) -> None:
    """The work of a request is a lower bound of its time."""
    found = capacity(parameters, CHAT, batch=batch)
    work_seconds = (parameters.beta_ms * CHAT.output + parameters.delta_ms * CHAT.prompt) / 1e3

    assert found.requests_per_second > 0
    assert found.requests_per_second * work_seconds <= 1 + 1e-9


DURATIONS = {2.0: "2 s", 0.08: "80 ms", 0.0875: "87.5 ms", 0.0004: "0.4 ms", 12.34: "12.3 s"}


@pytest.mark.parametrize("seconds", DURATIONS)
def test_durations_read_as_people_say_them(seconds: float) -> None:
    """Three digits."""
    assert duration(seconds) == DURATIONS[seconds]
