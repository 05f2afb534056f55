"""Build the complete input of a decision from cached objects: pure functions without API calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Final

from apiserver.kinds.annotations import PREFILL_PER_DECODE
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.engines.records import Idleness
from controller.observe.accelerators import accelerators_of, uncounted_resources
from controller.observe.binding_claims import BindingDemand, loads_of
from controller.observe.claim import (
    Claim,
    Claimant,
    Claims,
    Exclusion,
    Obstacles,
    unplanned_by,
    unplanned_target,
)
from controller.observe.declarations import Records, claims_of, claims_of_annotated
from controller.observe.devices import NOTHING_FURTHER, FurtherAccelerators
from controller.observe.inventory import KarpenterPools, inventory, karpenter_pools, oversized_nodes
from controller.observe.movable import Disruptions, lowest_priority, movable_pods
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.observed import ObservationContext, ObservedVariant, variant_of
from controller.observe.pods import by_target, has_engine
from controller.observe.policies import Policies
from controller.observe.prices import ReachableTypes
from controller.observe.quotas import Tenant, limits
from controller.observe.replicas import ReportAge
from controller.observe.rules import Scene
from controller.observe.running_targets import as_running
from controller.observe.scalers import VariantScalers, autoscalers_by_target
from controller.observe.targets import ROLE_LABEL, ScaleTarget, TargetKey, target_of
from controller.planning.cluster import Budget, Node, NodePool
from controller.planning.inventory import node_to_come, with_addable_nodes
from controller.planning.snapshot import PlannedModel, RoleRatio, Snapshot, Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Kubernetes objects as the caches held them at one moment."""

    autoscalings: Sequence[Json] = ()
    targets: Mapping[TargetKey, Json] = field(default_factory=dict)
    """All objects of the plannable kinds, whether or not anything scales them."""

    pods: Sequence[Json] = ()
    nodes: Sequence[Json] = ()
    autoscalers: Sequence[Json] = ()
    scaled_objects: Sequence[Json] = ()
    """ScaledObjects of KEDA; empty if they cannot be read."""

    quotas: Sequence[Json] = ()
    """ResourceQuotas; empty if they cannot be read."""

    node_pools: Sequence[Json] = ()
    """Karpenter's NodePools; empty without Karpenter."""

    disruption_budgets: Sequence[Json] = ()
    """PodDisruptionBudgets; empty if they cannot be read."""

    inference_pools: Sequence[Json] = ()
    """InferencePools, those of the former group only with objectives; empty if they cannot be read."""

    records: Records | None = None
    """What was published about annotated autoscalers; None if these are not planned."""

    unread: Mapping[TargetKey, str] = field(default_factory=dict)
    """Why targets that are known only by their scale could not be read, one sentence each."""

    bound: Mapping[TargetKey, tuple[str, Key]] = field(default_factory=dict)
    """Targets of AutoscalingPolicyBindings, with creation timestamp and key of the oldest binding that claims
    each.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningTerms:
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

    def is_steered(self, target: ScaleTarget) -> bool:
        """Tell whether the removal order of a target's pods can be influenced."""
        return self.steers_removal and target.is_steerable and target.key.namespace not in self.unsteered


NEVER_WATCHED: Final = Idleness()
"""No activity of engines observed yet."""

NO_TERMS: Final = PlanningTerms()
"""The default settings."""


def never_asked(_: Key) -> float | None:
    """Return None: no engine ever responded, because none was queried."""
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class GatherResult:
    """The snapshot, what was found about each planned variant, and why others are not planned."""

    snapshot: Snapshot
    observed: Mapping[Key, ObservedVariant] = field(default_factory=dict)
    """The variants of the snapshot, by the precedence of their claims."""

    unplanned: Mapping[Key, Exclusion] = field(default_factory=dict)
    claimants: tuple[Claimant, ...] = ()
    """The objects to which these results are reported."""

    problems: tuple[str, ...] = ()
    """Parts of the cluster that could not be planned with, one sentence each."""


def claims_in(world: World) -> Claims:
    """Return the claims of VariantAutoscalings, and of annotated autoscalers if these are planned."""
    own = claims_of(world.autoscalings)
    if world.records is None:
        return own
    own_keys = {item.key for item in own.claimants}
    return own | claims_of_annotated(world.autoscalers, world.scaled_objects, world.records, claimed=own_keys)


def models_by_target(claims: Claims) -> Mapping[TargetKey, str]:
    """Return the model of each claimed target, according to the claim that takes precedence."""
    return {claim.target: claim.model_id for claim in reversed(claims.by_precedence())}


def engine_pods(pods: Sequence[Json], claims: Claims) -> tuple[tuple[Json, str], ...]:
    """Return the pods of the scale targets that run an engine, ready or not, each with its model."""
    groups, models = by_target(pods), sorted(models_by_target(claims).items())
    return tuple((pod, model) for key, model in models for pod in groups.get(key, ()) if has_engine(pod))


def gather(
    world: World,
    claims: Claims,
    *,
    policies: Policies,
    report_age: ReportAge = never_asked,
    now_seconds: float,
    may_scale_to_zero: bool,
    idleness: Idleness = NEVER_WATCHED,
    terms: PlanningTerms = NO_TERMS,
    demands: Sequence[BindingDemand] = (),
    objectives: Objectives = NO_OBJECTIVES,
) -> GatherResult:
    """Return the current snapshot; each claim is part of it, or in `unplanned`.

    `claims` are those in the world, and of the bindings with `demands`.
    """
    around, growth_problems = _surroundings(
        world, claims, policies, objectives, terms=terms, now_seconds=now_seconds
    )
    record = partial(
        variant_of, policies=policies, report_age=report_age, may_scale_to_zero=may_scale_to_zero
    )
    obstacles = Obstacles(
        targets=around.targets,
        unread=world.unread,
        bound=world.bound,
        bound_models={(demand.key[0], demand.model) for demand in demands},
    )
    planned, unplanned = _observe(claims, obstacles, around.observe, record)
    items, variants = [item for item, _ in planned], tuple(variant for _, variant in planned)
    claimed = frozenset(item.target.key for item in items)
    floor = lowest_priority([item.pods for item in items])
    movable = movable_pods(world.pods, claimed, around.disruptions, highest_priority=floor)
    bounds = limits(world.quotas, [*map(_tenant, items)], world.pods, claimed, resources=terms.further.names)
    snapshot = Snapshot(
        nodes=inventory(world.nodes, world.pods, claimed, movable, now_seconds=now_seconds),
        variants=variants,
        loads=loads_of(demands, variants),
        models=_models(
            [item for item in items if may_scale_to_zero or item.claim.may_scale_to_zero],
            idleness,
            terms,
            now_seconds,
        ),
        pools=around.pools,
        ratios=_ratios(items),
        quotas=bounds.quotas,
        budgets=terms.budgets,
        taken_seconds=now_seconds,
    )
    problems = (*bounds.problems, *oversized_nodes(world.nodes), *growth_problems)
    return GatherResult(
        snapshot=snapshot,
        observed={item.claim.key: item for item in items},
        unplanned=unplanned,
        claimants=claims.claimants,
        problems=(*problems, *chain.from_iterable(map(_problems, items))),
    )


def _surroundings(
    world: World,
    claims: Claims,
    policies: Policies,
    objectives: Objectives,
    *,
    terms: PlanningTerms,
    now_seconds: float,
) -> tuple[ObservationContext, tuple[str, ...]]:
    """Return with what all variants are observed, and what is wrong with node pools."""
    groups = by_target(world.pods)
    nodes = {node.name: node for node in inventory(world.nodes, world.pods, frozenset())}
    growth = _pools(world, terms, [*nodes.values()])
    targets = _targets(world, groups)
    plannable = {key: target for key, target in targets.items() if isinstance(target, ScaleTarget)}
    return ObservationContext(
        policies=policies,
        objectives=objectives,
        targets=targets,
        pods=groups,
        scalers=VariantScalers(
            claims.claimants, autoscalers_by_target(world.autoscalers, world.scaled_objects)
        ),
        nodes=nodes,
        pools=growth.pools,
        reach=ReachableTypes([*nodes.values(), *map(node_to_come, growth.pools)]),
        disruptions=Disruptions(world.disruption_budgets),
        scene=Scene(world.nodes, plannable, world.pods),
        is_steered=terms.is_steered,
        now_seconds=now_seconds,
    ), growth.problems


def _observe(
    claims: Claims,
    obstacles: Obstacles,
    observe: Callable[[Claim, ScaleTarget], ObservedVariant],
    record: Callable[[ObservedVariant], Variant],
) -> tuple[Sequence[tuple[ObservedVariant, Variant]], Mapping[Key, Exclusion]]:
    """Return what was found about each claim that can be planned, by precedence, and why others cannot."""
    planned: list[tuple[ObservedVariant, Variant]] = []
    unplanned = dict(claims.unplanned)
    claimed: dict[TargetKey, Claim] = {}
    for claim in claims.by_precedence():
        try:
            target = obstacles.target_of(claim, claimed)
            if isinstance(target, Exclusion):
                unplanned[claim.key] = target
                continue
            item = observe(claim, target)
            planned.append((item, record(item)))
        except Exception as error:  # noqa: BLE001 (an error of one object must not affect others)
            unplanned[claim.key] = unplanned_by(error)
        else:
            claimed[claim.target] = claim
    return planned, unplanned


def _targets(
    world: World, groups: Mapping[TargetKey, tuple[Json, ...]]
) -> Mapping[TargetKey, ScaleTarget | Exclusion]:
    """Return the scale targets as their pods run, or why they cannot be planned."""
    targets: dict[TargetKey, ScaleTarget | Exclusion] = {}
    for key, value in world.targets.items():
        try:
            targets[key] = as_running(target_of(key, value), groups.get(key, ()))
        except Exception as error:  # noqa: BLE001 (an error of one target must not affect others)
            targets[key] = unplanned_target(key, error)
    return targets


def _pools(world: World, terms: PlanningTerms, nodes: Sequence[Node]) -> KarpenterPools:
    """Return the declared pools as they can still grow, and Karpenter's that are not declared."""
    karpenter = karpenter_pools(world.node_pools, world.nodes)
    declared = {pool.name for pool in terms.pools}
    own_pools = (with_addable_nodes(pool, nodes) for pool in terms.pools)
    others = (pool for pool in karpenter.pools if pool.name not in declared)
    return replace(karpenter, pools=(*own_pools, *others))


def _problems(item: ObservedVariant) -> Iterator[str]:
    """Yield what about a variant could not be planned with."""
    yield from item.rules.problems
    if item.claim.orders.prefill_per_decode and not item.role:
        yield (
            f"{item.claim.owner.kind} {'/'.join(item.claim.key)} has the annotation {PREFILL_PER_DECODE}, but"
            f" its pods have no role, so it is ignored: set their label {ROLE_LABEL} to prefill or decode"
        )
    if names := uncounted_resources(item.target.pod_spec):
        yield (
            f"the pods of {item.claim.owner.kind} {'/'.join(item.claim.key)} request {', '.join(names)},"
            " which planning does not count: no node limits its replicas; add the accelerators among them to"
            " accelerators.resources of the controller's configuration"
        )


def _tenant(item: ObservedVariant) -> Tenant:
    specs = (pod["spec"] for pod in item.pods)
    pod_spec = next((spec for spec in specs if accelerators_of(spec)), item.target.pod_spec)
    return Tenant(namespace=item.claim.owner.namespace, accelerator=item.accelerator, pod_spec=pod_spec)


def _ratios(items: Sequence[ObservedVariant]) -> tuple[RoleRatio, ...]:
    """Return the ratio of roles of each model that states one: that of the first variant with one."""
    stated: dict[Key, tuple[float, float]] = {}
    for item in items:
        if item.role and (ratio := item.claim.orders.prefill_per_decode):
            stated.setdefault(item.claim.model, ratio)
    return tuple(
        RoleRatio(namespace=namespace, pair=model_id, least=least, most=most)
        for (namespace, model_id), (least, most) in sorted(stated.items())
    )


def _models(
    items: Sequence[ObservedVariant], idleness: Idleness, terms: PlanningTerms, now_seconds: float
) -> tuple[PlannedModel, ...]:
    """Return how long each model that may lose its last replica has been idle, and whether it is awaited.

    A model without replicas that no request awaits is left out, because its grace period must not start a
    replica. So are bindings, whose policies have grace periods of their own.
    """
    own = [item for item in items if not item.claim.is_bound]
    models = {item.model: item.claim.model for item in own}
    running = {item.model for item in own if item.target.replicas}
    awaited = {
        planned
        for planned, model in models.items()
        if idleness.is_awaited(model, now_seconds=now_seconds, within_seconds=terms.grace_seconds)
    }
    return tuple(
        PlannedModel(
            namespace=planned[0],
            model_id=planned[1],
            idle_seconds=idleness.idle_seconds(models[planned], now_seconds=now_seconds),
            grace_seconds=terms.grace_seconds,
            is_awaited=planned in awaited,
        )
        for planned in sorted(running | awaited)
    )
