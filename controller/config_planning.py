"""Configuration of planning: forecast, capacity, node pools, budgets, evictions and bindings.

Defaults that planning or sizing already define are read from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import DnsLabel
from apiserver.kinds.meta import DecimalText
from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Items, Length, Marker, Properties, Range
from controller.observe.accelerators import short_name
from controller.observe.objectives import ObjectiveRules
from controller.planning.cluster import Budget, NodePool, Taint
from controller.planning.inputs import Settings
from controller.planning.snapshot import LOWEST_PRIORITY
from controller.sizing.records import SizingSettings

_PLANNING: Final = Settings()
_SIZING: Final = SizingSettings()

_NOTHING_ELSE: Final = Marker((("additionalProperties", False),))
"""Rejects misspelled fields inside lists, too."""

_MOST_COST: Final = Decimal(10) ** 9


@declaration()
class TaintConfig:
    """A taint of the nodes of a pool."""

    key: Annotated[str, Length(1, 317)]
    """The key of the taint."""

    value: Annotated[str, Length(maximum=63)] = ""
    """The value of the taint."""

    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """The effect on pods that don't tolerate the taint."""


@declaration()
class NodePoolConfig:
    """Nodes of one shape that can still be added to the cluster, by a node autoscaler or by hand."""

    name: Annotated[str, Length(1, 253)]
    """Name of the pool in messages. Karpenter's NodePool of the same name is then ignored."""

    accelerator: Annotated[str, Length(1, 253)]
    """Accelerator type, such as `H100` or `NVIDIA-H100-80GB-HBM3`."""

    accelerators_per_node: Annotated[int, Range(1, 10**4)]
    """The number of accelerators of one node."""

    price_per_node: DecimalText = "0"
    """Price of one node per hour, on top of the cost of its replicas; 0 if their cost includes it."""

    nodes_addable: Annotated[int, Range(0, 10**5)] = 1
    """The maximum number of nodes that can be added. Not used with `maxNodes`."""

    max_nodes: Annotated[int, Range(0, 10**5)] = 0
    """The maximum size of the pool, as configured in its node autoscaler. The existing nodes that have its
    `labels` and accelerators are subtracted from it. 0 if unknown: then `nodesAddable` applies, however many
    nodes exist."""

    lead_seconds: Annotated[int, Range(0, 10**6)] = 0
    """Time from the request for a node until pods run on it, in seconds; 0 if unknown."""

    labels: Annotated[dict[str, Annotated[str, Length(maximum=63)]], Properties(maximum=64)] = {}  # noqa: RUF012 (frozen, and copied for each instance)
    """Labels of the nodes, for node selectors and node affinity."""

    taints: Annotated[tuple[Annotated[TaintConfig, _NOTHING_ELSE], ...], Items(maximum=64)] = ()
    """Taints of the nodes."""


@declaration()
class BudgetConfig:
    """A limit on the total cost of the replicas of some namespaces."""

    name: Annotated[str, Length(1, 253)]
    """Name of the budget in messages."""

    cost_per_hour: DecimalText
    """The limit, in the unit of the variants' cost."""

    namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces whose total cost is limited. Empty: all namespaces together."""

    strict: bool = False
    """Whether running replicas that are needed are removed if they exceed the limit. If false, they stay,
    nothing new starts under the budget, and the condition `LimitsKept` reports the excess."""


@declaration()
class EvictionsConfig:
    """Moving running replicas, to consolidate free accelerators for models that lack capacity."""

    enabled: bool = bool(_PLANNING.most_moves)
    """Whether pods are evicted at all. Needs the permissions of `manifests/evictions`."""

    interval_seconds: Annotated[int, Range(1, 86400)] = 300
    """Minimum time from the end of one round to the start of the next, in seconds."""

    per_round: Annotated[int, Range(1, 1000)] = 1
    """Maximum number of replicas that one round may move."""

    per_hour: Annotated[int, Range(1, 10000)] = 10
    """Maximum number of replicas that all rounds within an hour may move."""


@declaration()
class PlanningConfig:
    """How decisions are made."""

    interval_seconds: Annotated[int, Range(1, 3600)] = round(_SIZING.interval_seconds)
    """Time from one decision to the next, in seconds. The load is forecast from its last 40 values."""

    fresh_seconds: Annotated[int, Range(1, 3600)] = round(_SIZING.fresh_seconds)
    """Maximum age in seconds of samples that count fully."""

    held_seconds: Annotated[int, Range(1, 86400)] = round(_SIZING.held_seconds)
    """Maximum age in seconds of samples that hold the current replicas and never scale down; older ones are
    unknown. An engine that stops reporting blocks scaling down for this time."""

    quorum_percent: Annotated[int, Range(1, 100)] = round(100 * _SIZING.quorum)
    """Share of a model's ready replicas, in percent, that must report to decide without the others, once
    those have not reported for `heldSeconds`. Until then, and with a smaller share, nothing is scaled
    down."""

    try_unknown_variants: bool = _SIZING.tries_unknown_variants
    """Whether a variant that never ran and has no profile may be started, at first with one replica, on an
    estimate from the model's other variants. If false, it is not started as long as another variant is
    known."""

    solve_seconds: Annotated[int, Range(1, 600)] = round(_PLANNING.wall_seconds)
    """Time limit of the solver for one placement, in seconds. When it is reached, the best placement found is
    used, whether or not it is proven optimal. A plan may need several placements: its process is killed after
    three times this limit, and replicas stay as they are. Most plans take a fraction of a second."""

    scale_to_zero: bool = False
    """Whether a model without load may lose its last replica."""

    scale_to_zero_grace_seconds: Annotated[int, Range(0, 10**6)] = 600
    """Time in seconds for which a model keeps its last replica after its last request. Counts from the start
    of the controller for a model that has had no load since."""

    standing_seconds: Annotated[int, Range(1, 86400)] = round(_PLANNING.standing_seconds)
    """Time in seconds for which a mix of replicas is expected to last before the load requires another one.
    The cost of starting a replica is spread over this time: the longer it is, the sooner a cheaper mix is
    worth its starts."""

    pod_deletion_cost: bool = True
    """Whether the pods to remove on a scale-down are marked by `controller.kubernetes.io/pod-deletion-cost`,
    so that those go whose accelerators are most useful when free. Values set by users are kept."""

    decision_annotation: bool = True
    """Whether decisions on annotated autoscalers are written to their annotation `stowplan.dev/decision`. Set
    it to false if nothing but your GitOps tool may write these objects."""

    node_pools: Annotated[tuple[Annotated[NodePoolConfig, _NOTHING_ELSE], ...], Items(maximum=256)] = ()
    """Nodes that can still be added. Karpenter's node pools are added if their specification is complete
    enough."""

    budgets: Annotated[tuple[Annotated[BudgetConfig, _NOTHING_ELSE], ...], Items(maximum=256)] = ()
    """Limits on the cost of replicas."""

    evictions: EvictionsConfig = EvictionsConfig()
    """Moving running replicas."""

    advisory: bool = False
    """Whether decisions are advice only: no HorizontalPodAutoscaler receives a number to act on."""

    advisory_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which decisions are advice only."""

    name_other_namespaces: bool = False
    """Whether a status names the workloads of other namespaces that use the missing accelerators. If false,
    it only gives their priority, so that users with access to one namespace learn no names of another.
    `stowplan plan` always names them, because its user has all manifests."""

    joint_bindings: bool = False
    """Whether the targets of AutoscalingPolicyBindings are planned together with the variants: on the same
    nodes, by priority, at the lowest cost. If false, their policies decide alone, as if capacity were
    unlimited."""

    joint_bindings_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which bindings are planned together with the variants."""

    objectives: bool = False
    """Whether InferenceObjectives set the priority of replicas in their pools if no service class does. Needs
    the permissions of `manifests/objectives`."""

    objectives_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which InferenceObjectives set priorities."""

    objectives_highest_priority: Annotated[int, Range(1, LOWEST_PRIORITY)] = 50
    """The highest priority that an InferenceObjective can set. Service classes with smaller numbers are
    always served first."""


def planning_problems(planning: PlanningConfig) -> list[str]:
    """Return the problems of planning's values that the schema cannot detect."""
    problems = []
    if planning.evictions.per_hour < planning.evictions.per_round:
        problems.append("planning.evictions.perHour: must be at least planning.evictions.perRound")
    if planning.fresh_seconds > planning.held_seconds:
        problems.append("planning.heldSeconds: must be at least planning.freshSeconds")
    problems += _repetitions("nodePools", [pool.name for pool in planning.node_pools])
    problems += [
        f"planning.nodePools[{position}].labels: must not be empty with maxNodes, which counts existing nodes"
        " by them"
        for position, pool in enumerate(planning.node_pools)
        if pool.max_nodes and not pool.labels
    ]
    problems += _repetitions("budgets", [budget.name for budget in planning.budgets])
    costs = {
        f"nodePools[{position}].pricePerNode": pool.price_per_node
        for position, pool in enumerate(planning.node_pools)
    } | {
        f"budgets[{position}].costPerHour": budget.cost_per_hour
        for position, budget in enumerate(planning.budgets)
    }
    return problems + [
        f"planning.{where}: must be at most {_MOST_COST}, was {text}"
        for where, text in costs.items()
        if Decimal(text) > _MOST_COST
    ]


def settings_of(planning: PlanningConfig) -> Settings:
    """Return the settings of planning."""
    return Settings(
        standing_seconds=float(planning.standing_seconds),
        names_all=planning.name_other_namespaces,
        most_moves=planning.evictions.per_round if planning.evictions.enabled else 0,
        # The deterministic limit should be reached well before the wall-clock limit, even on a slow machine.
        # It scales with models and what they share: with about 10,000 models under scarcity, or about 1,000
        # that spread over ten zones, the wall-clock limit may end a plan first.
        deterministic_seconds=planning.solve_seconds
        * _PLANNING.deterministic_seconds
        / _PLANNING.wall_seconds,
        wall_seconds=float(planning.solve_seconds),
    )


def sizing_of(planning: PlanningConfig) -> SizingSettings:
    """Return the settings of sizing."""
    return SizingSettings(
        interval_seconds=float(planning.interval_seconds),
        history_seconds=planning.interval_seconds * _SIZING.history_seconds / _SIZING.interval_seconds,
        hold_seconds=planning.interval_seconds * _SIZING.hold_seconds / _SIZING.interval_seconds,
        fresh_seconds=float(planning.fresh_seconds),
        held_seconds=float(planning.held_seconds),
        quorum=planning.quorum_percent / 100,
        tries_unknown_variants=planning.try_unknown_variants,
    )


def pools_of(planning: PlanningConfig) -> tuple[NodePool, ...]:
    """Return the declared node pools as records."""
    return tuple(
        NodePool(
            name=pool.name,
            accelerator=short_name(pool.accelerator),
            accelerators_per_node=pool.accelerators_per_node,
            price_per_node=Decimal(pool.price_per_node),
            nodes_addable=pool.nodes_addable,
            max_nodes=pool.max_nodes or None,
            lead_seconds=float(pool.lead_seconds),
            labels=frozenset(pool.labels.items()),
            taints=frozenset(
                Taint(key=item.key, value=item.value, effect=item.effect) for item in pool.taints
            ),
        )
        for pool in planning.node_pools
    )


def budgets_of(planning: PlanningConfig) -> tuple[Budget, ...]:
    """Return the declared budgets as records."""
    return tuple(
        Budget(
            name=budget.name,
            cost_per_hour=Decimal(budget.cost_per_hour),
            namespaces=frozenset(budget.namespaces),
            is_strict=budget.strict,
        )
        for budget in planning.budgets
    )


def objectives_of(planning: PlanningConfig) -> ObjectiveRules:
    """Return the rules for which InferenceObjectives count."""
    return ObjectiveRules(
        everywhere=planning.objectives,
        namespaces=frozenset(planning.objectives_namespaces),
        highest_priority=planning.objectives_highest_priority,
    )


def _repetitions(where: str, names: Sequence[str]) -> list[str]:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    return [f"planning.{where}: duplicate name {name!r}" for name in twice]
