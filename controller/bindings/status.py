"""The status of an AutoscalingPolicyBinding, as a pure function of the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.errors import ClusterError
from apiserver.cluster.timing import moment_of
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.binding_claims import BindingDemand
from controller.observe.binding_conditions import BindingCondition, BindingFinding, BindingReason
from controller.observe.binding_targets import BindingCase
from controller.observe.conditions import condition_list, moment, readiness, shorten
from controller.observe.decision_following import ActingFinding
from controller.planning.load import Signal
from controller.policies.recommending import Recommendation
from controller.policies.sharing import SharedDecision, binding_sentence, recommendation_text
from controller.variants.publishing import Urgency, own_conditions, without_numbers

REFRESH_SECONDS: Final = 60.0
"""Minimum time in seconds between writes of a status in which only figures changed."""

WRITES_PER_SECOND: Final = 1.0
"""Maximum rate at which non-urgent statuses are written."""

_MOST_REPLICAS: Final = 2**31 - 1
_TYPES: Final = frozenset(BindingCondition)
_SIGNALS: Final[Mapping[Signal, BindingReason]] = {
    Signal.FRESH: BindingReason.METRICS_AVAILABLE,
    Signal.QUORUM: BindingReason.METRICS_BY_QUORUM,
    Signal.HELD: BindingReason.METRICS_HELD,
    Signal.UNKNOWN: BindingReason.METRICS_UNAVAILABLE,
}
_NEEDED: Final = (
    BindingCondition.POLICY_RESOLVED,
    BindingCondition.TARGETS_RESOLVED,
    BindingCondition.SCALING_ACTIVE,
    BindingCondition.DECISION_FOLLOWED,
    BindingCondition.METRICS_AVAILABLE,
)
"""The conditions without which a binding is not ready, the most fundamental first."""

_UNUSABLE: Final = frozenset({BindingReason.TARGET_NOT_FOUND, BindingReason.TARGET_CLAIMED})
_WORST_FIRST: Final = (Signal.UNKNOWN, Signal.HELD, Signal.QUORUM, Signal.FRESH)


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingResult:
    """The result for one binding; without a decision the conditions give the reason."""

    case: BindingCase
    decision: SharedDecision | None = None
    advice: tuple[BindingReason, str] | None = None
    """Why the decision is advice only."""

    demand: BindingDemand | None = None
    """The request to the joint plan; None if the binding is decided without it."""

    placement: Mapping[BindingCondition, BindingFinding] = field(default_factory=dict)
    """The plan's findings, including the source of the priority."""

    silence: str = ""
    """Why a pod did not answer, in one phrase."""

    acting: ActingFinding | None = None
    """Whether the decision is followed; None if nothing should follow it, or the controller itself scales."""

    fault: str = ""
    """An unexpected error of the controller during the decision."""

    scaling: BindingFinding | None = None
    """Whether the controller writes the scales; None if it should not, or has not tried yet."""

    @property
    def replicas(self) -> tuple[int, ...] | None:
        """Published replicas of each target; None if nothing should act on them."""
        if self.decision is None or self.advice is not None:
            return None
        if self.case.orders.is_paused:
            return tuple(state.current_replicas for state in self.case.targets)
        return self.decision.replicas

    @property
    def message(self) -> str:
        """The decision in one sentence."""
        if self.fault:
            return shorten(f"nothing is decided: {self.fault}; please report it with the object")
        if self.decision is None or self.case.binding is None:
            wrong = [text for holds, _, text in self.case.findings.values() if not holds]
            return shorten("; ".join(wrong) or "nothing can be decided")
        text = binding_sentence(self.case.binding, self.decision)
        if self.case.orders.is_paused:
            text = f"paused: the running replicas stay; otherwise {text}"
        if self.advice:
            text = f"{text}; {self.advice[1]}: nothing is scaled"
        return shorten(text)


def binding_status(result: BindingResult, *, now: datetime) -> Json:
    """Return the whole status after a decision, including conditions."""
    case, decision, replicas = result.case, result.decision, result.replicas
    metadata = case.value["metadata"]
    status: Json = {
        "observedGeneration": metadata.get("generation", 0),
        "lastDecisionTime": moment(now),
        "decision": {"message": result.message},
        "conditions": condition_list(case.value, _findings(result), now=now),
    }
    if case.targets:
        status["currentReplicas"] = sum(state.current_replicas for state in case.targets)
        if not case.stands_back:  # otherwise the metrics API would report the same target twice
            status["targets"] = list(_targets(case, replicas))
    if replicas is not None:
        status["desiredReplicas"] = sum(replicas)
    if decision is not None:
        status["decision"] |= _reasons(decision)
        status["metrics"] = [_metric(item) for item in decision.whole.recommendations]
        status["history"] = decision.history.document()
    elif text := (case.value.get("status") or {}).get("history"):
        status["history"] = text
    return status


def binding_news(old: Json, new: Json, *, now: datetime) -> Urgency | None:
    """Return how soon a status should be written, or None if it has no changes or was written recently."""
    written = moment_of(old.get("lastDecisionTime"))
    # The metrics API serves no number whose time is missing or more than a minute in the future.
    if _acted_on(old) != _acted_on(new) or written is None or written > now:
        return Urgency.URGENT
    if _causes(old) != _causes(new):
        return Urgency.ORDINARY
    if all(old.get(name) == new.get(name) for name in ("history", "decision")):
        return None
    return Urgency.ORDINARY if (now - written).total_seconds() >= REFRESH_SECONDS else None


def unwritten_seconds(bindings: int, *, interval_seconds: float) -> float:
    """Return for how long a process can decide on a binding, one of several, without writing its status."""
    return max(REFRESH_SECONDS, bindings / WRITES_PER_SECOND) + interval_seconds


def _acted_on(status: Json) -> Json:
    decision = status.get("decision") or {}
    return {
        "targets": status.get("targets"),
        "generation": status.get("observedGeneration"),
        "limits": decision.get("limitedBy"),
        "panic": decision.get("panicSince"),
        "conditions": {
            item["type"]: [item.get("status"), item.get("reason")] for item in own_conditions(status, _TYPES)
        },
    }


def _causes(status: Json) -> list[tuple[str, str]]:
    """Return why conditions do not hold: the cause can change while the reason stays the same."""
    return [
        (item["type"], without_numbers(item.get("message") or ""))
        for item in own_conditions(status, _TYPES)
        if item.get("status") == "False"
    ]


def _targets(case: BindingCase, replicas: tuple[int, ...] | None) -> Iterator[Json]:
    for place, state in enumerate(case.targets):
        target_json: Json = {
            "kind": state.bound.target.kind,
            "name": state.bound.target.name,
            "currentReplicas": state.current_replicas,
        }
        yield target_json if replicas is None else target_json | {"replicas": replicas[place]}


def _reasons(decision: SharedDecision) -> Json:
    whole = decision.whole
    reasons: Json = {}
    if whole.limits:  # kubectl would print an empty list as []
        reasons["limitedBy"] = [str(limit) for limit in whole.limits]
    if whole.wanted_replicas is not None:
        reasons["wantedReplicas"] = min(whole.wanted_replicas, _MOST_REPLICAS)
    if whole.panic_since_seconds is not None:
        reasons["panicSince"] = moment(datetime.fromtimestamp(whole.panic_since_seconds, UTC))
    return reasons


def _metric(item: Recommendation) -> Json:
    metric_json: Json = {
        "name": item.metric,
        "targetValue": f"{item.target:.6g}",
        "value": None if item.total is None else f"{item.total:.6g}",
        "replicas": None if item.replicas is None else min(item.replicas, _MOST_REPLICAS),
        "signal": str(item.signal),
        "ageSeconds": None if item.age_seconds is None else round(item.age_seconds),
        "silentPods": item.silent_pods or None,
    }
    return {name: value for name, value in metric_json.items() if value is not None}


def _findings(result: BindingResult) -> Mapping[BindingCondition, BindingFinding]:
    findings = dict(result.case.findings)
    if result.decision is not None:
        findings[BindingCondition.METRICS_AVAILABLE] = _metrics_finding(result, result.decision)
    else:
        text = "nothing is decided, so no pod is queried"
        findings[BindingCondition.METRICS_AVAILABLE] = False, BindingReason.METRICS_UNAVAILABLE, text
    if result.acting:
        findings[BindingCondition.DECISION_FOLLOWED] = _following_finding(result.acting, result.case)
    findings |= result.placement
    if result.scaling:
        findings[BindingCondition.SCALING_ACTIVE] = result.scaling
    if result.advice:
        findings[BindingCondition.ADVISORY] = True, *result.advice
    findings[BindingCondition.READY] = _readiness(result, findings)
    return {kind: findings[kind] for kind in BindingCondition if kind in findings}


def _readiness(result: BindingResult, findings: Mapping[BindingCondition, BindingFinding]) -> BindingFinding:
    needed = [*_NEEDED]
    if result.advice or result.case.orders.is_paused:
        needed.remove(BindingCondition.SCALING_ACTIVE)
    if result.advice and findings[BindingCondition.TARGETS_RESOLVED][1] not in _UNUSABLE:
        # Before decisions are applied, something else is expected to scale the targets.
        needed.remove(BindingCondition.TARGETS_RESOLVED)
    placed = findings.get(BindingCondition.PLACED)
    is_short = placed is not None and placed[1] is BindingReason.TOO_LITTLE_ROOM
    fine = BindingReason.NO_PROBLEM, result.message
    holds, reason, message = readiness(
        findings,
        needed=needed,
        fine=placed[1:] if placed is not None and is_short else fine,
        is_short=is_short,
        hints={BindingReason.TARGET_NOT_SCALED},
    )
    return holds, BindingReason(reason), message


def _following_finding(acting: ActingFinding, case: BindingCase) -> BindingFinding:
    """Return whether autoscalers follow the decision: not if they read it otherwise than it is meant."""
    targets = case.findings[BindingCondition.TARGETS_RESOLVED]
    if not targets[0] and targets[1] is not BindingReason.TARGET_NOT_SCALED:
        return targets
    is_followed, reason, text = acting
    return is_followed, BindingReason(str(reason)), text


def _metrics_finding(result: BindingResult, decision: SharedDecision) -> BindingFinding:
    recommendations = decision.whole.recommendations
    worst = next(signal for signal in _WORST_FIRST if any(item.signal is signal for item in recommendations))
    texts = "; ".join(recommendation_text(item) for item in recommendations)
    silence = f"; {result.silence}" if result.silence else ""
    return worst.decides, _SIGNALS[worst], f"{texts}{silence}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingCycleResult:
    """What one cycle decided, wrote and could not read."""

    results: tuple[BindingResult, ...] = ()
    written: int = 0
    scrape_failures: int = 0
    responding: int = 0
    """The number of pods that responded."""

    silent: Mapping[Key, str] = field(default_factory=dict)
    scaled: Mapping[str, int] = field(default_factory=dict)
    """The number of scale writes by outcome."""

    unwritten: Mapping[Key, ClusterError] = field(default_factory=dict)
    """Errors of the statuses that could not be written."""
