"""The engine, compared with the analytic queue that the legacy profile parameters were designed for.

The queue (`controller/sizing/queue_model.py`) adds the prompts of the other requests in service to each
request's time; in the engine, these prefills take place. Both should agree for Poisson arrivals of equal
requests, without a fixed time per prefill (which the queue adds once, while in the engine it delays every
running request), and with a large KV cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from statistics import mean

import pytest

from controller.simulation.engine import Engine
from controller.simulation.profile import EngineProfile
from controller.simulation.request import Completion, Request
from controller.sizing.queue_model import QueueModel
from controller.sizing.records import Profile, StepParameters

PROFILE = EngineProfile(
    model_id="m",
    alpha_ms=10,
    beta_ms=0.5,
    gamma_ms=0,
    delta_ms=0.02,
    num_gpu_blocks=1_000_000,
    max_num_seqs=16,
)


@dataclass(frozen=True, kw_only=True)
class Steady:
    """Means in steady state."""

    requests_in_system: float
    response_ms: float
    inter_token_ms: float


def queue_model(*, prompt: int, output: int) -> QueueModel:
    """Return the queue of an engine for requests of one length."""
    parameters = StepParameters(alpha_ms=PROFILE.alpha_ms, beta_ms=PROFILE.beta_ms, delta_ms=PROFILE.delta_ms)
    profile = Profile(parameters=parameters, max_batch_size=PROFILE.max_num_seqs)
    return QueueModel(profile, prompt_tokens=prompt, output_tokens=output)


def simulated(rate_per_ms: float, *, prompt: int, output: int, count: int = 8000) -> Steady:
    """Serve Poisson arrivals of equal requests."""
    dice, engine, arrival_ms = Random(1), Engine(PROFILE), 0.0
    done: list[Completion] = []
    for number in range(count):
        arrival_ms += dice.expovariate(rate_per_ms)
        now_us = round(arrival_ms * 1000)
        done += engine.advance(now_us)
        request = Request(request_id=number, arrival_us=now_us, prompt_tokens=prompt, output_tokens=output)
        engine.submit(request, now_us=now_us)
    done += engine.advance(10**13)
    response_ms = mean(c.latency_seconds for c in done) * 1000
    return Steady(
        requests_in_system=response_ms * count / arrival_ms,
        response_ms=response_ms,
        inter_token_ms=mean(c.inter_token_latency_seconds for c in done) * 1000,
    )


@pytest.mark.parametrize(("prompt", "output"), [(256, 64), (128, 128)])
@pytest.mark.parametrize("load", [0.2, 0.5, 0.7])
def test_simulation_and_queue_model_agree(prompt: int, output: int, load: float) -> None:
    """Up to 70 % load, response time and concurrency agree within 4 %, time between tokens within 5 %."""
    model = queue_model(prompt=prompt, output=output)

    want = model.operate(load * model.most)
    got = simulated(load * model.most / 1e3, prompt=prompt, output=output)

    assert got.response_ms == pytest.approx(want.response_ms, rel=0.04)
    assert got.requests_in_system == pytest.approx(want.throughput / 1e3 * want.response_ms, rel=0.04)
    assert got.inter_token_ms == pytest.approx(want.itl_ms, rel=0.05)


def test_above_the_capacity_of_the_queue_model_the_queue_grows_without_bound() -> None:
    """At 115 % of the chain's highest rate, doubling the requests raises the mean response by over 50 %."""
    rate_per_ms = 1.15 * queue_model(prompt=256, output=64).most / 1e3

    shorter = simulated(rate_per_ms, prompt=256, output=64, count=3000)
    longer = simulated(rate_per_ms, prompt=256, output=64, count=6000)

    assert longer.response_ms > 1.5 * shorter.response_ms
