"""From records to whole numbers: snapshot and demand become a placement problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning.decision import Signal
from controller.planning.demand import allowed_replicas, staying_replicas
from controller.planning.inventory import bins, node_to_come
from controller.planning.limits import limit_rows
from controller.planning.problem import (
    UNLIMITED_REPLICAS,
    CoverRow,
    GrowthTerms,
    PlacementProblem,
    Stage,
    VariantTerms,
)
from controller.planning.topology import Topologies
from controller.planning.units import PERCENT, cost_units
from controller.planning.weights import weighted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.cluster import Node, NodePool
    from controller.planning.demand import ModelDemand
    from controller.planning.saturation import Capacity
    from controller.planning.settings import Settings
    from controller.planning.snapshot import ModelRule, Snapshot, Variant

MAX_REQUIREMENT = 10**9
"""Larger requirements are counted in a coarser unit: demand rounded up, capacity down."""


def formulate(
    snapshot: Snapshot,
    demands: Sequence[ModelDemand],
    capacities: Mapping[tuple[str, str], Capacity],
    *,
    settings: Settings,
) -> PlacementProblem:
    """Return the problem over the nodes by name, and over the variants of all models, in the order given."""
    nodes = sorted(snapshot.nodes, key=lambda node: node.name)
    node_index = {node.name: index for index, node in enumerate(nodes)}
    pools = sorted(snapshot.pools, key=lambda pool: pool.name)
    topologies = Topologies(nodes, [node_to_come(pool) for pool in pools], snapshot.variants)
    rules = {(rule.namespace, rule.model_id): rule for rule in snapshot.models}
    rows: list[CoverRow] = []
    terms: list[VariantTerms] = []
    for model, demand in enumerate(demands):
        rule = rules.get((demand.namespace, demand.model_id))
        own = _rows(demand, capacities, rule, model=model, first_variant=len(terms))
        for variant in demand.variants:
            most = max((_enough(row, len(terms)) for row in own), default=0)
            untouchable = _untouchable(variant, demand, capacities)
            made = _terms(variant, node_index, most=most, lower=untouchable, settings=settings)
            terms.append(
                replace(made, together=topologies.together(variant), spread=topologies.spread(variant))
            )
        rows += own
    variants = [variant for demand in demands for variant in demand.variants]
    grouped, home = bins(nodes, variants, pools)
    return PlacementProblem(
        variants=tuple(terms),
        free=_free(nodes, terms),
        bins=grouped,
        rows=weighted(rows, terms, settings),
        limits=limit_rows(snapshot, variants, terms),
        growth=tuple(
            _growth(pool, where, topologies)
            for pool, where in zip(pools, home, strict=True)
            if where is not None
        ),
        topologies=topologies.of_nodes(),
    )


def _growth(pool: NodePool, where: int, topologies: Topologies) -> GrowthTerms:
    return GrowthTerms(
        name=pool.name,
        bin=where,
        accelerators=pool.accelerators_per_node,
        price=cost_units(pool.price_per_node),
        limit=pool.nodes_addable,
        domains=topologies.domains(node_to_come(pool)),
    )


def held_replicas(variant: Variant) -> int:
    """Return the replicas to keep while nobody knows better: what is, or what was last decided if more."""
    wanted = max(variant.current_replicas, variant.desired_replicas or 0)
    return wanted if variant.max_replicas is None else min(wanted, variant.max_replicas)


def _rows(
    demand: ModelDemand,
    capacities: Mapping[tuple[str, str], Capacity],
    rule: ModelRule | None,
    *,
    model: int,
    first_variant: int,
) -> list[CoverRow]:
    """Return the requirements of one model."""

    def row(stage: Stage, requirement: int, terms: Sequence[tuple[int, int]]) -> list[CoverRow]:
        if not requirement:
            return []
        unit = -(-requirement // MAX_REQUIREMENT)
        whole = -(-requirement // unit)
        kept = tuple((variant, min(amount // unit, whole)) for variant, amount in terms if amount >= unit)
        return [
            CoverRow(
                name=f"{demand.namespace}/{demand.model_id}",
                stage=stage,
                priority=demand.priority,
                model=model,
                requirement=whole,
                terms=kept,
            )
        ]

    numbered = list(enumerate(demand.variants, start=first_variant))
    holding = capacity_terms(demand, capacities, first_variant=first_variant)
    floor = max(int(not demand.may_scale_to_zero), rule.min_replicas if rule else 0)
    rows = row(Stage.MINIMUM, floor, [(index, 1) for index, _ in numbered])
    for index, variant in numbered:
        rows += row(Stage.MINIMUM, max(variant.min_replicas, ordered_replicas(variant) or 0), [(index, 1)])
        if demand.signal is not Signal.FRESH:
            rows += row(Stage.DEMAND, held_replicas(variant), [(index, 1)])
    rows += row(Stage.DEMAND, demand.required_tokens, holding)
    if demand.signal is Signal.FRESH:
        rows += row(Stage.CONTINUITY, demand.continuity_tokens, holding)
    return rows


def capacity_terms(
    demand: ModelDemand, capacities: Mapping[tuple[str, str], Capacity], *, first_variant: int
) -> list[tuple[int, int]]:
    """Return (variant, tokens per replica) for each variant of the model whose capacity is known."""
    return [
        (index, capacities[variant.key].tokens)
        for index, variant in enumerate(demand.variants, start=first_variant)
        if variant.key in capacities and capacities[variant.key].tokens
    ]


def _enough(row: CoverRow, variant: int) -> int:
    """Return how many replicas of one variant meet the row alone; more are never needed."""
    return max((-(-row.requirement // amount) for index, amount in row.terms if index == variant), default=0)


def ordered_replicas(variant: Variant) -> int | None:
    """Return the replicas that a person ordered, by a pin or by a pause; None when nobody did."""
    return allowed_replicas(variant) if variant.is_paused else variant.pinned_replicas


def _untouchable(
    variant: Variant, demand: ModelDemand, capacities: Mapping[tuple[str, str], Capacity]
) -> int:
    """Return the replicas that must not go: of an unknown demand, ordered, young or protected."""
    if demand.signal is not Signal.FRESH:
        return variant.current_replicas
    protected = 0 if variant.may_be_preempted else _needed(variant, demand, capacities)
    return max(ordered_replicas(variant) or 0, variant.held_replicas, protected)


def _needed(variant: Variant, demand: ModelDemand, capacities: Mapping[tuple[str, str], Capacity]) -> int:
    """Return the replicas without which the model would lack capacity that it has."""
    own = capacities[variant.key].tokens if variant.key in capacities else 0
    spare = max(0, demand.anticipated_tokens - demand.required_tokens)
    return max(0, variant.current_replicas - spare // own) if own else variant.current_replicas


def _terms(
    variant: Variant, node_index: Mapping[str, int], *, most: int, lower: int, settings: Settings
) -> VariantTerms:
    bound = tuple(
        tuple(node_index[node] for node in replica.nodes if node in node_index)
        for replica in staying_replicas(variant)
        if replica.nodes
    )
    limit = UNLIMITED_REPLICAS if variant.max_replicas is None else variant.max_replicas
    ordered = ordered_replicas(variant)
    limit = limit if ordered is None else min(limit, ordered)
    cost = cost_units(variant.cost_per_replica)
    return VariantTerms(
        name=f"{variant.namespace}/{variant.name}",
        accelerators=variant.accelerators_per_pod,
        cost=cost,
        start_price=cost // PERCENT * settings.start_price_percent,
        stop_price=cost // PERCENT * settings.stop_price_percent,
        current=allowed_replicas(variant),
        bound=bound,
        ready=sum(replica.ready for replica in staying_replicas(variant)),
        pods=variant.pods_per_replica,
        most_per_node=variant.most_per_node,
        lower=min(len(bound), lower, limit),
        upper=min(limit, max(most, variant.current_replicas)),
    )


def _free(nodes: Sequence[Node], terms: Sequence[VariantTerms]) -> tuple[int, ...]:
    free = [node.accelerators_allocatable - node.accelerators_used_by_others for node in nodes]
    for variant in terms:
        for places in variant.bound:
            for node in places:
                free[node] -= variant.accelerators
    return tuple(free)
