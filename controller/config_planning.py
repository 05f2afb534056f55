"""What the controller can be told of planning: forecast, capacity, nodes to come, budgets, and who acts.

A default that planning or sizing has itself is written there, and read here.
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
from controller.observe.accelerators import normalised
from controller.observe.objectives import ObjectiveRules
from controller.planning.cluster import Budget, NodePool, Taint
from controller.planning.settings import Settings, UnmetUnit
from controller.planning.snapshot import LOWEST_PRIORITY
from controller.sizing.records import SizingSettings

_PLANNING: Final = Settings()
_SIZING: Final = SizingSettings()

_NOTHING_ELSE: Final = Marker((("additionalProperties", False),))
"""Refuses misspelled fields inside lists, too."""

_MOST_COST: Final = Decimal(10) ** 9


@declaration()
class TaintConfig:
    """A taint of the nodes to come."""

    key: Annotated[str, Length(1, 317)]
    """Its key."""

    value: Annotated[str, Length(maximum=63)] = ""
    """Its value."""

    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """What it does to pods that don't tolerate it."""


@declaration()
class NodePoolConfig:
    """Nodes of one shape that can still be added to the cluster, by a node autoscaler or by hand."""

    name: Annotated[str, Length(1, 253)]
    """What sentences call it. Karpenter's NodePool of the same name is then not read."""

    accelerator: Annotated[str, Length(1, 253)]
    """Type, such as `H100` or `NVIDIA-H100-80GB-HBM3`."""

    accelerators_per_node: Annotated[int, Range(1, 10**4)]
    """How many of them one node has."""

    price_per_node: DecimalText = "0"
    """Per hour, on top of what the replicas on it cost; 0 where their cost includes it."""

    nodes_addable: Annotated[int, Range(0, 10**5)] = 1
    """How many more there can be."""

    lead_seconds: Annotated[int, Range(0, 10**6)] = 0
    """From asking for a node until pods run on it; 0 where that is not known."""

    labels: Annotated[dict[str, Annotated[str, Length(maximum=63)]], Properties(maximum=64)] = {}  # noqa: RUF012 (frozen, and a copy for each)
    """Labels of its nodes, as node selectors and affinity look for them."""

    taints: Annotated[tuple[Annotated[TaintConfig, _NOTHING_ELSE], ...], Items(maximum=64)] = ()
    """Taints of its nodes."""


@declaration()
class BudgetConfig:
    """A limit on what the replicas of some namespaces may cost together."""

    name: Annotated[str, Length(1, 253)]
    """What sentences call it."""

    cost_per_hour: DecimalText
    """The limit, in the unit of the variants' cost."""

    namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """For which it holds. Empty: all of them together."""

    strict: bool = False
    """Whether it takes replicas that are needed where it is below what runs. Without it they stay, nothing
    new starts under the budget, and the condition `LimitsKept` says by how much it is exceeded."""


@declaration()
class EvictionsConfig:
    """Moving replicas that run, so that what is free lies together for those who go short."""

    enabled: bool = bool(_PLANNING.most_moves)
    """Whether pods are evicted at all. Needs the permissions of `manifests/evictions`."""

    interval_seconds: Annotated[int, Range(1, 86400)] = 300
    """Least time from the end of one round to the beginning of the next."""

    per_round: Annotated[int, Range(1, 1000)] = 1
    """How many replicas one round may move."""

    per_hour: Annotated[int, Range(1, 10000)] = 10
    """How many replicas all rounds of an hour may move."""


@declaration()
class FlapBudgetConfig:
    """How often a variant may change direction before cost alone turns it no more."""

    reversals: Annotated[int, Range(0, 1000)] = _PLANNING.flap_reversals
    """Changes from up to down or back within the window; 0 for as many as there are. The last one is kept for
    coming up again. What demand and priorities need is done all the same. It is 0 because what is held costs
    money, and the dead band of the forecast mostly does; where it doesn't, try 4."""

    window_seconds: Annotated[int, Range(1, 604_800)] = round(_PLANNING.flap_window_seconds)
    """Length of the window."""


@declaration()
class PlanningConfig:
    """How decisions are taken."""

    interval_seconds: Annotated[int, Range(1, 3600)] = round(_SIZING.interval_seconds)
    """Time from one decision to the next; the trend of a load is read from the last 20."""

    fresh_seconds: Annotated[int, Range(1, 3600)] = round(_SIZING.fresh_seconds)
    """Samples up to this age count fully."""

    held_seconds: Annotated[int, Range(1, 86400)] = round(_SIZING.held_seconds)
    """Samples up to this age hold what is and never scale down; older ones are unknown. So long a silent
    engine blocks scaling down."""

    quorum_percent: Annotated[int, Range(1, 100)] = round(100 * _SIZING.quorum)
    """Share of a model's ready replicas that must report for a decision without the silent ones, once these
    have been silent for `heldSeconds`. Until then, and with fewer, nothing is scaled down."""

    target_utilization_percent: Annotated[int, Range(10, 100)] = round(100 * _SIZING.target_utilization)
    """Share of their capacity that replicas are to be used at when the load reaches its forecast, and of the
    batch that is counted on."""

    forecast_confidence_percent: Annotated[int, Range(50, 99)] = round(100 * _SIZING.forecast_confidence)
    """Probability with which the load stays below the forecast's upper bound, for which replicas are
    ordered; 95 is about 1.6 standard deviations above the trend. More costs more and misses fewer
    targets."""

    drain_seconds: Annotated[int, Range(1, 3600)] = round(_SIZING.drain_seconds)
    """Time within which waiting requests are to be worked off once the replicas ordered for them are
    ready."""

    try_unknown_variants: bool = _SIZING.tries_unknown_variants
    """Whether a variant that never ran and has no profile may be started, one replica at first, on an
    estimate from the model's other variants. Without this it is left alone as long as another variant is
    known."""

    solve_seconds: Annotated[int, Range(1, 600)] = round(_PLANNING.wall_seconds)
    """Longest time that the solver may search for one placement; then the best that was found counts, proven
    or not. A plan may hold several searches: its process is ended after three times this, and what
    runs stands. Most plans take a fraction of a second."""

    scale_to_zero: bool = False
    """Whether the last replica of a model without load may go."""

    scale_to_zero_grace_seconds: Annotated[int, Range(0, 10**6)] = 600
    """How long a model keeps its last replica after its last request. Counts from the start of the controller
    for a model that it has not seen busy since."""

    minimum_hold_seconds: Annotated[int, Range(0, 86400)] = 0
    """How long a started replica stays. 0: the forecast and the HorizontalPodAutoscaler's stabilization
    window hold against churn already, and a hold makes higher priorities wait for what a young replica of a
    lower one has taken. Choose about the time that an engine takes to load where starts are dear."""

    standing_seconds: Annotated[int, Range(1, 86400)] = round(_PLANNING.standing_seconds)
    """How long a mix of replicas is expected to stand before the load asks for another one. What the start of
    a replica costs is spread over this time: with longer ones a cheaper mix is sooner worth its starts."""

    pod_deletion_cost: bool = True
    """Whether pods that a smaller number lets go are marked by `controller.kubernetes.io/pod-deletion-cost`,
    so that those go whose accelerators are worth most when free. What a person has set is left as it is."""

    flap_budget: FlapBudgetConfig = FlapBudgetConfig()
    """How often a variant may change direction."""

    preemption_budget: Annotated[int, Range(0, 10**6)] = _PLANNING.most_preempted
    """How many replicas that their models need one plan may take from them for higher priorities; the rest
    gives way to later plans. Of a variant never more than the disruption budget of its pods allows."""

    unmet_unit: Literal["value", "model"] = _PLANNING.unmet_unit.value
    """Who goes short among models of one priority: `value` serves the most value, `model` the most models."""

    node_pools: Annotated[tuple[Annotated[NodePoolConfig, _NOTHING_ELSE], ...], Items(maximum=256)] = ()
    """Nodes that can still be added. Those of Karpenter are found where they say enough of themselves."""

    budgets: Annotated[tuple[Annotated[BudgetConfig, _NOTHING_ELSE], ...], Items(maximum=256)] = ()
    """Limits on the cost of replicas."""

    evictions: EvictionsConfig = EvictionsConfig()
    """Moving replicas that run."""

    advisory: bool = False
    """Whether decisions are told only: no HorizontalPodAutoscaler is given a number to act on."""

    advisory_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which decisions are told only."""

    name_other_namespaces: bool = False
    """Whether a status says which workloads of other namespaces hold what is missing. Without it they are
    called by their priority, and who may read one namespace learns no names of another. `stowplan plan`
    always names them: its reader has all manifests."""

    joint_bindings: bool = False
    """Whether what AutoscalingPolicyBindings scale is planned with everything else: on the same nodes, by
    priority, at the least cost. Without it their policies decide alone, as if there were always room."""

    joint_bindings_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which bindings are planned with everything else."""

    objectives: bool = False
    """Whether InferenceObjectives give the priority of replicas in their pools where no service class does.
    Needs the permissions of `manifests/objectives`."""

    objectives_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which they do."""

    objectives_highest_priority: Annotated[int, Range(1, LOWEST_PRIORITY)] = 50
    """The highest priority that an InferenceObjective can give: service classes of smaller numbers always go
    first."""


def planning_problems(planning: PlanningConfig) -> list[str]:
    """Return what is wrong with planning's values that no schema can judge."""
    problems = []
    if planning.evictions.per_hour < planning.evictions.per_round:
        problems.append("planning.evictions.perHour: must be at least planning.evictions.perRound")
    if planning.fresh_seconds > planning.held_seconds:
        problems.append("planning.heldSeconds: must be at least planning.freshSeconds")
    problems += _repeated("nodePools", [pool.name for pool in planning.node_pools])
    problems += _repeated("budgets", [budget.name for budget in planning.budgets])
    costs = {
        f"nodePools.{position}.pricePerNode": pool.price_per_node
        for position, pool in enumerate(planning.node_pools)
    } | {
        f"budgets.{position}.costPerHour": budget.cost_per_hour
        for position, budget in enumerate(planning.budgets)
    }
    return problems + [
        f"planning.{where}: must be at most {_MOST_COST}, was {text}"
        for where, text in costs.items()
        if Decimal(text) > _MOST_COST
    ]


def settings_of(planning: PlanningConfig) -> Settings:
    """Return the numbers that planning itself uses."""
    return Settings(
        standing_seconds=float(planning.standing_seconds),
        most_preempted=planning.preemption_budget,
        flap_reversals=planning.flap_budget.reversals,
        flap_window_seconds=float(planning.flap_budget.window_seconds),
        unmet_unit=UnmetUnit(planning.unmet_unit),
        names_all=planning.name_other_namespaces,
        most_moves=planning.evictions.per_round if planning.evictions.enabled else 0,
        # The reproducible limit is to be met well before the one by the clock, on a slow machine, too. It
        # grows with models and with what they share: of some 10,000 in scarcity, or some 1,000 that spread
        # over ten zones, the clock may be what ends a plan.
        deterministic_seconds=planning.solve_seconds
        * _PLANNING.deterministic_seconds
        / _PLANNING.wall_seconds,
        wall_seconds=float(planning.solve_seconds),
    )


def sizing_of(planning: PlanningConfig) -> SizingSettings:
    """Return the numbers that sizing uses."""
    return SizingSettings(
        interval_seconds=float(planning.interval_seconds),
        history_seconds=planning.interval_seconds * _SIZING.history_seconds / _SIZING.interval_seconds,
        target_utilization=planning.target_utilization_percent / 100,
        forecast_confidence=planning.forecast_confidence_percent / 100,
        drain_seconds=float(planning.drain_seconds),
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
            accelerator=normalised(pool.accelerator),
            accelerators_per_node=pool.accelerators_per_node,
            price_per_node=Decimal(pool.price_per_node),
            nodes_addable=pool.nodes_addable,
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
    """Return which InferenceObjectives count."""
    return ObjectiveRules(
        everywhere=planning.objectives,
        namespaces=frozenset(planning.objectives_namespaces),
        highest_priority=planning.objectives_highest_priority,
    )


def _repeated(where: str, names: Sequence[str]) -> list[str]:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    return [f"planning.{where}: duplicate name {name!r}" for name in twice]
