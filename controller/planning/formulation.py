"""Formulate the integer placement problem from a snapshot and the models' demands.

A model has soft rows for each stage: its minimums, its present load, its required capacity, and what is to
continue. Quotas, budgets, and what must or may exist of a variant are hard bounds. Amounts are integers whose
sums stay exact. The weight of a shortfall is the value of the missing capacity. docs/design/planning-model.md
describes the problem.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter

from controller.planning.cluster import Node
from controller.planning.demand import (
    ModelDemand,
    allowed_replicas,
    anticipated_replicas,
    rate_of,
    serving_rate,
    staying_replicas,
)
from controller.planning.inputs import Settings
from controller.planning.inventory import Topologies, bins, node_to_come
from controller.planning.limits import limit_rows
from controller.planning.load import CapacitySource
from controller.planning.problem import (
    EXACT_LIMIT,
    PER_MILLE,
    UNLIMITED_REPLICAS,
    CountedReplicas,
    CoverRow,
    GrowthTerms,
    Level,
    PlacementProblem,
    Stage,
    VariantTerms,
)
from controller.planning.ranges import cost_units
from controller.planning.snapshot import Snapshot, Variant

LOAD_STEPS = 10
"""Resolution of the weights of a present load."""

MAX_SUM = EXACT_LIMIT // (2 * PER_MILLE)
"""Limit on the sum of a requirement and of all capacity that may be planned for it, about 4 * 10^12: larger
ones are stated in a coarser unit. Half of what is exact per mille leaves room for rounding up.
"""


def formulate(snapshot: Snapshot, demands: Sequence[ModelDemand], *, settings: Settings) -> PlacementProblem:
    """Return the problem over the nodes, sorted by name, and the variants of all models, in given order."""
    nodes = sorted(snapshot.nodes, key=attrgetter("name"))
    places_of = _places(nodes)
    pools = sorted(snapshot.pools, key=lambda pool: pool.name)
    topologies = Topologies(nodes, [node_to_come(pool) for pool in pools], snapshot.variants)
    rows: list[CoverRow] = []
    terms: list[VariantTerms] = []
    for model, demand in enumerate(demands):
        own = _rows(demand, model=model, first_variant=len(terms), settings=settings)
        enough = _enough(own)
        for index, variant in enumerate(demand.variants, start=len(terms)):
            untouchable = _untouchable(variant, demand)
            most = enough.get(index, 0)
            terms.append(
                _terms(variant, places_of, topologies, most=most, lower=untouchable, settings=settings)
            )
        rows += [_exact(row, terms) for row in own]
    variants = [variant for demand in demands for variant in demand.variants]
    grouped, home = bins(nodes, variants, pools)
    return PlacementProblem(
        variants=tuple(terms),
        free=_free(nodes, terms),
        bins=grouped,
        rows=weigh(rows, terms),
        limits=limit_rows(snapshot, variants, terms),
        growth=tuple(
            GrowthTerms(
                name=pool.name,
                bin=where,
                accelerators=pool.accelerators_per_node,
                price=cost_units(pool.price_per_node),
                limit=pool.nodes_addable,
                domains=topologies.domains(node_to_come(pool)),
            )
            for pool, where in zip(pools, home, strict=True)
            if where is not None
        ),
        topologies=topologies.of_nodes(),
    )


def held_replicas(variant: Variant) -> int:
    """Return the replicas to keep without a new decision: the current or last published ones, if more."""
    replicas = max(variant.current_replicas, variant.desired_replicas or 0)
    return replicas if variant.max_replicas is None else min(replicas, variant.max_replicas)


def outlasting_replicas(variant: Variant, demand: ModelDemand) -> int:
    """Return the replicas to keep because ready ones would be removed before others; 0 if ready ones go last.

    Without them, a target that removes its highest ordinals first could be left without a ready replica. If
    the model has several variants, each of them keeps as many ready ones as the demand needs.
    """
    rate, most = serving_rate(variant), allowed_replicas(variant)
    if not rate or ordered_replicas(variant) is not None:
        return 0
    ready = sorted(ordinal for ordinal in variant.ready_ordinals if ordinal < most)
    needed = min(len(ready), -(-demand.continuity_rate // rate))
    least = ready[needed - 1] + 1 if needed else 0
    return least if least > needed else 0


def _kept_replicas(variant: Variant, demand: ModelDemand) -> int:
    """Return the replicas that need a place whatever the demand: all, if the need is unknown."""
    if not demand.signal.decides:
        return held_replicas(variant)
    if _serves_unknown(variant, demand):
        ordered = ordered_replicas(variant)
        return allowed_replicas(variant) if ordered is None else min(ordered, allowed_replicas(variant))
    return outlasting_replicas(variant, demand)


def _continued_replicas(variant: Variant, demand: ModelDemand) -> int:
    """Return the replicas that stay as long as demand leaves room for them: all, while the model grows.

    The cheapest mix for a little more has often one replica less of some variant. A later cycle needs that
    replica again, and its start takes minutes.
    """
    return anticipated_replicas(variant) if demand.keeps_mix else 0


def load_weights(demand: ModelDemand, settings: Settings) -> tuple[int, int]:
    """Return the weights of the present load that existing replicas lack, and of that which all of them lack.

    A new replica serves after its start-up, and an existing one that is removed for it serves no more: of the
    time that a mix lasts, the former share counts for existing replicas only. Replicas that are starting
    count like ready ones: otherwise noise exchanges them for new ones in each cycle, and none becomes ready.
    """
    existing = round(LOAD_STEPS * demand.load.start_seconds / settings.standing_seconds)
    # Both rows count, however short or long a start is.
    existing = min(LOAD_STEPS - 1, max(1, existing))
    return existing, LOAD_STEPS - existing


def _rows(demand: ModelDemand, *, model: int, first_variant: int, settings: Settings) -> list[CoverRow]:
    row = partial(
        CoverRow, name=f"{demand.namespace}/{demand.model_id}", priority=demand.priority, model=model
    )
    variants = tuple(enumerate(demand.variants, start=first_variant))
    rows = []
    if floor := demand.floor:
        one_each = tuple([(index, 1) for index, _ in variants])
        rows.append(row(stage=Stage.MINIMUM, requirement=floor, terms=one_each))
    for index, variant in variants:
        for stage, replicas in (
            (Stage.MINIMUM, max(variant.min_replicas, ordered_replicas(variant) or 0)),
            (Stage.DEMAND, _kept_replicas(variant, demand)),
            (Stage.CONTINUITY, _continued_replicas(variant, demand)),
        ):
            if replicas:
                rows.append(row(stage=stage, requirement=replicas, terms=((index, 1),)))
    return rows + _capacity_rows(demand, row, variants, settings)


def _capacity_rows(
    demand: ModelDemand,
    row: Callable[..., CoverRow],
    variants: Sequence[tuple[int, Variant]],
    settings: Settings,
) -> list[CoverRow]:
    def capacity(rate: Callable[[Variant], int]) -> tuple[tuple[int, int], ...]:
        return tuple([(index, one) for index, variant in variants if (one := rate(variant))])

    rows = []
    is_decided = demand.signal.decides
    if is_decided and (load := demand.load_rate(settings.standing_seconds)):
        existing, every = load_weights(demand, settings)
        of_load = partial(row, stage=Stage.LOAD, requirement=load)
        rows.append(of_load(terms=capacity(rate_of), weight=every))
        rows.append(of_load(terms=capacity(serving_rate), weight=existing, counted=CountedReplicas.EXISTING))
    if required := demand.required_rate:
        rows.append(row(stage=Stage.DEMAND, requirement=required, terms=capacity(rate_of)))
    if is_decided and (continued := demand.continuity_rate):
        ready = capacity(serving_rate)
        rows.append(
            row(stage=Stage.CONTINUITY, requirement=continued, terms=ready, counted=CountedReplicas.READY)
        )
    return rows


def _exact(row: CoverRow, terms: Sequence[VariantTerms]) -> CoverRow:
    """Return a row in a unit in which the sums of its amounts are exact (`MAX_SUM`).

    Amounts are rounded up like the requirement, so that replicas which cover it still do: with amounts
    rounded down, a requirement of exactly the existing capacity would need one more replica in each cycle. A
    replica counts for less than one unit too much, and `MAX_SUM` has trillions of them.
    """
    # A replica that serves more covers the requirement as well.
    amounts = [(v, min(amount, row.requirement)) for v, amount in row.terms]
    unit = -(-(row.requirement + sum([amount * terms[v].upper for v, amount in amounts])) // MAX_SUM)
    return replace(
        row,
        requirement=-(-row.requirement // unit),
        terms=tuple([(v, -(-amount // unit)) for v, amount in amounts]),
    )


def _enough(rows: Sequence[CoverRow]) -> dict[int, int]:
    """Return by variant how many of its replicas alone satisfy every row; more are never needed."""
    enough: dict[int, int] = {}
    for row in rows:
        for variant, amount in row.terms:
            most = -(-row.requirement // amount)
            if most > enough.get(variant, 0):
                enough[variant] = most
    return enough


def ordered_replicas(variant: Variant) -> int | None:
    """Return the replicas that a user ordered by a pin or a pause; None without an order."""
    return allowed_replicas(variant) if variant.is_paused else variant.pinned_replicas


def _untouchable(variant: Variant, demand: ModelDemand) -> int:
    """Return the replicas that must stay: of unknown demand or capacity, ordered, young or protected."""
    if not demand.signal.decides or _serves_unknown(variant, demand):
        return variant.current_replicas
    protected = 0 if variant.may_be_preempted else _needed_replicas(variant, demand)
    return max(ordered_replicas(variant) or 0, protected)


def _serves_unknown(variant: Variant, demand: ModelDemand) -> bool:
    """Return whether it is unknown how much of its model's demand a variant serves."""
    is_stated = variant.capacity is not None and variant.capacity.source is CapacitySource.STATED
    return not serving_rate(variant) and not is_stated and demand.upper_rate != 0


def _needed_replicas(variant: Variant, demand: ModelDemand) -> int:
    """Return the replicas that must stay so that no required capacity the model has is lost."""
    own = rate_of(variant)
    spare = max(0, demand.anticipated_rate - demand.required_rate)
    return max(0, variant.current_replicas - spare // own) if own else variant.current_replicas


def _terms(
    variant: Variant,
    places_of: Callable[[tuple[str, ...]], tuple[int, ...]],
    topologies: Topologies,
    *,
    most: int,
    lower: int,
    settings: Settings,
) -> VariantTerms:
    staying = staying_replicas(variant)
    bound = tuple([places_of(nodes) for replica in staying if (nodes := replica.nodes)])
    limits = [most for most in (variant.max_replicas, ordered_replicas(variant)) if most is not None]
    # Each possible replica takes memory, and users can set large numbers. Existing pods always count.
    possible = max(len(staying), min(UNLIMITED_REPLICAS, max(most, variant.current_replicas)))
    cost = cost_units(variant.cost_per_replica)
    return VariantTerms(
        name=f"{variant.namespace}/{variant.name}",
        accelerators=variant.accelerators_per_pod,
        cost=cost,
        # Amortized over the time for which a mix is expected to last.
        start_price=round(cost * variant.start_seconds / settings.standing_seconds),
        stop_price=0,
        current=allowed_replicas(variant),
        bound_replicas=bound,
        ready=sum([replica.ready for replica in staying]),
        pods=variant.pods_per_replica,
        # A hard bound must be feasible, and only bound replicas have their places for certain.
        lower=min([len(bound), lower, *limits]),
        upper=min([possible, *limits]),
        together=topologies.together(variant),
        most_per_node=variant.rules.most_per_node,
        spread=topologies.spread_terms(variant),
    )


def _places(nodes: Sequence[Node]) -> Callable[[tuple[str, ...]], tuple[int, ...]]:
    """Return a function from node names to indices of known nodes; equal names share one tuple."""
    index = {node.name: number for number, node in enumerate(nodes)}

    @cache
    def places_of(names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple([index[name] for name in names if name in index])

    return places_of


def _free(nodes: Sequence[Node], terms: Sequence[VariantTerms]) -> tuple[int, ...]:
    free = [node.accelerators_allocatable - node.accelerators_used_by_others for node in nodes]
    for variant in terms:
        for places in variant.bound_replicas:
            for node in places:
                free[node] -= variant.accelerators
    return tuple(free)


STEPS = 1000
"""Resolution of weights: the weight of the most valuable requirement of a level."""

FLOOR_SHARE = 4
"""Divisor of a level's average value that gives its minimum weight, so that small models are not starved."""


def weigh(rows: Sequence[CoverRow], terms: Sequence[VariantTerms]) -> tuple[CoverRow, ...]:
    """Return the rows with their weights; only rows of load and demand are weighted.

    The value of a requirement is the least cost of serving it.
    """
    weighs = (Stage.LOAD, Stage.DEMAND)
    values = {index: _value(row, terms) for index, row in enumerate(rows) if row.stage in weighs}
    levels: dict[Level, list[int]] = defaultdict(list)
    for index in values:
        levels[rows[index].level].append(index)
    weights = {index: weight for members in levels.values() for index, weight in _weights(members, values)}
    return tuple(
        [
            replace(row, weight=row.weight * weights[index]) if index in weights else row
            for index, row in enumerate(rows)
        ]
    )


def _weights(members: Sequence[int], values: dict[int, int]) -> list[tuple[int, int]]:
    most = max(values[index] for index in members)
    if not most:
        return [(index, 1) for index in members]
    floor = sum(values[index] for index in members) // (len(members) * FLOOR_SHARE)
    return [(index, max(1, STEPS * max(values[index], floor) // most)) for index in members]


def _value(row: CoverRow, terms: Sequence[VariantTerms]) -> int:
    """Return the least cost of serving a requirement."""
    return min(
        [-(-row.requirement // amount) * terms[variant].cost for variant, amount in row.terms if amount],
        default=0,
    )
