"""From a VariantAutoscaling, its target, pods and HorizontalPodAutoscaler to a record for planning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.schema.json import Json
from controller.observe.accelerators import normalised, product_of
from controller.observe.conditions import ConditionReason, Finding
from controller.observe.orders import orders_of
from controller.observe.pods import has_engine
from controller.observe.policies import Policies, service_class
from controller.observe.replicas import ReportAge, replicas_of
from controller.observe.rules import NO_RULES, PodRules
from controller.observe.scheduling import labelled, node_affinity, tolerations
from controller.observe.targets import Target
from controller.planning.snapshot import (
    LOWEST_PRIORITY,
    Variant,
)

CostSource = Literal["VariantCost", "UnitCost", "Default"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a variant is read together with."""

    target: Target
    pods: tuple[Json, ...]
    """The target's present pods in the order in which they are to go."""

    autoscaler: Json | None
    policies: Policies
    may_scale_to_zero: bool
    report_age: ReportAge

    held_since_seconds: float | None
    """Pods that started later must not go yet, in seconds since 1970; None where all may."""

    disruption: tuple[str, int | None] = ("", None)
    """The PodDisruptionBudget that the pods are under, and how many evictions it allows."""

    rules: PodRules = NO_RULES


def variant_of(autoscaling: Json, around: Surroundings) -> Variant:
    """Return the record of one VariantAutoscaling (v1alpha2). Raises ValueError for numbers beyond bounds."""
    metadata, spec = autoscaling["metadata"], autoscaling["spec"]
    target, template = around.target, around.target.pod_spec
    current_replicas = target.replicas
    low, high = _bounds(around.autoscaler, current_replicas)
    orders = orders_of(autoscaling)
    return Variant(
        namespace=metadata["namespace"],
        name=metadata["name"],
        model_id=spec["modelID"],
        accelerator=accelerator_of(autoscaling, template),
        accelerators_per_replica=target.accelerators_per_replica,
        cost_per_replica=effective_cost(autoscaling, target, around.policies)[0],
        current_replicas=current_replicas,
        replicas=replicas_of(target, around.pods, around.report_age),
        desired_replicas=_status(autoscaling, "desiredOptimizedAlloc").get("numReplicas"),
        min_replicas=low,
        max_replicas=high,
        may_scale_to_zero=around.may_scale_to_zero,
        priority=priority_of(autoscaling, around.policies),
        node_selector=frozenset((template.get("nodeSelector") or {}).items()),
        node_affinity=labelled(node_affinity(template), around.rules.node_labels),
        tolerations=tolerations(template),
        pinned_replicas=orders.pinned_replicas,
        is_paused=orders.is_paused,
        may_be_preempted=orders.may_be_preempted,
        held_replicas=_held(around),
        disruption_budget=around.disruption[0],
        evictable_replicas=around.disruption[1],
        may_be_moved=target.may_move,
        pods_per_replica=target.pods_per_replica,
        together_in=target.together_in,
        spread=around.rules.spread,
        most_per_node=around.rules.most_per_node,
    )


def accelerator_of(autoscaling: Json, template: Json) -> str:
    """Return the normalised type: from the spec, else the label, else what the pods select; else nothing."""
    labels = autoscaling["metadata"].get("labels") or {}
    named = autoscaling["spec"].get("accelerator") or labels.get(ACCELERATOR_LABEL)
    return normalised(named) if named else product_of(template.get("nodeSelector") or {})


def effective_cost(autoscaling: Json, target: Target, policies: Policies) -> tuple[Decimal, CostSource]:
    """Return the cost of one replica and where it comes from: the spec, else the unit cost, else 10.0."""
    spec = autoscaling["spec"]
    if "variantCost" in spec:
        return Decimal(spec["variantCost"]), "VariantCost"
    unit = policies.unit_costs.get(accelerator_of(autoscaling, target.pod_spec))
    if unit is None:
        return Decimal(DEFAULT_COST), "Default"
    return unit * (spec.get("acceleratorCount") or target.accelerators_per_replica or 1), "UnitCost"


def class_finding(autoscaling: Json, policies: Policies) -> Finding:
    """Return whether the service class is what the author meant, and a reason and a sentence that say so."""
    spec = autoscaling["spec"]
    reference = spec.get("sloClassRef")
    found = service_class(policies, reference, spec["modelID"])
    lowest = f"priority {LOWEST_PRIORITY}, the lowest"
    if found is not None:
        return True, ConditionReason.CLASS_FOUND, f"service class {found.name!r}, priority {found.priority}"
    if reference is None:
        return True, ConditionReason.NO_CLASS, f"no service class lists the model: {lowest}"
    where = f"ConfigMap {reference['name']!r} of Stowplan's namespace holds no service class under"
    return False, ConditionReason.CLASS_NOT_FOUND, f"{where} {reference['key']!r}: {lowest}"


def priority_of(autoscaling: Json, policies: Policies) -> int:
    """Return the priority of the service class: 1 is served first; without a class it is the lowest."""
    spec = autoscaling["spec"]
    found = service_class(policies, spec.get("sloClassRef"), spec["modelID"])
    return found.priority if found else LOWEST_PRIORITY


def _status(autoscaling: Json, name: str) -> Json:
    return (autoscaling.get("status") or {}).get(name) or {}


def is_switched_off(autoscaler: Json) -> bool:
    """Tell whether an autoscaler does nothing because somebody else set its target to zero replicas.

    It only scales up from zero what it scaled to zero itself. Source:
    `shouldComputeMetricsForZeroReplicas` in `k8s.io/kubernetes/pkg/controller/podautoscaler/horizontal.go`.
    """
    conditions = (autoscaler.get("status") or {}).get("conditions") or []
    return any(
        (item["type"], item["status"], item.get("reason")) == ("ScalingActive", "False", "ScalingDisabled")
        for item in conditions
    )


def _bounds(autoscaler: Json | None, current_replicas: int) -> tuple[int, int | None]:
    if autoscaler is None:
        return 0, None
    if current_replicas == 0 and is_switched_off(autoscaler):
        return 0, 0  # a plan must not count on replicas that will never come
    low = autoscaler["spec"].get("minReplicas")
    return (1 if low is None else int(low)), int(autoscaler["spec"]["maxReplicas"])


def _held(around: Surroundings) -> int:
    """Return how many replicas started only a while ago; one that waits for a node has not started."""
    if around.held_since_seconds is None:
        return 0
    starts = [(pod.get("status") or {}).get("startTime") for pod in around.pods if has_engine(pod)]
    moments = [datetime.fromisoformat(text).timestamp() for text in starts if text]
    return sum(moment > around.held_since_seconds for moment in moments)
