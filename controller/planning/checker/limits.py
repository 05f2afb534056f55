"""Check what limits replicas and evictions.

Replicas are limited by bounds of variants, the last replica of a model, quotas, budgets and ceilings; use
that already exceeds a quota, budget or ceiling may stay, but not grow. Pods to evict must exist and be
movable, and disruption budgets hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from controller.planning.decision import BoundBy, Plan, Reason, VariantDecision
from controller.planning.snapshot import Snapshot, Variant

Decisions = Mapping[tuple[str, str], VariantDecision]
Limit = tuple[str, Decimal, Sequence[Decimal]]
"""Name, limit, and use per replica of each variant."""


def bound_problems(snapshot: Snapshot, decisions: Decisions) -> Iterator[str]:
    """Yield a message for each variant with more or fewer replicas than allowed."""
    for variant in snapshot.variants:
        yield from _bounds(variant, decisions[variant.namespace, variant.name])


def _bounds(variant: Variant, decision: VariantDecision) -> Iterator[str]:
    most = variant.max_replicas
    if decision.replicas < 0:
        yield f"{variant.name}: {decision.replicas} replicas are less than none"
    if most is not None and decision.replicas > most:
        yield f"{variant.name}: {decision.replicas} replicas are more than maxReplicas ({most})"
    floor = variant.current_replicas if most is None else min(variant.current_replicas, most)
    if decision.bound_by is BoundBy.SOLVER:
        if decision.replicas != floor:
            yield f"{variant.name}: {decision.replicas} replicas although it is left out of the plan"
        return
    least = variant.min_replicas
    ordered = variant.is_paused or variant.pinned_replicas is not None
    if decision.replicas < least and decision.reason is not Reason.SHORTAGE and not ordered:
        yield f"{variant.name}: {decision.replicas} replicas are less than minReplicas ({least})"
    pinned = variant.pinned_replicas
    if pinned is not None and not variant.is_paused:
        if decision.replicas > pinned:
            yield f"{variant.name}: {decision.replicas} replicas although it is pinned to {pinned}"
        elif decision.replicas < pinned and decision.reason is not Reason.SHORTAGE:
            yield f"{variant.name}: only {decision.replicas} replicas although it is pinned to {pinned}"
    is_ordered = pinned is not None and decision.replicas >= pinned
    if not decision.signal.decides and decision.replicas < floor and not is_ordered:
        yield f"{variant.name}: scaled down to {decision.replicas} although its signal is {decision.signal}"


def warmth_problems(snapshot: Snapshot, decisions: Decisions) -> Iterator[str]:
    """Yield a message for each model that loses its last replica although it may not scale to zero."""
    replicas: Counter[tuple[str, str]] = Counter()
    must: dict[tuple[str, str], bool] = {}
    excused: set[tuple[str, str]] = set()
    for variant in snapshot.variants:
        model = (variant.namespace, variant.model_id)
        decision = decisions[variant.namespace, variant.name]
        replicas[model] += decision.replicas
        must[model] = must.get(model, False) or not variant.may_scale_to_zero
        if variant.is_paused or variant.pinned_replicas == 0:
            excused.add(model)  # a user removed the last one, or wants no change
        if decision.reason is Reason.SHORTAGE or decision.bound_by is BoundBy.SOLVER:
            excused.add(model)
    for model in sorted(must):
        if must[model] and not replicas[model] and model not in excused:
            yield f"{model[1]}: no replica is left, though it may not scale to zero"


def limit_problems(snapshot: Snapshot, decisions: Decisions) -> Iterator[str]:
    """Yield a message for each limit that the plan exceeds."""
    for name, limit, amounts in (*_quotas(snapshot), *_budgets(snapshot), *_ceilings(snapshot)):
        granted = [decisions[v.namespace, v.name].replicas for v in snapshot.variants]
        planned = sum((a * count for a, count in zip(amounts, granted, strict=True)), Decimal(0))
        now = sum(
            (a * v.current_replicas for a, v in zip(amounts, snapshot.variants, strict=True)), Decimal(0)
        )
        if planned > max(limit, now):
            yield f"{name}: {planned} planned, {limit} allowed"


def _quotas(snapshot: Snapshot) -> Iterator[Limit]:
    for quota in snapshot.quotas:
        counted = [
            v.namespace == quota.namespace and quota.accelerator in ("", v.accelerator)
            for v in snapshot.variants
        ]
        amounts = [
            Decimal(v.accelerators_per_replica * c) for v, c in zip(snapshot.variants, counted, strict=True)
        ]
        yield f"quota {quota.namespace}/{quota.name}", Decimal(quota.accelerators), amounts


def _budgets(snapshot: Snapshot) -> Iterator[Limit]:
    for budget in snapshot.budgets:
        counted = [not budget.namespaces or v.namespace in budget.namespaces for v in snapshot.variants]
        amounts = [v.cost_per_replica * c for v, c in zip(snapshot.variants, counted, strict=True)]
        yield f"budget {budget.name}", budget.cost_per_hour, amounts


def _ceilings(snapshot: Snapshot) -> Iterator[Limit]:
    for model in snapshot.models:
        if model.max_replicas is not None:
            key = (model.namespace, model.model_id)
            amounts = [Decimal((v.namespace, v.model_id) == key) for v in snapshot.variants]
            yield f"maximum of {model.namespace}/{model.model_id}", Decimal(model.max_replicas), amounts


Place = tuple[str, str, str, bool]
"""Namespace, name, node, and whether it is a pod of another workload."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _MovablePods:
    """The pods that may be evicted from one node."""

    replicas: int
    is_protected: bool
    budget: tuple[str, str]
    allowed: int | None


def move_problems(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield a message for each move that is impossible or not allowed."""
    variants = {(variant.namespace, variant.name) for variant in snapshot.variants}
    lots = _lots(snapshot)
    moved: Counter[Place] = Counter()
    for move in plan.moves:
        moved[move.namespace, move.name, move.node, move.is_other] += move.replicas
        if not move.benefits or not set(move.benefits) <= variants:
            yield f"{move.name}: no variant gains room by this move"
    for place, replicas in sorted(moved.items()):
        lot = lots.get(place)
        if lot is None or replicas > lot.replicas:
            yield f"{place[1]}: there are no {replicas} to be evicted from node {place[2]}"
        elif lot.is_protected:
            yield f"{place[1]}: must not be moved"
    yield from _exceeded_disruption_budgets(snapshot, plan, lots, moved)


def _lots(snapshot: Snapshot) -> Mapping[Place, _MovablePods]:
    lots: dict[Place, _MovablePods] = {}
    for variant in snapshot.variants:
        for node, replicas in Counter(replica.node for replica in variant.replicas).items():
            if node is not None:
                lots[variant.namespace, variant.name, node, False] = _MovablePods(
                    replicas=replicas,
                    is_protected=variant.is_paused
                    or variant.pinned_replicas is not None
                    or not variant.may_be_preempted
                    or not variant.may_be_moved,
                    budget=(variant.namespace, variant.disruption_budget or f"variant {variant.name}"),
                    allowed=variant.evictable_replicas,
                )
    for host in snapshot.nodes:
        for pod in host.movable:
            lots[pod.namespace, pod.name, host.name, True] = _MovablePods(
                replicas=1,
                is_protected=False,
                budget=(pod.namespace, pod.disruption_budget or f"pod {pod.name}"),
                allowed=pod.evictable,
            )
    return lots


def _exceeded_disruption_budgets(
    snapshot: Snapshot, plan: Plan, lots: Mapping[Place, _MovablePods], moved: Counter[Place]
) -> Iterator[str]:
    """Yield a message for each disruption budget that evictions and stopped ready replicas exceed together.

    If pods report different allowances of a budget, the smallest applies. A budget without evictions is not
    checked: replicas that a model does not need may be stopped in any case.
    """
    allowed: dict[tuple[str, str], int] = {}
    for lot in lots.values():
        if lot.allowed is not None:
            allowed[lot.budget] = min(lot.allowed, allowed.get(lot.budget, lot.allowed))
    evicted: Counter[tuple[str, str]] = Counter()
    for place, replicas in moved.items():
        if place in lots:
            evicted[lots[place].budget] += replicas
    stopped = _stopped_by_budget(snapshot, plan)
    for budget, replicas in sorted(evicted.items()):
        if budget in allowed and replicas + stopped[budget] > allowed[budget]:
            beside = f" beside {stopped[budget]} stopped" if stopped[budget] else ""
            yield (
                f"disruption budget {'/'.join(budget)}: {replicas} evictions{beside},"
                f" {allowed[budget]} allowed"
            )


def _stopped_by_budget(snapshot: Snapshot, plan: Plan) -> Counter[tuple[str, str]]:
    """Return the number of ready replicas that the plan stops, by budget."""
    stays = {(decision.namespace, decision.name): decision.replicas for decision in plan.decisions}
    stopped: Counter[tuple[str, str]] = Counter()
    for variant in snapshot.variants:
        leaving = max(0, len(variant.replicas) - variant.current_replicas)
        ready = sum(replica.ready for replica in variant.replicas[leaving:])
        leaving_ready = max(0, ready - stays.get((variant.namespace, variant.name), ready))
        stopped[variant.namespace, variant.disruption_budget or f"variant {variant.name}"] += leaving_ready
    return stopped
