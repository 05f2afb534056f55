"""Build planning records from VariantAutoscalings with their targets, pods and HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from apiserver.kinds.autoscalers import Autoscaler
from apiserver.schema.json import Json
from controller.observe.classes import priority_of
from controller.observe.objectives import Objective
from controller.observe.orders import orders_of
from controller.observe.pods import ready_ordinals
from controller.observe.policies import Policies
from controller.observe.prices import Cost, accelerator_of
from controller.observe.replicas import ReportAge, replicas_of
from controller.observe.rules import NO_RULES, TargetRules
from controller.observe.scalers import RESTING, is_resting
from controller.observe.scheduling import node_affinity, require_labels, tolerations
from controller.observe.targets import Target
from controller.planning.ranges import MAX_COST
from controller.planning.snapshot import Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """The objects and settings with which a variant is read."""

    target: Target
    pods: tuple[Json, ...]
    """The target's present pods in removal order."""

    autoscalers: tuple[Autoscaler, ...]
    """Those that scale the target, the oldest first."""

    policies: Policies
    cost: Cost
    """Cost of one replica."""

    may_scale_to_zero: bool
    report_age: ReportAge

    disruption: tuple[str, int | None] = ("", None)
    """The PodDisruptionBudget of the pods, and its allowed evictions."""

    rules: TargetRules = NO_RULES
    objective: Objective | None = None
    """The most important InferenceObjective of the pods, if objectives apply."""

    stalled_replicas: int = 0
    """Replicas that have waited too long for a node."""


def variant_of(autoscaling: Json, around: Surroundings) -> Variant:
    """Return the record of one VariantAutoscaling (v1alpha2). Raises ValueError for numbers out of range."""
    metadata, spec = autoscaling["metadata"], autoscaling["spec"]
    target, template = around.target, around.target.pod_spec
    current_replicas = target.replicas
    low, high = _bounds(around.autoscalers, current_replicas)
    orders = orders_of(autoscaling)
    return Variant(
        namespace=metadata["namespace"],
        name=metadata["name"],
        model_id=spec["modelID"],
        accelerator=accelerator_of(autoscaling, template),
        accelerators_per_replica=target.accelerators_per_replica,
        cost_per_replica=_cost_of(autoscaling, around),
        current_replicas=current_replicas,
        replicas=replicas_of(target, around.pods, around.report_age),
        ready_ordinals=()
        if target.removes_unready_first
        else ready_ordinals(around.pods, target.first_ordinal),
        desired_replicas=_status(autoscaling, "desiredOptimizedAlloc").get("numReplicas"),
        min_replicas=low,
        max_replicas=high,
        may_scale_to_zero=around.may_scale_to_zero,
        priority=priority_of(autoscaling, around.policies, around.objective),
        node_selector=frozenset((template.get("nodeSelector") or {}).items()),
        node_affinity=require_labels(node_affinity(template), around.rules.node_labels),
        tolerations=tolerations(template),
        pinned_replicas=orders.pinned_replicas,
        is_paused=orders.is_paused,
        may_be_preempted=orders.may_be_preempted,
        disruption_budget=around.disruption[0],
        evictable_replicas=around.disruption[1],
        may_be_moved=target.may_move,
        pods_per_replica=target.pods_per_replica,
        together_in=target.together_in,
        rules=around.rules.planned,
        stalled_replicas=around.stalled_replicas,
    )


def _cost_of(autoscaling: Json, around: Surroundings) -> Decimal:
    """Return the cost of one replica. Raises ValueError, with its source, if no plan can contain it."""
    cost, source = around.cost
    if 0 <= cost <= MAX_COST:
        return cost
    field = "spec.variantCost" if source == "VariantCost" else "cost of one replica by unit costs"
    metadata = autoscaling["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    raise ValueError(f"{name}: {field}: must be between 0 and {MAX_COST}, was {cost}")


def _status(autoscaling: Json, name: str) -> Json:
    return (autoscaling.get("status") or {}).get(name) or {}


def why_unheeded(target: Target, autoscalers: Sequence[Autoscaler]) -> str:
    """Return why nothing scales a target, and what to do; empty if something does."""
    if not autoscalers:
        return (
            "no HorizontalPodAutoscaler targets it, so nothing scales it unless another client reads the"
            " metric"
        )
    return f"{autoscalers[0].shown} {RESTING}" if is_resting(autoscalers, target.replicas) else ""


def claim_of(owner: Json, other: Json) -> str:
    """Return the beginning of a sentence about a VariantAutoscaling that has a target before another one."""
    name, own, others = owner["metadata"]["name"], *(_creation_time(item) for item in (owner, other))
    if own != others:
        return f"VariantAutoscaling {name!r} is older and already decides on"
    return f"VariantAutoscaling {name!r}, whose name is first and whose age is the same, already decides on"


def _creation_time(autoscaling: Json) -> str:
    return autoscaling["metadata"].get("creationTimestamp") or ""


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
