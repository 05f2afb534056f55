"""What was found about one variant, as the input of planning, statuses and placement. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from apiserver.kinds.annotated import VARIANT_COST
from apiserver.kinds.autoscalers import Autoscaler
from apiserver.kinds.following import Problem
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.claim import Claim, Exclusion
from controller.observe.classes import class_finding, priority_of
from controller.observe.conditions import Finding
from controller.observe.movable import Disruptions
from controller.observe.objectives import Objective, Objectives
from controller.observe.performance import facts_of
from controller.observe.pods import ready_ordinals
from controller.observe.policies import Policies
from controller.observe.prices import (
    Cost,
    ReachableTypes,
    accelerator_of,
    cost_refusal,
    effective_cost,
    price_finding,
)
from controller.observe.removal_order import leaving_order
from controller.observe.replicas import ReportAge, replicas_of, stalled_replicas
from controller.observe.rules import NO_RULES, Scene, TargetRules, pod_rules
from controller.observe.running_targets import with_type
from controller.observe.scalers import RESTING, VariantScalers, is_resting
from controller.observe.scheduling import node_affinity, require_labels, tolerations
from controller.observe.targets import ScaleTarget, TargetKey, planned_model, role_of
from controller.planning.cluster import Node, NodePool
from controller.planning.ranges import MAX_COST
from controller.planning.snapshot import Variant
from controller.sizing.records import VariantFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedVariant:
    """One planned variant."""

    claim: Claim
    target: ScaleTarget
    """The scale target as its pods run."""

    accelerator: str
    """The type that is counted; empty if unknown."""

    cost: Cost
    facts: VariantFacts
    role: str = ""
    """The role of the pods in a disaggregated pair; empty if they serve requests alone."""

    pods: tuple[Json, ...] = ()
    """Present pods in removal order."""

    autoscalers: tuple[Autoscaler, ...] = ()
    """Those that scale the target, the oldest first."""

    objective: Objective | None = None
    """The most important InferenceObjective of the pods, if objectives apply."""

    disruption: tuple[str, int | None] = ("", None)
    """The PodDisruptionBudget of the pods, and its allowed evictions."""

    rules: TargetRules = NO_RULES
    stalled_replicas: int = 0
    """Replicas that have waited too long for a node."""

    service_class: Finding
    """Whether the service class was found, with a reason and a message."""

    unpriced: str = ""
    """Why its own cost is not used; empty if it is, or there is none."""

    unlisted: str = ""
    """What is wrong with the listed price; empty if nothing is, or if it does not apply."""

    narrowing: str = ""
    """Which bounds of its owner and of its autoscaler apply; empty if they agree."""

    unheeded: str = ""
    """Why nothing acts on the decision, and what to do about it; empty if something does."""

    misread: tuple[Problem, ...] = ()
    """Why autoscalers of the target do not follow the decision as it is meant."""

    mistyped: str = ""
    """How the declared accelerator contradicts the pods; empty if it does not."""

    @property
    def model(self) -> Key:
        """Namespace and name of the model as it is planned: pods of different roles are apart."""
        return self.claim.owner.namespace, planned_model(self.claim.model_id, self.role)


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservationContext:
    """The objects and settings with which all variants are observed."""

    policies: Policies
    objectives: Objectives
    targets: Mapping[TargetKey, ScaleTarget | Exclusion]
    """All scale targets as their pods run, or why they cannot be planned."""

    pods: Mapping[TargetKey, tuple[Json, ...]]
    scalers: VariantScalers
    nodes: Mapping[str, Node]
    """By name; all of their pods count as used by others."""

    pools: tuple[NodePool, ...]
    reach: ReachableTypes
    disruptions: Disruptions
    scene: Scene
    is_steered: Callable[[ScaleTarget], bool]
    """Tells whether the removal order of a target's pods can be influenced."""

    now_seconds: float

    def observe(self, claim: Claim, target: ScaleTarget) -> ObservedVariant:
        """Return what was found about a claim and its target."""
        present = self.pods.get(target.key, ())
        counted, mistyped = with_type(claim, target, present, self.nodes)
        accelerator = accelerator_of(counted, target.pod_spec)
        reach = partial(self.reach.of, target.pod_spec, present)
        cost = effective_cost(counted, target, self.policies, reach)
        pods = leaving_order(present, self.nodes) if self.is_steered(target) else present
        objective, autoscalers = self.objectives.of(target, pods), self.scalers.of(target.key)
        role = "" if claim.is_bound else role_of(target)
        return ObservedVariant(
            claim=claim,
            target=target,
            accelerator=accelerator,
            cost=cost,
            facts=facts_of(claim, target, role, pods, self.policies),
            role=role,
            pods=pods,
            autoscalers=autoscalers,
            objective=objective,
            disruption=self.disruptions.of(present),
            rules=pod_rules(target, accelerator, self.scene),
            stalled_replicas=stalled_replicas(present, self.pools, accelerator, now_seconds=self.now_seconds),
            service_class=class_finding(claim, self.policies, objective),
            unpriced=cost_refusal(claim, self.policies),
            unlisted=price_finding(accelerator, self.policies, cost[1]),
            unheeded=_why_unheeded(target, autoscalers),
            narrowing=_bounds_text(claim, autoscalers),
            misread=self.scalers.problems(claim.key, target.key),
            mistyped=mistyped,
        )


def _why_unheeded(target: ScaleTarget, autoscalers: Sequence[Autoscaler]) -> str:
    if not autoscalers:
        return (
            "no HorizontalPodAutoscaler targets it, so nothing scales it unless another client reads the"
            " metric"
        )
    return f"{autoscalers[0].display_name} {RESTING}" if is_resting(autoscalers, target.replicas) else ""


def variant_of(
    item: ObservedVariant, *, policies: Policies, report_age: ReportAge, may_scale_to_zero: bool
) -> Variant:
    """Return the record of one variant. Raises ValueError for numbers out of range."""
    claim, target, template = item.claim, item.target, item.target.pod_spec
    low, high = _bounds(item)
    return Variant(
        namespace=claim.owner.namespace,
        name=claim.name,
        model_id=item.model[1],
        role=item.role,
        pair=claim.model_id if item.role else "",
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
        may_scale_to_zero=claim.may_scale_to_zero or may_scale_to_zero,
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


def _cost_of(item: ObservedVariant) -> Decimal:
    """Return the cost of one replica. Raises ValueError, with its source, if no plan can contain it."""
    cost, source = item.cost
    if 0 <= cost <= MAX_COST:
        return cost
    own_field = f"metadata.annotations[{VARIANT_COST}]" if item.claim.is_annotated else "spec.variantCost"
    field = own_field if source == "VariantCost" else "cost of one replica by unit costs"
    name = "/".join(item.claim.key)
    raise ValueError(f"{name}: {field}: must be between 0 and {MAX_COST}, was {cost}")


def _bounds(item: ObservedVariant) -> tuple[int, int | None]:
    """Return the least and most replicas: by a policy those of its binding, else the narrower ones."""
    by_autoscalers = _bounds_of(item.autoscalers, item.target.replicas)
    return item.claim.bounds if item.claim.is_bound else _narrower(item.claim.bounds, by_autoscalers)


def _narrower(first: tuple[int, int | None], second: tuple[int, int | None]) -> tuple[int, int | None]:
    """Return the bounds that keep within both; where they exclude each other, the lower maximum counts."""
    most = [number for _, number in (first, second) if number is not None]
    return min((max(first[0], second[0]), *most)), min(most, default=None)


def _bounds_text(claim: Claim, autoscalers: Sequence[Autoscaler]) -> str:
    """Return which bounds of a claim and of its autoscaler apply, in words; empty if they agree."""
    if claim.is_bound or not autoscalers:
        return ""
    (own_low, own_high), first = claim.bounds, autoscalers[0]
    low, high = _narrower(claim.bounds, (first.min_replicas, first.max_replicas))
    differing = []
    if own_low and own_low != first.min_replicas:
        differing.append(f"minimum {low}")
    if own_high is not None and own_high != first.max_replicas:
        differing.append(f"maximum {high}")
    if not differing:
        return ""
    narrower = " and ".join(differing)
    return f"of the bounds of this object and of {first.display_name}, the narrower apply: {narrower}"


def _bounds_of(autoscalers: Sequence[Autoscaler], current_replicas: int) -> tuple[int, int | None]:
    if not autoscalers:
        return 0, None
    if is_resting(autoscalers, current_replicas):
        return 0, 0  # a plan must not rely on replicas that will never start
    first = autoscalers[0]
    low, high = first.min_replicas, first.max_replicas
    if high < low:
        suffix = "ReplicaCount" if first.scaled_object else "Replicas"
        raise ValueError(
            f"{first.display_name}: spec.max{suffix} must be at least spec.min{suffix} ({low}), was {high}"
        )
    return low, high
