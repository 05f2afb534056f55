"""A lower bound from known future demand: replicas are ordered a start-up time ahead, without an HPA.

It is approximate: for each model it uses one variant, as if a replica served a fixed rate of requests
whatever their lengths. That rate is searched: the cheapest run counts whose missed share is hardly larger
than with twice the replicas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from controller.closedloop.run import play

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.manifests import Manifests
    from controller.closedloop.outcome import PolicyOutcome
    from controller.closedloop.policy import Told
    from controller.closedloop.scenario import Model, Scenario, VariantSetup
    from controller.simulation.request import Request

FACTORS = tuple(0.5 + 0.025 * step for step in range(23))
"""Candidate rates of a replica as shares of the greatest rate within the targets, ascending."""

WITHIN_SHARE = 0.001
"""Accepted increase of the missed share above the minimum."""

_STEP_SECONDS = 15.0
_MEAN_STEPS = 4


def greatest_rate(variant: VariantSetup, model: Model, requests: Sequence[Request]) -> float:
    """Return the requests per second that a replica can serve within its ITL target and its batch.

    Each request uses a share of the engine's time, beta per token and delta per prompt token; the rest is
    spent on steps, alpha each, of which every sequence needs one per token.
    """
    profile, count = variant.profile, max(1, len(requests))
    inputs = sum(request.prompt_tokens for request in requests) / count
    outputs = max(1.0, sum(request.output_tokens for request in requests) / count)
    work = (profile.beta_ms * outputs + profile.delta_ms * inputs + profile.gamma_ms) / 1000
    step = profile.alpha_ms / 1000
    batch = max(1.0, min(profile.max_num_seqs, profile.kv_tokens / (inputs + outputs / 2)))
    within_batch = batch / (outputs * step + batch * work)
    if model.targets.itl_seconds is None:
        return within_batch
    return min(within_batch, max(0.0, 1 - step / model.targets.itl_seconds) / work if work else math.inf)


@dataclass(kw_only=True)
class ClairvoyantPolicy:
    """Orders for each step the maximum that is needed until replicas ordered in the next one could be ready.

    `rates` has the requests per second of a replica, for each variant that is used.
    """

    scenario: Scenario
    requests: Mapping[str, Sequence[Request]]
    rates: Mapping[str, float]
    name: str = "clairvoyant"
    interval_seconds: float = _STEP_SECONDS
    told: list[Told] = field(default_factory=list)
    _needs: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for variant in self.scenario.variants:
            if variant.name in self.rates:
                arrivals = _means(self.requests[variant.model_id], self.scenario.end_seconds)
                rate = self.rates[variant.name]
                self._needs[variant.name] = [max(1, math.ceil(mean / rate)) for mean in arrivals]

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return None: published replicas take effect directly."""
        del variant
        return None

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the maximum of replicas needed between now and one start-up time from now."""
        now = round(cluster.now_seconds / _STEP_SECONDS)
        wanted = dict.fromkeys(cluster.variants, 0.0)
        for name, needs in self._needs.items():
            ahead = math.ceil(cluster.variants[name].start_up_seconds / _STEP_SECONDS) + 1
            wanted[name] = float(max(needs[now : now + ahead + 1], default=1))
        return wanted


def _means(requests: Sequence[Request], seconds: float) -> list[float]:
    """Return the mean requests per second around each step."""
    counts = [0] * (math.ceil(seconds / _STEP_SECONDS) + 1)
    for request in requests:
        counts[int(request.arrival_us / 1e6 / _STEP_SECONDS)] += 1
    around = [counts[max(0, n - _MEAN_STEPS // 2) : n + _MEAN_STEPS // 2] for n in range(len(counts))]
    return [sum(near) / (max(1, len(near)) * _STEP_SECONDS) for near in around]


async def clairvoyant(
    scenario: Scenario,
    *,
    manifests: Manifests | None = None,
    requests: Mapping[str, list[Request]] | None = None,
    progress: Callable[[float], None] | None = None,
) -> PolicyOutcome:
    """Return the cheapest run whose missed share is within a tenth of a percentage point of the least.

    Replicas with a lower assumed rate cost more and miss less. So the first factor misses least, and the
    greatest factor that misses hardly more is found by bisection.
    """
    asked = scenario.requests() if requests is None else requests
    greatest = {model.model_id: _best(scenario, model, asked[model.model_id]) for model in scenario.models}

    async def played(factor: float) -> PolicyOutcome:
        rates = {name: rate * factor for name, rate in greatest.values()}
        policy = ClairvoyantPolicy(scenario=scenario, requests=asked, rates=rates)
        outcome = await play(scenario, policy, manifests=manifests, requests=asked)
        note = ", ".join(f"{name} at {rate:.1f} requests/s per replica" for name, rate in rates.items())
        return replace(outcome, note=note)

    best = await played(FACTORS[0])
    most = best.missed + WITHIN_SHARE
    low, high = 0, len(FACTORS)
    runs = math.ceil(math.log2(max(2, high))) + 1
    for number in range(1, runs + 1):
        if progress:
            progress(number / (runs + 1))
        if high - low <= 1:
            break
        middle = (low + high) // 2
        outcome = await played(FACTORS[middle])
        if outcome.missed <= most:
            low, best = middle, outcome
        else:
            high = middle
    return best


def _best(scenario: Scenario, model: Model, requests: Sequence[Request]) -> tuple[str, float]:
    """Return the variant with the highest rate per price, and that rate."""
    rates = {
        variant: greatest_rate(variant, model, requests) for variant in scenario.variants_of(model.model_id)
    }
    best = max(rates, key=lambda variant: (rates[variant] / max(variant.price_per_hour, 1e-9), variant.name))
    return best.name, max(rates[best], 1e-6)
