"""What Stowplan learns about kinds of engines within an hour, beside the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from controller.simulation.profile import EngineProfile
from controller.simulation.reconciler import ReconciledPolicy
from controller.simulation.run import play, silent
from controller.simulation.scenario import ScenarioModel
from controller.simulation.workload import load_trace
from controller.sizing.records import Targets
from controller.variants.solver_worker import without_collection
from hack.bench.goals import short_number
from hack.bench.table import Columns
from hack.decisions import fleet
from hack.decisions.capacity import capacity, steady
from hack.decisions.rows import trace_workload

_TRACE: Final = "servegen-m-small"
_REPLICAS: Final = 2
_LOADED: Final = 0.7
_LEAST_RATE: Final = 2.0
_MOST_RATE: Final = 10.0


def _engine(*, beta: float, delta: float, alpha_ms: float = 30.0) -> EngineProfile:
    return replace(fleet.H100, alpha_ms=alpha_ms, beta_ms=beta * alpha_ms, delta_ms=delta * alpha_ms)


_PLAIN: Final = _engine(beta=0.02, delta=0.012)

ENGINES: Final[Mapping[str, EngineProfile]] = {
    "beta .002, delta .002": _engine(beta=0.002, delta=0.002),
    "beta .002, delta .03": _engine(beta=0.002, delta=0.03, alpha_ms=10.0),
    "beta .03, delta .002": _engine(beta=0.03, delta=0.002),
    "beta .03, delta .03": _engine(beta=0.03, delta=0.03, alpha_ms=10.0),
    "beta .02, delta .012": _PLAIN,
    "prefix hits 40 %": replace(_PLAIN, prefix_hit_share=0.4),
    "prefix hits 80 %": replace(_PLAIN, prefix_hit_share=0.8),
    "chunks of 512": replace(_PLAIN, max_num_batched_tokens=512),
    "speculative, 2.4 tokens": replace(_PLAIN, accepted_tokens_per_step=2.4),
    "2 ranks": replace(_PLAIN, ranks=2),
    "no straight line": replace(_PLAIN, context_us_per_token=0.04, step_noise=0.3),
}
"""Engines by what is special; beta and delta are relative to alpha."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Learning:
    """One kind of engine. Rates are requests per second of a replica.

    Coefficients are alpha and beta per token of a sequence, and delta, in ms.
    """

    engine: str
    rate: float
    capacity: float
    learned_capacity: float
    coefficients_ms: tuple[float, ...]
    learned_ms: tuple[float, ...]
    """Empty if nothing was learned."""


def learning_of(name: str) -> Learning:
    """Return what is known about an engine after an hour of Poisson arrivals, 0.7 of the capacity."""
    profile, lengths = ENGINES[name], load_trace(_TRACE)
    variant = replace(fleet.pair()[0], profile=profile, max_replicas=_REPLICAS)
    targets = Targets(ttft_seconds=3.0, itl_seconds=0.25)
    model = ScenarioModel(model_id=fleet.MODEL, workload=trace_workload(_TRACE), targets=targets)
    truth = capacity(variant, model, lengths)
    rate = min(_MOST_RATE, max(_LEAST_RATE, _LOADED * truth))
    scenario = steady(variant, model, lengths, _REPLICAS * rate, replicas=_REPLICAS)
    policy = ReconciledPolicy(scenario)
    with silent(), without_collection():
        asyncio.run(play(replace(scenario, duration_seconds=3600.0, warm_up_seconds=0.0), policy))
    decision = policy.world().autoscalings[0]["status"]["decision"]
    steps, tokens = decision.get("performance") or {}, profile.accepted_tokens_per_step
    parts = {**steps.get("decodeParms", {}), **steps.get("prefillParms", {})}
    return Learning(
        engine=name,
        rate=rate,
        capacity=truth,
        learned_capacity=float(decision["capacityPerReplica"]),
        coefficients_ms=(profile.alpha_ms / tokens, profile.beta_ms / tokens, profile.delta_ms),
        learned_ms=tuple(float(parts[part]) for part in ("alpha", "beta", "delta") if part in parts),
    )


def _number_list(values: tuple[float, ...]) -> str:
    return " / ".join(f"{value:.3g}" for value in values) or "-"


COLUMNS: Final[Columns[Learning]] = (
    ("engine", lambda item: item.engine),
    ("requests/s", lambda item: short_number(item.rate)),
    ("capacity", lambda item: short_number(item.capacity)),
    ("learned", lambda item: short_number(item.learned_capacity)),
    ("ratio", lambda item: short_number(item.learned_capacity / item.capacity) if item.capacity else "-"),
    ("alpha / beta / delta", lambda item: _number_list(item.coefficients_ms)),
    ("learned", lambda item: _number_list(item.learned_ms)),
)
