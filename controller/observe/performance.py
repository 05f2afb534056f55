"""Read the declared, target and published performance of a variant, as input of sizing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from apiserver.schema.json import Json, as_object
from controller.observe.claim import Claim
from controller.observe.classes import class_of
from controller.observe.expected_performance import engine_argument, expected_performance
from controller.observe.pods import has_engine, is_ready, readiness_changed
from controller.observe.policies import Policies
from controller.observe.targets import ScaleTarget
from controller.planning.ranges import MOST_START_SECONDS
from controller.planning.snapshot import DECODE, PREFILL
from controller.sizing.records import (
    MAX_NUM_SEQS,
    LearnedProfile,
    Profile,
    StepParameters,
    Targets,
    VariantFacts,
)

_LARGEST: Final = 1e9
_SMALLEST: Final = 1e-6
_MOST_ENGINES: Final = 256


def facts_of(
    claim: Claim, target: ScaleTarget, role: str, pods: Sequence[Json], policies: Policies
) -> VariantFacts:
    """Return the facts about one variant."""
    batch = claim.profile.max_batch_size if claim.profile else None
    return VariantFacts(
        targets=_targets_of_role(targets_of(claim, policies), role),
        computes_prompts=role != DECODE,
        profile=claim.profile,
        estimate=None if claim.is_bound else expected_performance(claim, target),
        learned=claim.learned,
        engines=min(engine_argument(target.engine_spec, "data-parallel-size") or 1, _MOST_ENGINES),
        max_num_seqs=engine_argument(target.engine_spec, "max-num-seqs") or batch or MAX_NUM_SEQS,
        start_seconds=tuple([seconds for pod in pods if (seconds := start_seconds_of(pod)) is not None]),
        known_start_seconds=claim.known_start_seconds,
    )


def _targets_of_role(targets: Targets, role: str) -> Targets:
    """Return the targets that depend on pods of a role.

    Those that compute prompts determine the time to the first token, the others that between tokens.
    """
    if role == PREFILL:
        return replace(targets, itl_seconds=None)
    return replace(targets, ttft_seconds=None) if role == DECODE else targets


def targets_of(claim: Claim, policies: Policies) -> Targets:
    """Return the latency targets of the service class for the variant's model; empty without a class."""
    service_class = class_of(claim, policies)
    if service_class is None:
        return Targets()
    ttft, itl = service_class.ttft_ms.get(claim.model_id), service_class.tpot_ms.get(claim.model_id)
    return Targets(
        ttft_seconds=ttft / 1e3 if ttft else None,
        itl_seconds=itl / 1e3 if itl else None,
        attainment=service_class.attainment,
    )


def profile_of(declared: Json | None) -> tuple[Profile | None, tuple[str, ...]]:
    """Return the declared profile, or None with the reason why it cannot be used."""
    parms = (declared or {}).get("perfParms")
    if not declared or not parms:
        return None, ()
    numbers: dict[str, float] = {}
    missing = []
    for phase, name in (
        ("decodeParms", "alpha"),
        ("decodeParms", "beta"),
        ("prefillParms", "gamma"),
        ("prefillParms", "delta"),
    ):
        value = _number((parms.get(phase) or {}).get(name))
        if value is None:
            missing.append(f"{phase}.{name}")
        else:
            numbers[f"{name}_ms"] = value
    if missing or not numbers["alpha_ms"]:
        what = ", ".join(missing) or "decodeParms.alpha"
        demand = f"must be 0 or {_SMALLEST} to {_LARGEST:.0f} ms, alpha not 0"
        return None, (f"variantProfile.perfParms is not used: {what} {demand}",)
    batch = max(1, int(declared.get("maxBatchSize") or MAX_NUM_SEQS))
    return Profile(parameters=StepParameters(**numbers), max_batch_size=batch), ()


def learned_of(published: Json | None) -> LearnedProfile | None:
    """Return the learned performance from a status, or None if it has none that is valid."""
    if not published:
        return None
    decode, prefill = published.get("decodeParms") or {}, published.get("prefillParms") or {}
    alpha, beta, delta = (
        _number(decode.get("alpha")),
        _number(decode.get("beta")),
        _number(prefill.get("delta")),
    )
    samples = _number(published.get("samples"))
    if not alpha or beta is None or delta is None or not samples:
        return None
    tokens = published.get("kvCacheTokens")
    return LearnedProfile(
        parameters=StepParameters(alpha_ms=alpha, beta_ms=beta, delta_ms=delta),
        samples=samples,
        kv_tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
        utilization=_number(published.get("utilization"), most=1.0) or None,
    )


def resume(claim: Claim, status: Json) -> Claim:
    """Return a claim with what was published and learned before, according to a status."""
    published = as_object(as_object(status.get("decision")).get("performance"))
    return replace(
        claim,
        published_replicas=as_object(status.get("desiredOptimizedAlloc")).get("numReplicas"),
        learned=learned_of(published),
        known_start_seconds=_number(published.get("startSeconds"), most=MOST_START_SECONDS),
    )


def _number(value: object, *, most: float = _LARGEST) -> float | None:
    """Return a value as a number if it is 0, or neither too small nor too large for calculations; else None.

    The value may be text or a number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if number == 0 or _SMALLEST <= number <= most else None


def start_seconds_of(pod: Json) -> float | None:
    """Return the time from a pod's start on its node until its engine became ready, in seconds.

    None if it is not ready, or has no engine.
    """
    if not has_engine(pod):
        return None
    status = pod.get("status") or {}
    started, ready = status.get("startTime"), readiness_changed(pod)
    if not started or not ready or not is_ready(pod):
        return None
    return (datetime.fromisoformat(ready) - datetime.fromisoformat(started)).total_seconds()
