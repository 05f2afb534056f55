"""Build the complete input of a decision from cached objects: pure functions without API calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse
from typing import Final

from apiserver.kinds.autoscalers import Autoscaler
from apiserver.kinds.following import Problem
from apiserver.kinds.identity import Key, key_of, seniority
from apiserver.schema.json import Json
from controller.engines.idleness import Idleness
from controller.observe.accelerators import accelerators_of, uncounted_resources
from controller.observe.actual_types import ActualTypes
from controller.observe.asks import Ask, binding_of, stand_ins, with_asks
from controller.observe.disruptions import Disruptions
from controller.observe.further_accelerators import NOTHING_FURTHER, FurtherAccelerators
from controller.observe.inventory import inventory, oversized_nodes
from controller.observe.karpenter import KarpenterPools, karpenter_pools
from controller.observe.leaving import leaving_order
from controller.observe.movable import lowest_priority, movable_pods
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.obstacles import Obstacles, malformation
from controller.observe.performance import facts_of
from controller.observe.pods import by_target, has_engine
from controller.observe.policies import Policies
from controller.observe.prices import CostSource, Reach, accelerator_of, effective_cost
from controller.observe.quotas import Tenant, limits
from controller.observe.replicas import ReportAge
from controller.observe.roles import roles_of_models
from controller.observe.rule_reading import Scene
from controller.observe.rules import pod_rules
from controller.observe.running import as_running
from controller.observe.scalers import VariantScalers, autoscalers_by_target
from controller.observe.targets import Target, TargetKey, scaled_by, target_of
from controller.observe.unplanned import Unplanned, unplanned_by, unplanned_target
from controller.observe.variants import Surroundings, variant_of, why_unheeded
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

    pools: tuple[NodePool, ...] = ()
    """Declared node pools; they take precedence over Karpenter's of the same name."""

    budgets: tuple[Budget, ...] = ()
    further: FurtherAccelerators = NOTHING_FURTHER
    """Accelerators in addition to those that planning knows."""

    steers_removal: bool = True
    """Whether the controller annotates which pods ReplicaSets should delete first."""

    unsteered: frozenset[str] = frozenset()
    """The namespaces in which it may not."""


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

    mistyped: Mapping[Key, str] = field(default_factory=dict)
    """How the declared accelerator of a variant contradicts its pods."""

    differences: Mapping[Key, str] = field(default_factory=dict)
    """What the pods of a variant have that their template lacks, and that was planned with."""

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
            models.setdefault(scaled_by(autoscaling), autoscaling["spec"]["modelID"])
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
    nodes = {node.name: node for node in inventory(world.nodes, world.pods, frozenset())}
    growth = _pools(world, terms, [*nodes.values()])
    terms = replace(terms, pools=growth.pools)
    reach = Reach([*nodes.values(), *map(node_to_come, terms.pools)])
    targets, unplannable, differences = _targets(world, groups)
    scene, types = Scene(world.nodes, targets, world.pods), ActualTypes(nodes.values())
    obstacles = _obstacles(world, targets, unplannable, asks)

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
            disruption=disruptions.of(pods),
            rules=pod_rules(target, accelerator, scene),
            objective=objectives.of(target, pods),
            stalled_replicas=stalled_replicas(pods, terms.pools, accelerator, now_seconds=now_seconds),
        )

    seen = _Seen(scalers=scalers, differences=differences, problems=[*growth.problems])
    for autoscaling in sorted((*world.autoscalings, *stand_ins(asks)), key=seniority):
        if (obstacle := obstacles.of(autoscaling, seen.claimed)) is not None:
            seen.unplanned[key_of(autoscaling)] = obstacle
        else:
            target = targets[scaled_by(autoscaling)]
            counted, problem = types.counted(autoscaling, target, groups)
            seen.mistyped |= {key_of(autoscaling): problem} if problem else {}
            _take(counted, seen, partial(around, counted, target))
    models = _models(seen.variants, idleness, terms, now_seconds=now_seconds) if may_scale_to_zero else ()
    floor = lowest_priority([*seen.pods.values()])
    claimed = frozenset(seen.claimed)
    movable = movable_pods(world.pods, claimed, disruptions, highest_priority=floor)
    filled = inventory(world.nodes, world.pods, claimed, movable, now_seconds=now_seconds)
    found = _gather(world, seen, models, terms, filled)
    return replace(found, snapshot=replace(with_asks(found.snapshot, asks), taken_seconds=now_seconds))


@dataclass(kw_only=True, slots=True)
class _Seen:
    """The results for the VariantAutoscalings processed so far, the oldest first."""

    scalers: VariantScalers
    differences: Mapping[TargetKey, str]
    mistyped: dict[Key, str] = field(default_factory=dict)
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


def _targets(
    world: World, groups: Mapping[TargetKey, tuple[Json, ...]]
) -> tuple[Mapping[TargetKey, Target], Mapping[TargetKey, Unplanned], Mapping[TargetKey, str]]:
    """Return the scale targets as their pods run, why some cannot be planned, and what templates lack."""
    found: dict[TargetKey, Target] = {}
    unplannable: dict[TargetKey, Unplanned] = {}
    differences: dict[TargetKey, str] = {}
    for key, value in world.targets.items():
        try:
            found[key], difference = as_running(target_of(key, value), groups.get(key, ()))
            differences |= {key: difference} if difference else {}
        except Exception as error:  # noqa: BLE001 (an error of one target must not affect others)
            unplannable[key] = unplanned_target(key, error)
    return found, unplannable, differences


def _obstacles(
    world: World,
    targets: Mapping[TargetKey, Target],
    unplannable: Mapping[TargetKey, Unplanned],
    asks: Sequence[Ask],
) -> Obstacles:
    return Obstacles(
        exist=world.targets.keys(),
        unread=world.unread,
        bound=world.bound,
        unplannable=unplannable,
        bound_models=frozenset((ask.key[0], ask.model) for ask in asks),
        roles=roles_of_models(filterfalse(malformation, world.autoscalings), targets),
    )


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
    is_steered = terms.steers_removal and target.is_steerable and target.key.namespace not in terms.unsteered
    return leaving_order(pods, nodes) if is_steered else pods


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
    if names := uncounted_resources(target.pod_spec):
        seen.problems.append(
            f"the pods of VariantAutoscaling {'/'.join(key)} request {', '.join(names)}, which planning does"
            " not count: no node limits its replicas; add the accelerators among them to"
            " accelerators.resources of the controller's configuration"
        )
    seen.unheeded |= {key: why} if why else {}


def _gather(
    world: World, seen: _Seen, models: tuple[Model, ...], terms: Terms, nodes: tuple[Node, ...]
) -> Gathered:
    bounds = limits(
        world.quotas, seen.tenants, world.pods, frozenset(seen.claimed), resources=terms.further.names
    )
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
        mistyped=seen.mistyped,
        differences={
            key: text for key, item in seen.targets.items() if (text := seen.differences.get(item.key))
        },
        autoscalers=seen.autoscalers,
        problems=(*bounds.problems, *oversized_nodes(world.nodes), *seen.problems),
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
