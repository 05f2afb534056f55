"""Loads and capacities from the exported statuses, as the controller last published them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from apiserver.schema.json import Json
from controller.commands.plan.changes import stated_load, with_loads
from controller.observe.claim import Claimant
from controller.observe.gather import GatherResult
from controller.planning.load import (
    MOST_RATE,
    Capacity,
    CapacitySource,
    LimitingTarget,
    ModelLoad,
    ReplicaRateLimit,
)
from controller.planning.ranges import MOST_START_SECONDS
from controller.planning.snapshot import Snapshot
from controller.sizing.memory import SizingMemory
from controller.sizing.records import SizingSettings, VariantFacts
from controller.sizing.sizing import size_models

Key = tuple[str, str]

_ESTIMATES: Final = {str(source) for source in CapacitySource if source.is_estimate}
_LIMITS: Final = {
    "TTFT ": LimitingTarget.TTFT,
    "ITL ": LimitingTarget.ITL,
    "a batch of ": LimitingTarget.BATCH,
}
"""Targets by the first words of a limit's text."""


def with_statuses(seen: GatherResult) -> Snapshot:
    """Return the snapshot with the most recently published load of each model, and published capacities."""
    decisions = {item.key: _decision(item) for item in seen.claimants}
    variants = tuple(
        replace(variant, capacity=_capacity(decisions[variant.key], seen.observed[variant.key].facts))
        for variant in seen.snapshot.variants
    )
    return with_loads(replace(seen.snapshot, variants=variants), _loads(seen))


def with_capacities(
    snapshot: Snapshot, facts: Mapping[Key, VariantFacts], settings: SizingSettings
) -> Snapshot:
    """Return the snapshot with capacities from profiles or statuses, for the token lengths of its loads.

    No forecast from live engines is needed, because loads are published or stated.
    """
    return size_models(snapshot, facts, {}, SizingMemory(), settings).snapshot


def _loads(seen: GatherResult) -> Sequence[ModelLoad]:
    newest: dict[Key, tuple[str, Json]] = {}
    for item in seen.claimants:
        demand = _decision(item).get("demand")
        if demand is None or item.key not in seen.observed:
            continue
        model = seen.observed[item.key].claim.model
        desired = item.status.get("desiredOptimizedAlloc") or {}
        moment = str(desired.get("lastRunTime") or "")
        if model not in newest or newest[model][0] < moment:
            newest[model] = moment, demand
    loads = [_load(model, demand) for model, (_, demand) in newest.items()]
    return [load for load in loads if load]


def _load(model: Key, demand: Json) -> ModelLoad | None:
    """Return a published load, or None if its rates are invalid."""
    rate = _number(demand.get("requestsPerSecond"))
    upper = _number(demand.get("upperRequestsPerSecond"))
    if rate is None or upper is None:
        return None
    upper = max(rate, upper)
    load = stated_load(model, upper, None)
    return replace(
        load,
        requests_per_second=rate,
        start_seconds=_number(demand.get("startSeconds"), most=MOST_START_SECONDS) or 0.0,
        prompt_tokens=_number(demand.get("avgInputTokens")),
        output_tokens=_number(demand.get("avgOutputTokens")),
    )


def _capacity(decision: Json, own: VariantFacts) -> Capacity | None:
    """Return the published capacity of one replica, unless facts replace it or it was an estimate."""
    rate = _number(decision.get("capacityPerReplica"))
    if not rate or own.learned or own.profile or decision.get("capacitySource") in _ESTIMATES:
        return None
    limits = _limits(decision.get("capacityLimit"), rate)
    return Capacity(requests_per_second=rate, source=CapacitySource.LAST_KNOWN, limits=limits)


def _limits(text: object, rate: float) -> tuple[ReplicaRateLimit, ...]:
    """Return the limit in the status, such as `TTFT 2 s`; empty if it is none of the known ones."""
    limit = next((target for start, target in _LIMITS.items() if str(text).startswith(start)), None)
    return (ReplicaRateLimit(target=limit, text=str(text), requests_per_second=rate),) if limit else ()


def _number(value: object, *, most: float = MOST_RATE) -> float | None:
    """Return a number from 0 to `most`, given as text or number; else None."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0 <= number <= most else None


def _decision(claimant: Claimant) -> Json:
    return claimant.status.get("decision") or {}
