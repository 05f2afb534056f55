"""Explain each decision in one sentence with numbers: what was wanted, what was granted, what limited it.

Functions are tried in order, and the first that explains a case is used: first what overrides the load
(orders and minimums), then what is not known of it, then shortages and other variants that serve instead, and
what needs more than the load. The last one explains any case, by the load alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from controller.planning.assemble import Explanation, decide
from controller.planning.case import VariantCase, cases
from controller.planning.decision import BoundBy, Reason, Relief, VariantDecision
from controller.planning.demand import allowed_replicas, rate_of, ready_replicas
from controller.planning.formulation import ordered_replicas, outlasting_replicas
from controller.planning.load import RATE_UNIT, REQUESTS, Signal
from controller.planning.problem import PER_MILLE, LimitKind
from controller.planning.solved_problem import SolvedProblem
from controller.planning.wording import (
    amount_text,
    capacity_text,
    count,
    listing,
    percent,
    utilization_text,
)

_LIMITED = {
    LimitKind.QUOTA: BoundBy.QUOTA,
    LimitKind.BUDGET: BoundBy.BUDGET,
    LimitKind.CEILING: BoundBy.MAX_REPLICAS,
}


def decisions(solved: SolvedProblem) -> tuple[VariantDecision, ...]:
    """Return one decision per variant, sorted by namespace and name."""
    own_decisions = [_decision(case) for case in cases(solved)]
    return tuple(sorted(own_decisions, key=attrgetter("namespace", "name")))


def _decision(case: VariantCase) -> VariantDecision:
    whole, explanation = case.whole, _explanation(case)
    reliefs = case.solved.reliefs.get(whole.model, ())
    if explanation.reason is Reason.SHORTAGE and reliefs:
        explanation = replace(explanation, message=f"{explanation.message}; {_helps(reliefs)} would help")
    if case.published > case.placed and not _is_frozen(case):
        waiting = count(case.published - case.placed, "replica")
        why = "no node was added" if case.variant.stalled_replicas else "fewer would remove ready ones"
        text = f"{explanation.message}; {waiting} without a place: {why}"
        explanation = replace(explanation, message=text)
    excess = tuple(case.solved.excess_of.get(case.number, ()))
    if excess:
        explanation = replace(explanation, message=f"{explanation.message}; {'; '.join(excess)}")
    return decide(
        case.variant,
        case.demand,
        explanation,
        replicas=case.published,
        unconstrained_replicas=max(case.unconstrained, case.published)
        if _is_frozen(case)
        else case.unconstrained,
        unmet_per_mille=whole.unmet_per_mille,
        reliefs=reliefs,
        excess=excess,
    )


def _explanation(case: VariantCase) -> Explanation:
    for explain in _EXPLANATIONS:
        if explanation := explain(case):
            return explanation
    return _explain_service(case)


def _helps(reliefs: Sequence[Relief]) -> str:
    """Return the changes that would help, one of each kind: `a or b`."""
    first = {relief.kind: relief.text for relief in reversed(reliefs)}
    return " or ".join(sorted(first.values()))


def _is_frozen(case: VariantCase) -> bool:
    return not case.demand.signal.decides


def _explain_override(case: VariantCase) -> Explanation | None:
    ordered = ordered_replicas(case.variant)
    if ordered is None:
        return None
    what = "scaling is paused" if case.variant.is_paused else f"pinned to {count(ordered, 'replica')}"
    if case.placed < ordered:
        return _shortage(case, f"{case.variant.name} {_change(case)}: {what}")
    return Explanation(
        bound_by=BoundBy.ORDERED,
        reason=_movement(case),
        message=f"{case.variant.name} {_change(case)}: {what}, {_load(case)}",
    )


def _below_floor(case: VariantCase) -> Explanation | None:
    """Explain that fewer replicas have a place than the model must keep, whatever the load."""
    if not case.whole.is_below_floor:
        return None
    return _shortage(case, f"{case.variant.name} {_change(case)}: {case.whole.duty}")


def _below_minimum(case: VariantCase) -> Explanation | None:
    """Explain that fewer replicas have a place than minReplicas requires."""
    if case.placed >= case.variant.min_replicas:
        return None
    return _shortage(case, f"{case.variant.name} {_change(case)}: minReplicas is {case.variant.min_replicas}")


def _first_replica_explanation(case: VariantCase) -> Explanation | None:
    """Explain the first replica of a model, for requests that wait in front of it."""
    is_served = any(map(ready_replicas, case.demand.variants))
    if not case.demand.is_awaited or is_served or not case.placed:
        return None
    return Explanation(
        bound_by=BoundBy.DEMAND,
        reason=_movement(case),
        message=f"{case.variant.name} {_change(case)}: requests wait, or waited shortly before, and no"
        " replica of the model is ready",
    )


def _hold_explanation(case: VariantCase) -> Explanation | None:
    """Explain that the data does not allow a new decision."""
    if not _is_frozen(case) or case.published > max(case.held_replicas, case.variant.current_replicas):
        return None
    if case.demand.signal is Signal.HELD and (
        case.whole.unmet_per_mille or case.published > case.held_replicas
    ):
        return None
    stale = case.demand.signal is Signal.HELD and not case.demand.load.silent_replicas
    message = f"{case.variant.name} {_change(case)}: {_ignorance(case)}"
    scarcity = case.scarcity() if case.placed < case.published else None
    if scarcity:
        message += f"; {case.published - case.placed} without a place: {case.scarcity_clause(scarcity)}"
    bound_by = BoundBy.STALE_METRICS if stale else BoundBy.MISSING_METRICS
    return Explanation(bound_by=bound_by, reason=Reason.HOLDING, message=message)


def _explain_unknown_size(case: VariantCase) -> Explanation | None:
    """Explain that the load cannot be compared with what replicas serve, so the existing ones stay."""
    has_load = case.demand.lower_rate > 0
    if not case.demand.is_unsized or not has_load or case.published > case.variant.current_replicas:
        return None
    message = f"{case.variant.name} {_change(case)}: {_load(case)}; what one replica serves is not known yet"
    if case.placed < allowed_replicas(case.variant):
        return _shortage(case, message)
    return Explanation(bound_by=BoundBy.CAPACITY_UNKNOWN, reason=Reason.HOLDING, message=message)


def _below_requirement(case: VariantCase) -> Explanation | None:
    """Explain that the model does not get its required capacity."""
    unmet = case.whole.unmet_per_mille
    if not unmet:
        return None
    if case.unconstrained > case.placed:
        return _shortage(case, f"{_need(case)}; granted {case.published}{_coverage(case)}", joint=": ")
    return _shortage(
        case,
        f"{case.variant.name} {_change(case)}: {case.variant.model_id} lacks {percent(unmet / PER_MILLE)} "
        f"of the {_required_text(case)} that it needs{_coverage(case)}",
    )


def _coverage(case: VariantCase) -> str:
    """Return a clause on what a short model lacks of its present load; empty if that is the same share."""
    uncovered = case.whole.uncovered_per_mille
    if case.demand.load.requests_per_second is None or uncovered == case.whole.unmet_per_mille:
        return ""
    if not uncovered:
        return ", while the present load is covered"
    return f", and {percent(uncovered / PER_MILLE)} of the present load is not covered"


def _required_text(case: VariantCase) -> str:
    """Return the required capacity, as `41 requests/s of capacity` or `9 replicas`."""
    measure = case.demand.load.measure
    required = amount_text(case.demand.required_rate * RATE_UNIT, measure)
    return f"{required} of capacity" if measure == REQUESTS else required


def _explain_replacement(case: VariantCase) -> Explanation | None:
    """Explain that demand is served by other variants than it would be with unlimited nodes."""
    if case.unconstrained <= case.placed or _is_frozen(case):
        return None
    scarcity, limit = case.scarcity(), case.limit
    rule = "" if scarcity else case.rule_clause
    why = case.scarcity_clause(scarcity) if scarcity else rule or case.dearer_clause
    if limit:
        why = case.solved.limit_clause(limit)
    otherwise = case.rule_bound_by if rule else case.unusable_bound_by
    others = [
        variant.name
        for variant, unconstrained, placed in zip(
            case.demand.variants, case.whole.unconstrained, case.whole.placed, strict=True
        )
        if placed > unconstrained
    ]
    instead = f", {listing(others)} instead" if others else ""
    return Explanation(
        bound_by=_LIMITED[limit.kind] if limit else scarcity.bound_by if scarcity else otherwise,
        reason=_movement(case),
        message=f"{_need(case)}; granted {case.published}{instead}: {why}",
    )


def _minimum(case: VariantCase) -> Explanation | None:
    """Explain a replica that demand alone does not require."""
    at_floor = case.placed > 0 and sum(case.whole.placed) == case.demand.floor
    at_minimum = case.placed == case.variant.min_replicas > 0
    spare = case.whole.provided_rate - rate_of(case.variant)
    if not (at_floor or at_minimum) or spare < case.demand.required_rate:
        return None
    if at_minimum:
        why = f"minReplicas is {case.variant.min_replicas}"
    else:
        is_one = case.demand.floor == 1
        why = f"one replica keeps {case.variant.model_id} warm" if is_one else case.whole.duty
    return Explanation(
        bound_by=BoundBy.MIN_REPLICAS,
        reason=_movement(case),
        message=f"{case.variant.name} {_change(case)}: {why}, {_load(case)}",
    )


def _for_ratio(case: VariantCase) -> Explanation | None:
    """Explain replicas that only the stated ratio of roles needs."""
    variant, rate = case.variant, rate_of(case.variant)
    key = (variant.namespace, variant.pair)
    ratio = next((item for item in case.solved.snapshot.ratios if (item.namespace, item.pair) == key), None)
    if ratio is None or not case.placed or case.whole.provided_rate - rate < case.demand.required_rate:
        return None
    bounds = f"{ratio.least:g}" if ratio.most == ratio.least else f"{ratio.least:g} to {ratio.most or 0:g}"
    return Explanation(
        bound_by=BoundBy.ORDERED,
        reason=_movement(case),
        message=f"{variant.name} {_change(case)}: {bounds} replicas of prefill per replica of decode are"
        f" stated, {_load(case)}",
    )


def _explain_service(case: VariantCase) -> Explanation:
    spared = "; spare replicas stay until the load is known for some minutes" if _is_spared(case) else ""
    if case.demand.keeps_mix and _has_spare_replica(case):
        spared = "; its replicas stay while the load grows"
    needs_fewer = case.whole.provided_rate - rate_of(case.variant) >= case.demand.required_rate
    if needs_fewer and case.published and case.published == outlasting_replicas(case.variant, case.demand):
        spared = "; ready replicas stay until those with lower ordinals are ready"
    return Explanation(
        bound_by=BoundBy.DEMAND,
        reason=_movement(case),
        message=f"{case.variant.name} {_change(case)}: {_load(case)}{spared}",
    )


def _is_spared(case: VariantCase) -> bool:
    """Return whether a replica beyond demand stays because the load has not been known for long."""
    load = case.demand.load
    if load.requests_per_second is None or load.releasable_requests_per_second is not None:
        return False
    return _has_spare_replica(case)


def _has_spare_replica(case: VariantCase) -> bool:
    """Return whether one of the present replicas could be removed without a lack of capacity."""
    spare = case.whole.provided_rate - rate_of(case.variant)
    return 0 < case.published <= case.variant.current_replicas and spare >= case.demand.lower_rate


_EXPLANATIONS: tuple[Callable[[VariantCase], Explanation | None], ...] = (
    _explain_override,
    _below_floor,
    _below_minimum,
    _first_replica_explanation,
    _hold_explanation,
    _explain_unknown_size,
    _below_requirement,
    _explain_replacement,
    _minimum,
    _for_ratio,
)


def _shortage(case: VariantCase, what: str, *, joint: str = "; ") -> Explanation:
    """Explain a shortage with its cause: the variant's own limit, unknown capacity, or the nodes."""
    maximum = case.variant.max_replicas
    scarcity, limit = case.scarcity(), case.limit
    if maximum is not None and case.placed >= maximum:
        why = f"maxReplicas is {maximum}" if maximum else "its autoscaler starts none"  # as it is disabled
        bound_by = BoundBy.MAX_REPLICAS
    elif scarcity and not scarcity.nodes:  # whatever a replica serves
        bound_by, why = scarcity.bound_by, case.scarcity_clause(scarcity)
    elif case.variant.capacity is None and case.demand.required_rate:
        bound_by, why = BoundBy.CAPACITY_UNKNOWN, "what one replica serves is not known yet"
    elif unusable := case.unusable_clause:
        bound_by, why = case.unusable_bound_by, unusable
    elif limit:
        bound_by, why = _LIMITED[limit.kind], case.solved.limit_clause(limit)
    elif scarcity:
        bound_by, why = scarcity.bound_by, case.scarcity_clause(scarcity)
    elif rule := case.rule_clause:
        bound_by, why = case.rule_bound_by, rule
    else:
        bound_by, why = BoundBy.ACCELERATORS, case.unused_clause
    message = f"{what}{joint}{why}{case.gives_way_later}"
    return Explanation(bound_by=bound_by, reason=Reason.SHORTAGE, message=message)


def _movement(case: VariantCase) -> Reason:
    if case.published == case.variant.current_replicas:
        return Reason.STEADY
    return Reason.SCALE_UP if case.published > case.variant.current_replicas else Reason.SCALE_DOWN


def _change(case: VariantCase) -> str:
    before, after = case.variant.current_replicas, case.published
    if before == after:
        return f"stays at {count(after, 'replica')}"
    return f"goes from {before} to {count(after, 'replica')}"


def _need(case: VariantCase) -> str:
    """Return the need: `llama needs 3 replicas for 41 requests/s, 85 % of 3 x 16; one serves 16 ...`."""
    share = _utilization(case, case.whole.unconstrained) or "no replica's capacity is known"
    one = capacity_text(case.variant)
    replicas = count(case.unconstrained, "replica")
    need = f"{case.variant.name} needs {replicas} for {case.whole.load_text}, {share}"
    return f"{need}; {one}" if one else need


def _load(case: VariantCase) -> str:
    """Return the load in words: `41 requests/s now, ..., 85 % of 3 x 16; one serves 16 within ITL 80 ms`."""
    load = case.demand.load
    if load.requests_per_second is None:
        return _silence(case) or "demand is unknown while nothing is ready"
    if not load.upper_requests_per_second and not load.backlog_requests:
        return "no requests come" if load.measure == REQUESTS else "no replicas are asked for"
    filled = _utilization(case, case.whole.placed)
    share = f"{case.whole.load_text}, {filled}" if filled else case.whole.load_text
    one = capacity_text(case.variant)
    return f"{share}; {one}" if one else share


def _utilization(case: VariantCase, replicas: Sequence[int]) -> str:
    demand = case.demand
    upper = demand.load.upper_requests_per_second
    return utilization_text(demand.variants, replicas, upper, position=case.position)


def _ignorance(case: VariantCase) -> str:
    """Return why the data does not allow a new decision."""
    demand, load = case.demand, case.demand.load
    ready = sum(variant.ready_replicas for variant in demand.variants)
    if demand.signal is Signal.UNKNOWN and not ready:
        existing = any(variant.current_replicas for variant in demand.variants)
        return (
            f"no replica of {demand.model_id} is ready yet" if existing else "nothing runs, demand is unknown"
        )
    if load.silent_replicas:
        return f"{_silence(case)}, so nothing is scaled down"
    if demand.signal is Signal.UNKNOWN:
        return _silence(case)
    if not ready:
        age = load.signal_age_seconds or 0
        return f"no replica of {demand.model_id} is ready, so its load of {age:.0f} s ago counts"
    return f"the oldest report is {load.signal_age_seconds or 0:.0f} s old, so nothing is scaled down"


def _silence(case: VariantCase) -> str:
    """Return which ready engines have not reported; empty if none is ready."""
    demand, silent = case.demand, case.demand.load.silent_replicas
    ready = sum(variant.ready_replicas for variant in demand.variants)
    if silent:
        verb = "does" if silent == 1 else "do"
        return f"{silent} of {count(ready, 'ready replica')} of {demand.model_id} {verb} not report"
    if ready:
        return f"the load of {demand.model_id} is not known before its engines have answered twice"
    return ""
