"""CPU time of sizing in one cycle, for 10,000 variants of 5,000 models whose engines all report."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from apiserver.kinds.identity import Key
from controller.planning.snapshot import Replica, Snapshot, Variant
from controller.simulation.batch import INTER_TOKEN_SECONDS
from controller.sizing.memory import SizingMemory
from controller.sizing.records import (
    DEFAULT_SIZING,
    EngineInterval,
    EngineReport,
    Targets,
    VariantFacts,
)
from controller.sizing.sizing import size_models
from controller.variants.solver_worker import without_collection
from hack.bench.goals import Goal, at_both_paces

MODELS: Final = 5000
_TYPES: Final = (("H100", 8.0, 0.05, 0.03, 384_000), ("L40S", 18.0, 0.12, 0.11, 144_000))
_MOST_PODS: Final = 3
_WARM_TICKS: Final = 20
_SAMPLES: Final = 5
_INTERVAL_SECONDS: Final = 15.0
_OUTPUT_TOKENS: Final = 211
_PROMPT_TOKENS: Final = 1155
_BOUNDS: Final = (*(float(f"{digit}e{power}") for power in range(6) for digit in (1, 2, 5)), math.inf)
"""Bucket bounds of the engines' histogram of prompt lengths, in tokens."""

_TIMES: Final = (*INTER_TOKEN_SECONDS, math.inf)
"""Bucket bounds of the engines' histograms of times, in seconds."""

_MOST_SECONDS: Final = 1.0
_TARGETS: Final = Targets(ttft_seconds=2.0, itl_seconds=0.08)


@dataclass(frozen=True, kw_only=True, slots=True)
class SizingCost:
    """The median CPU time over several cycles."""

    variants: int
    models: int
    pods: int
    cpu_seconds: float


def sizing_cost(models: int = MODELS) -> SizingCost:
    """Return the cost of a cycle after enough cycles to fill the sizing memory.

    The garbage collector is disabled, as in the controller's cycles.
    """
    variants = [_variant(model, place) for model in range(models) for place in range(len(_TYPES))]
    snapshot = Snapshot(nodes=(), variants=tuple(variants))
    facts = {variant.key: VariantFacts(targets=_TARGETS) for variant in variants}
    memory, spent = SizingMemory(), []
    for tick in range(_WARM_TICKS + _SAMPLES):
        reports = {key: report for item in variants for key, report in _reports(item, tick).items()}
        tick_snapshot = replace(snapshot, taken_seconds=tick * _INTERVAL_SECONDS)
        began = time.process_time()
        with without_collection():
            memory = size_models(tick_snapshot, facts, reports, memory, DEFAULT_SIZING).memory
        spent.append(time.process_time() - began)
    return SizingCost(
        variants=len(variants),
        models=models,
        pods=sum(len(variant.replicas) for variant in variants),
        cpu_seconds=statistics.median(spent[_WARM_TICKS:]),
    )


def sizing_goals(cost: SizingCost, *, slowness: float) -> Sequence[Goal]:
    """Return the goals of sizing at both paces."""
    name = f"sizing_of_{cost.variants}_variants"
    goal = Goal(name=name, value=cost.cpu_seconds, unit="s", most=_MOST_SECONDS)
    return at_both_paces(goal, slowness)


def _variant(model: int, place: int) -> Variant:
    name, count = f"m{model}-{_TYPES[place][0].lower()}", 1 + (model + place) % _MOST_PODS
    return Variant(
        namespace="bench",
        name=name,
        model_id=f"m{model}",
        accelerator=_TYPES[place][0],
        accelerators_per_replica=1,
        cost_per_replica=Decimal(100 if place == 0 else 32),
        current_replicas=count,
        replicas=tuple(Replica(name=f"{name}-{number}", ready=True) for number in range(count)),
    )


def _reports(variant: Variant, tick: int) -> Mapping[Key, EngineReport]:
    """Return reports that match the linear profile of the type, with a load that differs by pod and tick."""
    _, alpha, beta, delta, kv_tokens = next(item for item in _TYPES if item[0] == variant.accelerator)
    reports = {}
    for number, pod in enumerate(variant.replicas):
        share = 0.2 + 0.1 * ((tick + number + len(variant.name)) % 5)
        decoded, prompted = share * 2400.0, share * 13_000.0
        tau = alpha / 1e3 / (1 - beta / 1e3 * decoded - delta / 1e3 * prompted)
        reports[variant.namespace, pod.name] = EngineReport(
            age_seconds=1.0,
            waiting=0,
            running=round(decoded * tau),
            kv_tokens=kv_tokens,
            interval=_interval(decoded, prompted, tau),
        )
    return reports


def _interval(decoded: float, prompted: float, tau_seconds: float) -> EngineInterval:
    requests = decoded / _OUTPUT_TOKENS * _INTERVAL_SECONDS
    return EngineInterval(
        seconds=_INTERVAL_SECONDS,
        first_tokens=requests,
        first_token_seconds=requests,
        waiting_change=0.0,
        prompt_tokens=prompted * _INTERVAL_SECONDS,
        examined_prompt_tokens=prompted * _INTERVAL_SECONDS,
        computed_prompt_tokens=prompted * _INTERVAL_SECONDS,
        generation_tokens=decoded * _INTERVAL_SECONDS,
        begun=requests,
        finished=requests,
        ended=requests,
        inter_token_seconds=decoded * _INTERVAL_SECONDS * tau_seconds,
        inter_tokens=decoded * _INTERVAL_SECONDS,
        first_token_times=(_TIMES, tuple(requests * -math.expm1(-2 * bound) for bound in _TIMES)),
        token_times=(_TIMES, tuple(requests * -math.expm1(-bound / tau_seconds) for bound in _TIMES)),
        prompt_lengths=(_BOUNDS, tuple(requests * -math.expm1(-bound / _PROMPT_TOKENS) for bound in _BOUNDS)),
    )
