"""From records to whole numbers: snapshot and demand become a placement problem."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING

from controller.planning.decision import Signal
from controller.planning.demand import allowed_replicas, staying_replicas
from controller.planning.inventory import bins
from controller.planning.problem import (
    UNLIMITED_REPLICAS,
    CoverRow,
    PlacementProblem,
    Stage,
    VariantTerms,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.demand import ModelDemand
    from controller.planning.saturation import Capacity
    from controller.planning.settings import Settings
    from controller.planning.snapshot import Node, Variant

COST_UNIT = Decimal("0.0001")
"""The finest cost that counts; what is finer is rounded up."""

MAX_COST = Decimal(1_000_000)
"""What is dearer counts as this much, lest one absurd number drown the differences between all others."""

MAX_REQUIREMENT = 10**9
"""Larger requirements are counted in a coarser unit: demand rounded up, capacity down."""

PERCENT = 100


def formulate(
    nodes: Sequence[Node],
    demands: Sequence[ModelDemand],
    capacities: Mapping[tuple[str, str], Capacity],
    *,
    settings: Settings,
) -> PlacementProblem:
    """Return the problem over the nodes, and over the variants of all models, in the order given."""
    node_index = {node.name: index for index, node in enumerate(nodes)}
    rows: list[CoverRow] = []
    terms: list[VariantTerms] = []
    for model, demand in enumerate(demands):
        own = _rows(demand, capacities, model=model, first_variant=len(terms))
        for variant in demand.variants:
            most = max((_enough(row, len(terms)) for row in own), default=0)
            frozen = demand.signal is not Signal.FRESH
            terms.append(_terms(variant, node_index, most=most, frozen=frozen, settings=settings))
        rows += own
    variants = [variant for demand in demands for variant in demand.variants]
    return PlacementProblem(
        variants=tuple(terms), free=_free(nodes, terms), bins=bins(nodes, variants), rows=tuple(rows)
    )


def held_replicas(variant: Variant) -> int:
    """Return the replicas to keep while nobody knows better: what is, or what was last decided if more."""
    wanted = max(variant.current_replicas, variant.desired_replicas or 0)
    return wanted if variant.max_replicas is None else min(wanted, variant.max_replicas)


def _rows(
    demand: ModelDemand,
    capacities: Mapping[tuple[str, str], Capacity],
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
    warm = 0 if demand.may_scale_to_zero else 1
    rows = row(Stage.MINIMUM, warm, [(index, 1) for index, _ in numbered])
    for index, variant in numbered:
        rows += row(Stage.MINIMUM, variant.min_replicas, [(index, 1)])
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


def _terms(
    variant: Variant, node_index: Mapping[str, int], *, most: int, frozen: bool, settings: Settings
) -> VariantTerms:
    bound = tuple(node_index.get(r.node) for r in staying_replicas(variant) if r.node is not None)
    limit = UNLIMITED_REPLICAS if variant.max_replicas is None else variant.max_replicas
    cost = int((min(variant.cost_per_replica, MAX_COST) / COST_UNIT).to_integral_value(rounding=ROUND_UP))
    return VariantTerms(
        name=f"{variant.namespace}/{variant.name}",
        accelerators=variant.accelerators_per_replica,
        cost=cost * PERCENT,
        start_price=cost * settings.transition_price_percent,
        stop_price=cost * settings.transition_price_percent,
        current=allowed_replicas(variant),
        bound=bound,
        ready=sum(replica.ready for replica in staying_replicas(variant)),
        lower=min(len(bound), limit) if frozen else 0,
        upper=min(limit, max(most, variant.current_replicas)),
    )


def _free(nodes: Sequence[Node], terms: Sequence[VariantTerms]) -> tuple[int, ...]:
    free = [node.accelerators_allocatable - node.accelerators_used_by_others for node in nodes]
    for variant in terms:
        for node in variant.bound:
            if node is not None:
                free[node] -= variant.accelerators
    return tuple(free)
