"""The facts about a variant that sizing needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from apiserver.schema.json import Json
from controller.observe.arguments import engine_argument
from controller.observe.claim import Claim
from controller.observe.classes import class_of
from controller.observe.pods import has_engine, is_ready, readiness_changed
from controller.observe.policies import Policies
from controller.observe.targets import Target
from controller.sizing.records import MAX_NUM_SEQS, Targets, VariantFacts

_MOST_ENGINES: Final = 256


def facts_of(claim: Claim, target: Target, pods: Sequence[Json], policies: Policies) -> VariantFacts:
    """Return the facts about one variant."""
    batch = claim.profile.max_batch_size if claim.profile else None
    return VariantFacts(
        targets=targets_of(claim, policies),
        profile=claim.profile,
        learned=claim.learned,
        engines=min(engine_argument(target.engine_spec, "data-parallel-size") or 1, _MOST_ENGINES),
        max_num_seqs=engine_argument(target.engine_spec, "max-num-seqs") or batch or MAX_NUM_SEQS,
        start_seconds=tuple(
            [seconds for pod in pods if has_engine(pod) and (seconds := _start_seconds(pod)) is not None]
        ),
        known_start_seconds=claim.known_start_seconds,
    )


def targets_of(claim: Claim, policies: Policies) -> Targets:
    """Return the latency targets of the service class for the variant's model; empty without a class."""
    found = class_of(claim, policies)
    if found is None:
        return Targets()
    ttft, itl = found.ttft_ms.get(claim.model_id), found.tpot_ms.get(claim.model_id)
    return Targets(
        ttft_seconds=ttft / 1e3 if ttft else None,
        itl_seconds=itl / 1e3 if itl else None,
        attainment=found.attainment,
    )


def _start_seconds(pod: Json) -> float | None:
    """Return the time from a pod's start on its node until it became ready, in seconds; None if not ready."""
    status = pod.get("status") or {}
    started, ready = status.get("startTime"), readiness_changed(pod)
    if not started or not ready or not is_ready(pod):
        return None
    return (datetime.fromisoformat(ready) - datetime.fromisoformat(started)).total_seconds()
