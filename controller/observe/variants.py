"""Build the planning record of a variant from what was found about it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from apiserver.kinds.autoscalers import Autoscaler
from controller.observe.classes import priority_of
from controller.observe.observed import Observed
from controller.observe.pods import ready_ordinals
from controller.observe.policies import Policies
from controller.observe.replicas import ReportAge, replicas_of
from controller.observe.scalers import is_resting
from controller.observe.scheduling import node_affinity, require_labels, tolerations
from controller.planning.ranges import MAX_COST
from controller.planning.snapshot import Variant


def variant_of(
    item: Observed, *, policies: Policies, report_age: ReportAge, may_scale_to_zero: bool
) -> Variant:
    """Return the record of one variant. Raises ValueError for numbers out of range."""
    claim, target, template = item.claim, item.target, item.target.pod_spec
    bounds = _bounds(item.autoscalers, target.replicas)
    low, high = claim.bounds or bounds
    return Variant(
        namespace=claim.owner.namespace,
        name=claim.name,
        model_id=claim.model_id,
        accelerator=item.accelerator,
        accelerators_per_replica=target.accelerators_per_replica,
        cost_per_replica=_cost_of(item),
        current_replicas=target.replicas,
        replicas=replicas_of(target, item.pods, report_age),
        ready_ordinals=()
        if target.removes_unready_first
        else ready_ordinals(item.pods, target.first_ordinal),
        desired_replicas=claim.published_replicas,
        min_replicas=low,
        max_replicas=high,
        may_scale_to_zero=claim.is_bound or may_scale_to_zero,
        priority=priority_of(claim, policies, item.objective),
        node_selector=frozenset((template.get("nodeSelector") or {}).items()),
        node_affinity=require_labels(node_affinity(template), item.rules.node_labels),
        tolerations=tolerations(template),
        pinned_replicas=claim.orders.pinned_replicas,
        is_paused=claim.orders.is_paused,
        may_be_preempted=claim.orders.may_be_preempted,
        capacity=claim.capacity,
        disruption_budget=item.disruption[0],
        evictable_replicas=item.disruption[1],
        may_be_moved=target.may_move,
        pods_per_replica=target.pods_per_replica,
        together_in=target.together_in,
        rules=item.rules.planned,
        stalled_replicas=item.stalled_replicas,
    )


def _cost_of(item: Observed) -> Decimal:
    """Return the cost of one replica. Raises ValueError, with its source, if no plan can contain it."""
    cost, source = item.cost
    if 0 <= cost <= MAX_COST:
        return cost
    field = "spec.variantCost" if source == "VariantCost" else "cost of one replica by unit costs"
    name = "/".join(item.claim.key)
    raise ValueError(f"{name}: {field}: must be between 0 and {MAX_COST}, was {cost}")


def _bounds(autoscalers: Sequence[Autoscaler], current_replicas: int) -> tuple[int, int | None]:
    if not autoscalers:
        return 0, None
    if is_resting(autoscalers, current_replicas):
        return 0, 0  # a plan must not rely on replicas that will never start
    first = autoscalers[0]
    low, high = first.min_replicas, first.max_replicas
    if high < low:
        suffix = "ReplicaCount" if first.scaled_object else "Replicas"
        raise ValueError(
            f"{first.shown}: spec.max{suffix} must be at least spec.min{suffix} ({low}), was {high}"
        )
    return low, high
