"""Build the complete input of a decision from cached objects: pure functions without API calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from apiserver.kinds.autoscalers import Autoscaler
from apiserver.kinds.following import Problem
from apiserver.kinds.llmd.v1alpha2 import VariantAutoscaling
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.accelerators import RESOURCE_NAMES, accelerators_of, uncounted
from controller.observe.asks import Ask, binding_of, stand_ins, with_asks
from controller.observe.conditions import ConditionReason
from controller.observe.disruptions import Disruptions
from controller.observe.identity import Key, key_of, seniority
from controller.observe.idleness import Idleness
from controller.observe.inventory import inventory, oversized
from controller.observe.karpenter import KarpenterPools, karpenter_pools
from controller.observe.leaving import leaving_order
from controller.observe.movable import lowest_priority, movable_pods
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.performance import facts_of
from controller.observe.pods import by_target, has_engine
from controller.observe.policies import Policies
from controller.observe.prices import CostSource, Reach, accelerator_of, effective_cost
from controller.observe.quotas import Tenant, limits
from controller.observe.replicas import ReportAge
from controller.observe.rule_reading import Scene
from controller.observe.rules import pod_rules
from controller.observe.scalers import VariantScalers, autoscalers_by_target
from controller.observe.targets import Target, TargetKey, TargetKind, target_key, target_of
from controller.observe.unplanned import Unplanned, unplanned_by, unplanned_target
from controller.observe.variants import Surroundings, claim_of, variant_of, why_unheeded
from controller.observe.waiting import stalled_replicas
from controller.planning.cluster import Budget, Node, NodePool
from controller.planning.inventory import growing, node_to_come
from controller.planning.snapshot import Model, Snapshot, Variant
from controller.sizing.records import VariantFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Kubernetes objects as the caches held them at one moment."""

    autoscalings: Sequence[Json]
    targets: Mapping[TargetKey, Json]
    """All objects of the plannable kinds, whether or not anything scales them."""

    pods: Sequence[Json]
    nodes: Sequence[Json]
    autoscalers: Sequence[Json]
    scaled_objects: Sequence[Json] = ()
    """ScaledObjects of KEDA; empty if they cannot be read."""

    quotas: Sequence[Json] = ()
    """ResourceQuotas; empty if they cannot be read."""

    node_pools: Sequence[Json] = ()
    """Karpenter's NodePools; empty without Karpenter."""

    disruption_budgets: Sequence[Json] = ()
    """PodDisruptionBudgets; empty if they cannot be read."""

    unread: Mapping[TargetKey, str] = field(default_factory=dict)
    """Why targets that are known only by their scale could not be read, one sentence each."""

    bound: Mapping[TargetKey, tuple[str, Key]] = field(default_factory=dict)
    """Targets of AutoscalingPolicyBindings, with creation timestamp and key of the oldest binding that claims
    each.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """User settings for all variants together."""

    grace_seconds: float = 0.0
    """How long a model without requests keeps its last replica, in seconds, if it may scale to zero."""

    minimum_hold_seconds: float = 0.0
    """How long a started replica is kept, whatever the demand, in seconds."""

    pools: tuple[NodePool, ...] = ()
    """Declared node pools; they take precedence over Karpenter's of the same name."""

    budgets: tuple[Budget, ...] = ()
    steers_removal: bool = True
    """Whether the controller annotates which pods ReplicaSets should delete first."""


NEVER_WATCHED: Final = Idleness()
"""No activity of engines observed yet."""

NO_TERMS: Final = Terms()
"""The default settings."""


def never_asked(_: Key) -> float | None:
    """Return None: no engine ever responded, because none was queried."""
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """The snapshot, and by VariantAutoscaling what is not part of it and which decisions take no effect."""

    snapshot: Snapshot
    unplanned: Mapping[Key, Unplanned] = field(default_factory=dict)
    unheeded: Mapping[Key, str] = field(default_factory=dict)
    """Why a decision for a variant takes no effect, and what to do about it."""

    misread: Mapping[Key, tuple[Problem, ...]] = field(default_factory=dict)
    """Why the autoscalers of a variant do not follow its decision."""

    autoscalers: Mapping[Key, tuple[Autoscaler, ...]] = field(default_factory=dict)
    """The autoscalers of each planned VariantAutoscaling, the oldest first."""

    problems: tuple[str, ...] = ()
    """Parts of the cluster that could not be planned with, one sentence each."""

    pods: Mapping[Key, tuple[Json, ...]] = field(default_factory=dict)
    """Pods of each planned VariantAutoscaling, in removal order."""

    targets: Mapping[Key, Target] = field(default_factory=dict)
    """Target of each planned VariantAutoscaling."""

    cost_sources: Mapping[Key, CostSource] = field(default_factory=dict)
    """Source of the cost of each planned VariantAutoscaling."""

    facts: Mapping[Key, VariantFacts] = field(default_factory=dict)
    """Facts that sizing needs about each planned VariantAutoscaling."""

    doubts: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)
    """Facts that could not be read, in sentences."""


def models_by_target(world: World) -> Mapping[TargetKey, str]:
    """Return the model of each claimed target, according to the oldest claim."""
    models: dict[TargetKey, str] = {}
    for autoscaling in sorted(world.autoscalings, key=seniority):
        if not malformation(autoscaling):
            models.setdefault(_target(autoscaling), autoscaling["spec"]["modelID"])
    return models


def engine_pods(world: World) -> tuple[tuple[Json, str], ...]:
    """Return the pods of the scale targets that run an engine, ready or not, each with its model."""
    groups, models = by_target(world.pods), sorted(models_by_target(world).items())
    return tuple((pod, model) for key, model in models for pod in groups.get(key, ()) if has_engine(pod))


def gather(
    world: World,
    *,
    policies: Policies,
    report_age: ReportAge = never_asked,
    now_seconds: float,
    may_scale_to_zero: bool,
    idleness: Idleness = NEVER_WATCHED,
    terms: Terms = NO_TERMS,
    asks: Sequence[Ask] = (),
    objectives: Objectives = NO_OBJECTIVES,
) -> Gathered:
    """Return the current snapshot; each VariantAutoscaling is in it, or in `unplanned`.

    The same holds for each target of the bindings that are planned with them.
    """
    groups, disruptions = by_target(world.pods), Disruptions(world.disruption_budgets)
    scalers = _scalers(world)
    hold_seconds = terms.minimum_hold_seconds
    nodes = {node.name: node for node in inventory(world.nodes, world.pods, frozenset())}
    growth = _pools(world, terms, [*nodes.values()])
    terms = replace(terms, pools=growth.pools)
    reach = Reach([*nodes.values(), *map(node_to_come, terms.pools)])
    targets, unplannable = _targets(world)
    scene = Scene(world.nodes, targets, world.pods)

    def around(autoscaling: Json, target: Target) -> Surroundings:
        pods, accelerator = groups.get(target.key, ()), accelerator_of(autoscaling, target.pod_spec)
        return Surroundings(
            target=target,
            pods=_in_order(target, pods, nodes, terms),
            autoscalers=scalers.of(target.key),
            policies=policies,
            cost=effective_cost(autoscaling, target, policies, partial(reach.of, target.pod_spec, pods)),
            may_scale_to_zero=may_scale_to_zero,
            report_age=report_age,
            held_since_seconds=now_seconds - hold_seconds if hold_seconds else None,
            disruption=disruptions.of(pods),
            rules=pod_rules(target, accelerator, scene),
            objective=objectives.of(target, pods),
            stalled_replicas=stalled_replicas(pods, terms.pools, accelerator, now_seconds=now_seconds),
        )

    seen = _Seen(scalers=scalers, problems=[*growth.problems])
    bound_models = {(ask.key[0], ask.model) for ask in asks}
    for autoscaling in sorted((*world.autoscalings, *stand_ins(asks)), key=seniority):
        obstacle = malformation(autoscaling) or _impostor(autoscaling, bound_models)
        obstacle = obstacle or _obstacle(autoscaling, world, seen.claimed, unplannable)
        if obstacle is not None:
            seen.unplanned[key_of(autoscaling)] = obstacle
        else:
            _take(autoscaling, seen, partial(around, autoscaling, targets[_target(autoscaling)]))
    models = _models(seen.variants, idleness, terms, now_seconds=now_seconds) if may_scale_to_zero else ()
    floor = lowest_priority([*seen.pods.values()])
    claimed = frozenset(seen.claimed)
    movable = movable_pods(world.pods, claimed, disruptions, highest_priority=floor)
    filled = inventory(world.nodes, world.pods, claimed, movable, now_seconds=now_seconds)
    found = _gathered(world, seen, models, terms, filled)
    return replace(found, snapshot=replace(with_asks(found.snapshot, asks), taken_seconds=now_seconds))


@dataclass(kw_only=True, slots=True)
class _Seen:
    """The results for the VariantAutoscalings processed so far, the oldest first."""

    scalers: VariantScalers
    variants: list[Variant] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)
    claimed: dict[TargetKey, Json] = field(default_factory=dict)
    unplanned: dict[Key, Unplanned] = field(default_factory=dict)
    unheeded: dict[Key, str] = field(default_factory=dict)
    misread: dict[Key, tuple[Problem, ...]] = field(default_factory=dict)
    autoscalers: dict[Key, tuple[Autoscaler, ...]] = field(default_factory=dict)
    pods: dict[Key, tuple[Json, ...]] = field(default_factory=dict)
    targets: dict[Key, Target] = field(default_factory=dict)
    cost_sources: dict[Key, CostSource] = field(default_factory=dict)
    facts: dict[Key, VariantFacts] = field(default_factory=dict)
    doubts: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def _targets(world: World) -> tuple[Mapping[TargetKey, Target], Mapping[TargetKey, Unplanned]]:
    """Return the scale targets, and why some of them cannot be planned."""
    found: dict[TargetKey, Target] = {}
    unplannable: dict[TargetKey, Unplanned] = {}
    for key, value in world.targets.items():
        try:
            found[key] = target_of(key, value)
        except Exception as error:  # noqa: BLE001 (an error of one target must not affect others)
            unplannable[key] = unplanned_target(key, error)
    return found, unplannable


def _scalers(world: World) -> VariantScalers:
    known = autoscalers_by_target(world.autoscalers, world.scaled_objects)
    return VariantScalers(world.autoscalings, known)


def _pools(world: World, terms: Terms, nodes: Sequence[Node]) -> KarpenterPools:
    """Return the declared pools as they can still grow, and Karpenter's that are not declared."""
    found = karpenter_pools(world.node_pools, world.nodes)
    declared = {pool.name for pool in terms.pools}
    own_pools = (growing(pool, nodes) for pool in terms.pools)
    others = (pool for pool in found.pools if pool.name not in declared)
    return replace(found, pools=(*own_pools, *others))


def _in_order(
    target: Target, pods: tuple[Json, ...], nodes: Mapping[str, Node], terms: Terms
) -> tuple[Json, ...]:
    return leaving_order(pods, nodes) if terms.steers_removal and target.is_steerable else pods


def _take(autoscaling: Json, seen: _Seen, surroundings: Callable[[], Surroundings]) -> None:
    key = key_of(autoscaling)
    try:
        around = surroundings()
        variant, target = variant_of(autoscaling, around), around.target
        tenant, why = _tenant(variant, around), why_unheeded(target, around.autoscalers)
        misread = seen.scalers.problems(autoscaling, target.key)
        facts, doubts = facts_of(autoscaling, target, around.pods, around.policies)
    except Exception as error:  # noqa: BLE001 (an error of one object must not affect others)
        seen.unplanned[key] = unplanned_by(error)
        return
    seen.variants.append(variant)
    seen.tenants.append(tenant)
    seen.claimed[target.key] = autoscaling
    seen.pods[key], seen.targets[key], seen.cost_sources[key] = around.pods, target, around.cost[1]
    seen.facts[key], seen.doubts[key] = facts, doubts
    seen.misread[key], seen.autoscalers[key] = misread, around.autoscalers
    seen.problems += around.rules.problems
    if names := uncounted(target.pod_spec):
        seen.problems.append(
            f"the pods of VariantAutoscaling {'/'.join(key)} request {', '.join(names)}, which planning does"
            f" not count: no node limits its replicas; planning counts {', '.join(RESOURCE_NAMES)}"
        )
    seen.unheeded |= {key: why} if why else {}


def _gathered(
    world: World, seen: _Seen, models: tuple[Model, ...], terms: Terms, nodes: tuple[Node, ...]
) -> Gathered:
    bounds = limits(world.quotas, seen.tenants, world.pods, frozenset(seen.claimed))
    snapshot = Snapshot(
        nodes=nodes,
        variants=tuple(seen.variants),
        models=models,
        pools=terms.pools,
        quotas=bounds.quotas,
        budgets=terms.budgets,
    )
    return Gathered(
        snapshot=snapshot,
        unplanned=seen.unplanned,
        unheeded=seen.unheeded,
        misread=seen.misread,
        autoscalers=seen.autoscalers,
        problems=(*bounds.problems, *oversized(world.nodes), *seen.problems),
        pods=seen.pods,
        targets=seen.targets,
        cost_sources=seen.cost_sources,
        facts=seen.facts,
        doubts=seen.doubts,
    )


def _tenant(variant: Variant, around: Surroundings) -> Tenant:
    specs = (pod["spec"] for pod in around.pods)
    pod_spec = next((spec for spec in specs if accelerators_of(spec)), around.target.pod_spec)
    return Tenant(namespace=variant.namespace, accelerator=variant.accelerator, pod_spec=pod_spec)


def _models(
    variants: Sequence[Variant], idleness: Idleness, terms: Terms, *, now_seconds: float
) -> tuple[Model, ...]:
    """Return how long each model that may lose its last replica has been idle.

    A model without replicas is left out, because its grace period must not start a replica.
    """
    # A policy has its own grace period.
    own = [item for item in variants if binding_of(*item.key) is None]
    models = sorted({(item.namespace, item.model_id) for item in own if item.current_replicas})
    return tuple(
        Model(
            namespace=model[0],
            model_id=model[1],
            idle_seconds=idleness.idle_seconds(model, now_seconds=now_seconds),
            grace_seconds=terms.grace_seconds,
        )
        for model in models
    )


def malformation(autoscaling: Json) -> Unplanned | None:
    """Return why an object is invalid: it was stored before admission was installed, or bypassed it."""
    found = validate(VariantAutoscaling, {"spec": autoscaling.get("spec")})
    return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=str(found[0])) if found else None


def _impostor(autoscaling: Json, bound_models: AbstractSet[Key]) -> Unplanned | None:
    """Return why a variant cannot be planned if its model ID equals that of a planned binding."""
    namespace, name = key_of(autoscaling)
    model_id = autoscaling["spec"]["modelID"]
    if binding_of(namespace, name) or (namespace, model_id) not in bound_models:
        return None
    text = f"modelID {model_id!r} is the name of an AutoscalingPolicyBinding in plans: choose another one"
    return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=text)


def _obstacle(
    autoscaling: Json,
    world: World,
    claimed: Mapping[TargetKey, Json],
    unplannable: Mapping[TargetKey, Unplanned],
) -> Unplanned | None:
    target = _target(autoscaling)
    if target not in world.targets and target.kind is TargetKind.SCALED:
        why = world.unread.get(target, "its scale was not read: see docs/targets.md")
        return Unplanned(
            reason=ConditionReason.TARGET_NOT_SUPPORTED,
            message=f"{target.called} {target.name!r} cannot be planned: {why}",
        )
    if target not in world.targets:
        text = f"{target.called} {target.name!r} does not exist in namespace {target.namespace!r}"
        return Unplanned(reason=ConditionReason.TARGET_NOT_FOUND, message=text)
    bound = world.bound.get(target)
    # At equal age the binding takes precedence, consistent with the reader of bindings.
    is_own = bound is not None and bound[1] == binding_of(*key_of(autoscaling))
    if bound is not None and not is_own and bound[0] <= seniority(autoscaling)[0]:
        text = (
            f"AutoscalingPolicyBinding {bound[1][1]!r} is older and already decides on {target.called}"
            f" {target.name!r}; delete one of the two"
        )
        return Unplanned(reason=ConditionReason.TARGET_CLAIMED, message=text)
    if target in claimed:
        claim = claim_of(claimed[target], autoscaling)
        text = f"{claim} {target.called} {target.name!r}; delete one of the two"
        return Unplanned(reason=ConditionReason.TARGET_CLAIMED, message=text)
    return unplannable.get(target)


def _target(autoscaling: Json) -> TargetKey:
    return target_key(autoscaling["metadata"]["namespace"], autoscaling["spec"]["scaleTargetRef"])
