"""The status of a variant, as a pure function of the decision.

Each status is complete, so figures of two decisions are never mixed. A status that must not be acted on
(advice, or a variant that is not planned) has no number: autoscalers then keep the current replicas. Figures
are texts of few digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from apiserver.kinds.identity import Key
from apiserver.kinds.llmd.identity import variant_identifier
from apiserver.schema.json import Json
from controller.observe.claim import Exclusion, orders_finding
from controller.observe.conditions import (
    ConditionReason,
    ConditionType,
    Finding,
    condition_list,
    moment,
    readiness,
    shorten,
)
from controller.observe.decision_following import ActingFinding
from controller.observe.observed import ObservedVariant
from controller.planning.decision import BoundBy, Reason, SolverReport, VariantDecision
from controller.planning.load import Capacity, ModelLoad, Signal
from controller.planning.snapshot import Variant
from controller.planning.wording import count, percent
from controller.sizing.attainment import TargetAttainment
from controller.sizing.capacity import duration
from controller.sizing.sizing import NOTHING_TOLD, SizedVariant
from controller.variants.advisory import Advice

_SHORTEST_ACCELERATOR: Final = 2
_GAP_DIGITS: Final = 6
_LONGEST_RELIEF: Final = 256
_DIGITS: Final = 4
_METRICS: Final[Mapping[Signal, ConditionReason]] = {
    Signal.FRESH: ConditionReason.METRICS_AVAILABLE,
    Signal.QUORUM: ConditionReason.METRICS_BY_QUORUM,
    Signal.HELD: ConditionReason.METRICS_HELD,
    Signal.UNKNOWN: ConditionReason.METRICS_UNAVAILABLE,
}

_FEWEST_JUDGED: Final = 100
"""Requests from which the attained share is compared with the promised one."""

_NEEDED: Final = (
    ConditionType.TARGET_RESOLVED,
    ConditionType.OPTIMIZATION_READY,
    ConditionType.DECISION_FOLLOWED,
    ConditionType.METRICS_AVAILABLE,
)
"""The conditions without which a variant is not ready, the most fundamental first."""

UNPLANNED: Final = "Unplanned"
"""The reason in `decision` for a variant that cannot be planned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusInputs:
    """All inputs of the status of one planned variant."""

    variant: Variant
    decision: VariantDecision
    solver: SolverReport
    observed: ObservedVariant
    silence: str
    """Why engines did not report, in one phrase; empty if all reported."""

    is_misserved: bool = False
    """Whether engines of the variant serve another model."""

    unseen: str = ""
    """Why requests for its model cannot be seen while it has no replica; empty if they can."""

    lateness: str = ""
    """Which replicas have not been ready for too long; empty for none."""

    acting: ActingFinding | None = None
    """Whether the decision is followed; None for advice."""

    advice: Advice | None = None
    """Why the decision is advice only; None if it is published to be acted on."""

    sized: SizedVariant = NOTHING_TOLD
    misplaced: str = ""
    """Which replicas are pending because other pods took their planned nodes; empty for none."""


def planned_status(
    value: Json, inputs: StatusInputs, *, now: datetime, published: Json | None = None
) -> Json:
    """Return the whole status of a raw object after a decision, including conditions.

    `published` is the status before; None if it is in the object.

    For an advisory decision the desired allocation has no number: without a metric, autoscalers keep the
    current replicas. The current number would be slightly outdated, and could undo a scaling by hand.
    """
    variant, decision = inputs.variant, inputs.decision
    identifier = _identifier(value)
    number = {} if inputs.advice else {"numReplicas": decision.replicas}
    return {
        "currentAlloc": identifier | _current(value, variant),
        "desiredOptimizedAlloc": identifier
        | _accelerator(decision.accelerator)
        | number
        | {"lastRunTime": moment(now)},
        "actuation": {"applied": inputs.advice is None},
        "decision": _decision(inputs),
        "conditions": condition_list(value, _with_ready(inputs), now=now, published=published),
    }


def unplanned_status(value: Json, why: Exclusion, *, now: datetime, published: Json | None = None) -> Json:
    """Return the status of a variant that cannot be planned, without a number that could be acted on."""
    findings: Mapping[ConditionType, Finding] = {
        ConditionType.READY: (False, why.reason, why.message),
        ConditionType.TARGET_RESOLVED: (False, why.reason, why.message),
        ConditionType.METRICS_AVAILABLE: (False, ConditionReason.METRICS_UNAVAILABLE, why.message),
        ConditionType.OPTIMIZATION_READY: (False, why.reason, why.message),
    }
    return {
        "actuation": {"applied": False},
        "decision": {"reason": UNPLANNED, "message": shorten(why.message)},
        "conditions": condition_list(value, findings, now=now, published=published),
    }


def reasons_not_ready(statuses: Mapping[Key, Json]) -> Mapping[Key, str]:
    """Return the reasons of the statuses whose condition `Ready` is false."""
    return {
        key: str(item["reason"])
        for key, status in statuses.items()
        for item in status["conditions"]
        if item["type"] == ConditionType.READY and item["status"] == "False"
    }


def _with_ready(inputs: StatusInputs) -> Mapping[ConditionType, tuple[bool, StrEnum, str]]:
    findings, decision = _findings(inputs), inputs.decision
    ready = readiness(
        findings,
        needed=_NEEDED,
        fine=(decision.reason, decision.message),
        is_short=decision.reason is Reason.SHORTAGE,
        hints={ConditionReason.TARGET_NOT_SCALED},
    )
    return {ConditionType.READY: ready, **findings}


def _findings(inputs: StatusInputs) -> Mapping[ConditionType, Finding]:
    advice, misplaced, excess = inputs.advice, inputs.misplaced, inputs.decision.excess
    seen = inputs.observed
    findings: dict[ConditionType, Finding] = {
        ConditionType.TARGET_RESOLVED: _target_finding(inputs),
        ConditionType.SERVICE_CLASS_RESOLVED: seen.service_class,
        ConditionType.ANNOTATIONS_RESOLVED: orders_finding(seen.claim.orders),
        ConditionType.METRICS_AVAILABLE: _metrics_finding(inputs),
    }
    if inputs.acting:
        findings[ConditionType.DECISION_FOLLOWED] = _following_finding(seen, inputs.acting)
    if seen.mistyped:
        differs = ConditionReason.ACCELERATOR_DIFFERS
        findings[ConditionType.ACCELERATOR_RESOLVED] = False, differs, seen.mistyped
    if seen.unpriced:
        findings[ConditionType.COST_RESOLVED] = (False, ConditionReason.COST_NOT_ALLOWED, seen.unpriced)
    elif seen.unlisted:
        findings[ConditionType.COST_RESOLVED] = (False, ConditionReason.PRICE_INVALID, seen.unlisted)
    differences = (*seen.claim.problems, *inputs.sized.problems)
    if problems := (*differences, *inputs.sized.hard_targets):
        differs, hard = ConditionReason.PERFORMANCE_DIFFERS, ConditionReason.TARGETS_UNREALISTIC
        findings[ConditionType.PERFORMANCE_AS_DECLARED] = (
            False,
            differs if differences else hard,
            "; ".join(problems),
        )
    if (level := inputs.sized.service_level) and level.attained.requests >= _FEWEST_JUDGED:
        findings[ConditionType.ATTAINMENT_KEPT] = _attainment_finding(level)
    findings[ConditionType.OPTIMIZATION_READY] = _solver_finding(inputs)
    if excess:
        findings[ConditionType.LIMITS_KEPT] = (False, ConditionReason.LIMIT_EXCEEDED, "; ".join(excess))
    if advice:
        findings[ConditionType.ADVISORY] = (True, advice.reason, advice.message)
    if misplaced:
        findings[ConditionType.PLACEMENT_FOLLOWED] = (False, ConditionReason.PLACED_ELSEWHERE, misplaced)
    return findings


def _target_finding(inputs: StatusInputs) -> Finding:
    seen = inputs.observed
    target = seen.target
    parts = (f"the {target.key.kind_text} exists", target.difference, seen.narrowing)
    exists = "; ".join(filter(None, parts))
    if seen.misread:
        # Before decisions are applied, autoscalers are expected to read something else.
        is_only_advice = inputs.advice is not None
        reason = ConditionReason(str(seen.misread[0].reason))
        return is_only_advice, reason, f"{exists}; {_misread_text(seen)}"
    if seen.unheeded:
        return True, ConditionReason.TARGET_NOT_SCALED, f"{exists}; {seen.unheeded}"
    return True, ConditionReason.TARGET_FOUND, exists


def _following_finding(seen: ObservedVariant, acting: ActingFinding) -> Finding:
    if seen.misread:
        return False, ConditionReason(str(seen.misread[0].reason)), _misread_text(seen)
    is_followed, reason, text = acting
    return is_followed, ConditionReason(str(reason)), text


def _misread_text(seen: ObservedVariant) -> str:
    return "; ".join(problem.message for problem in seen.misread)


def _attainment_finding(level: TargetAttainment) -> Finding:
    attained, targets = level.attained, level.targets
    within = [f"TTFT {duration(targets.ttft_seconds)}"] if targets.ttft_seconds is not None else []
    within += [f"ITL {duration(targets.itl_seconds)}"] if targets.itl_seconds is not None else []
    requests = count(round(attained.requests), "request")
    text = (
        f"{percent(level.share)} of the model's {requests} within the last hour met"
        f" {' and '.join(within)}; {percent(targets.attainment)} are promised"
    )
    if level.share >= targets.attainment:
        return True, ConditionReason.TARGETS_MET, text
    ttft, itl = percent(level.ttft_missed), percent(level.itl_missed)
    return False, ConditionReason.TARGETS_MISSED, f"{text}; {ttft} missed the TTFT and {itl} the ITL"


def _solver_finding(inputs: StatusInputs) -> Finding:
    message = inputs.decision.message
    if inputs.solver.is_answered and inputs.decision.bound_by is BoundBy.SOLVER:
        return False, ConditionReason.INVALID_CONFIGURATION, message
    if inputs.solver.is_answered:
        return True, ConditionReason.OPTIMIZATION_SUCCEEDED, message
    return False, ConditionReason.OPTIMIZATION_FAILED, message


def _metrics_finding(inputs: StatusInputs) -> Finding:
    load, variant = inputs.decision.load, inputs.variant
    ages = [item.report_age_seconds for item in variant.replicas if item.ready]
    reporting = [age for age in ages if age is not None]
    text = f"{len(reporting)} of {len(ages)} ready replicas report"
    text += f", the oldest report is {max(reporting):.0f} s old" if reporting else ""
    text += f"; {inputs.silence}" if inputs.silence else ""
    if load.signal is Signal.UNKNOWN and reporting and not (inputs.silence or load.silent_replicas):
        text += "; the load is not known before they have answered twice"
    if load.signal is Signal.HELD and not load.ready_replicas:
        text += f"; the load is that of {load.signal_age_seconds or 0:.0f} s ago, when one was ready"
    if load.signal is Signal.QUORUM:
        text += f"; decided without {count(load.silent_replicas, 'silent replica')} of the model"
    text += f"; {inputs.lateness}" if inputs.lateness else ""
    is_without = not load.ready_replicas and not inputs.decision.replicas
    if inputs.unseen and is_without and variant.may_scale_to_zero:
        return False, ConditionReason.DEMAND_NOT_VISIBLE, f"{text}; {inputs.unseen}"
    if load.signal is Signal.UNKNOWN and inputs.is_misserved:
        return False, ConditionReason.MODEL_NOT_SERVED, text
    return load.signal is not Signal.UNKNOWN, _METRICS[load.signal], text


def _current(value: Json, variant: Variant) -> Json:
    cost = variant.cost_per_replica * variant.current_replicas
    profile = value["spec"].get("variantProfile") or {}
    batch = {"maxBatch": profile["maxBatchSize"]} if "maxBatchSize" in profile else {}
    numbers = {"numReplicas": variant.current_replicas, "variantCost": decimal_text(cost)}
    return numbers | batch | _accelerator(variant.accelerator)


def _identifier(value: Json) -> Json:
    """Return the identifier in an allocation of the legacy API; empty for other versions."""
    spec = value["spec"]
    if not all(name in spec for name in ("accelerator", "acceleratorCount", "variantProfile")):
        return {}
    return {"variantID": variant_identifier(spec)}


def _accelerator(name: str) -> Json:
    return {"accelerator": name} if len(name) >= _SHORTEST_ACCELERATOR else {}


def _decision(inputs: StatusInputs) -> Json:
    decision, solver = inputs.decision, inputs.solver
    decision_json: Json = {
        "reason": str(decision.reason),
        "message": shorten(decision.message),
        "demand": _demand(decision.load),
        "requiredRequestsPerSecond": _number(decision.required_requests_per_second),
        "capacityPerReplica": _number(decision.capacity.requests_per_second) if decision.capacity else None,
        "capacityLimit": _limit(decision.capacity),
        "capacitySource": str(decision.capacity_source),
        "performance": _learned_json(inputs),
        "serviceLevel": _service_level(inputs.sized.service_level),
        "unconstrainedReplicas": decision.unconstrained_replicas,
        "grantedReplicas": decision.replicas,
        "readyReplicas": inputs.variant.ready_replicas,
        "unmetPerMille": decision.unmet_per_mille,
        "relief": _relief(decision),
        "boundBy": str(decision.bound_by),
        "signal": str(decision.signal),
        "priority": decision.priority,
        "costPerReplica": decimal_text(inputs.variant.cost_per_replica),
        "savedPerHour": None if inputs.advice is None else decimal_text(inputs.advice.saved_per_hour),
        "costSource": inputs.observed.cost[1],
        "solverStatus": str(solver.status),
        "gap": _gap(solver),
    }
    return {name: value for name, value in decision_json.items() if value is not None}


def _relief(decision: VariantDecision) -> str | None:
    """Return the change that leaves the least unmet, the first of several."""
    best = min(decision.reliefs, key=lambda relief: relief.unmet_per_mille, default=None)
    return None if best is None else best.text[:_LONGEST_RELIEF]


def _demand(load: ModelLoad) -> Json | None:
    """Return the load of the model, or None if it is unknown."""
    if load.requests_per_second is None:
        return None
    demand_json: Json = {
        "requestsPerSecond": _number(load.requests_per_second),
        "upperRequestsPerSecond": _number(load.upper_requests_per_second),
        "startSeconds": round(load.start_seconds),
        "backlogRequests": round(load.backlog_requests),
        "avgInputTokens": None if load.prompt_tokens is None else _number(load.prompt_tokens),
        "avgOutputTokens": None if load.output_tokens is None else _number(load.output_tokens),
    }
    return {name: value for name, value in demand_json.items() if value is not None}


def _limit(capacity: Capacity | None) -> str | None:
    return capacity.limits[0].text if capacity and capacity.limits else None


def _learned_json(inputs: StatusInputs) -> Json | None:
    """Return the learned step times, from which learning continues after a restart."""
    learned = inputs.sized.learned
    if learned is None:
        return None
    parameters = learned.parameters
    learned_json: Json = {
        "decodeParms": {"alpha": _number(parameters.alpha_ms), "beta": _number(parameters.beta_ms)},
        "prefillParms": {"delta": _number(parameters.delta_ms)},
        "samples": round(learned.samples),
        "startSeconds": round(inputs.variant.start_seconds),
        "kvCacheTokens": learned.kv_tokens,
        "utilization": None if learned.utilization is None else _number(learned.utilization),
    }
    return {name: value for name, value in learned_json.items() if value is not None}


def _service_level(level: TargetAttainment | None) -> Json | None:
    if level is None:
        return None
    targets = level.targets
    limits = {"ttftTarget": targets.ttft_seconds, "itlTarget": targets.itl_seconds}
    return {
        **{name: _number(limit) for name, limit in limits.items() if limit is not None},
        "promised": _number(targets.attainment),
        "attained": _number(level.share),
        "ttftMissed": _number(level.ttft_missed),
        "itlMissed": _number(level.itl_missed),
        "requests": round(level.attained.requests),
    }


def _number(value: float) -> str:
    """Return a number with four significant digits and without an exponent."""
    text = f"{value:.{_DIGITS}g}"
    return f"{Decimal(text):f}"


def _gap(solver: SolverReport) -> str:
    """Return the gap as text."""
    return f"{solver.gap:.{_GAP_DIGITS}f}".rstrip("0").rstrip(".")


def decimal_text(value: Decimal) -> str:
    """Return a number without an exponent, in the API's format for costs."""
    return f"{value:f}"
