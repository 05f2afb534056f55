"""Leave out variants and node pools whose prices are too large to compare exactly, and plan the others.

Prices are compared as sums, so one absurd cost would otherwise prevent the plan for all. A variant that is
left out keeps its current replicas, as if a user had paused it: they hold their nodes, serve the load of
their model, and count against quotas and budgets. A node pool that is left out adds no nodes. If many prices
are too large only together, the largest are left out until the others can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from controller.planning.assemble import total_cost
from controller.planning.cluster import Budget, NodePool
from controller.planning.decision import BoundBy, Plan, Reason, VariantDecision
from controller.planning.demand import allowed_replicas
from controller.planning.engine import dearest
from controller.planning.inputs import Settings
from controller.planning.preparing import PreparedProblem, prepare
from controller.planning.problem import GrowthTerms, VariantTerms
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparable:
    """A prepared problem whose prices can be compared exactly, and why the others are not part of it."""

    prepared: PreparedProblem
    variants: Mapping[Key, str]
    """Why a variant is left out, by (namespace, name)."""

    pools: Mapping[str, str]
    """Why a node pool is left out, by name."""

    def with_omissions(self, plan: Plan, snapshot: Snapshot) -> Plan:
        """Return the plan with the decisions for the variants of a snapshot that are left out."""
        if not (self.variants or self.pools):
            return plan
        variants = {variant.key: variant for variant in snapshot.variants}
        own_decisions = [
            _keep(item, variants[item.key], self.variants[item.key]) if item.key in self.variants else item
            for item in plan.decisions
        ]
        left_out = {f"variant {'/'.join(key)}": why for key, why in self.variants.items()}
        left_out |= {f"node pool {name}": why for name, why in self.pools.items()}
        return replace(
            plan,
            decisions=tuple(own_decisions),
            cost=total_cost(own_decisions, snapshot.variants),
            omissions=tuple(f"{what} is left out: {why}" for what, why in sorted(left_out.items())),
        )


def comparable(snapshot: Snapshot, settings: Settings) -> Comparable:
    """Return the problem of a snapshot without the variants and pools of the largest prices, if necessary."""
    variants: dict[Key, str] = {}
    pools: dict[str, str] = {}
    while True:
        prepared = prepare(_without(snapshot, variants, pools), settings)
        # The plain problem has other prices: a variant that is dearer in one of them may not be in the other.
        omitted = dearest(prepared.problem) or dearest(prepared.plain_problem)
        if not omitted:
            return Comparable(prepared=prepared, variants=variants, pools=pools)
        keyed = {"/".join(variant.key): variant for variant in snapshot.variants}
        pools_by_name = {pool.name: pool for pool in snapshot.pools}
        for terms in omitted:
            if isinstance(terms, GrowthTerms):
                pools[terms.name] = _why_pool(pools_by_name[terms.name])
            else:
                variant = keyed[terms.name]
                variants[variant.key] = _why_variant(variant, terms)


def _without(snapshot: Snapshot, variants: Mapping[Key, str], pools: Mapping[str, str]) -> Snapshot:
    """Return the snapshot with some variants paused and free of charge, and without some pools."""
    if not (variants or pools):
        return snapshot
    left_out = [variant for variant in snapshot.variants if variant.key in variants]
    return replace(
        snapshot,
        variants=tuple(
            replace(variant, is_paused=True, min_replicas=0, cost_per_replica=Decimal(0))
            if variant.key in variants
            else variant
            for variant in snapshot.variants
        ),
        pools=tuple(pool for pool in snapshot.pools if pool.name not in pools),
        budgets=tuple(_less(budget, left_out) for budget in snapshot.budgets),
    )


def _less(budget: Budget, left_out: list[Variant]) -> Budget:
    """Return what a budget leaves for others."""
    used = sum(
        variant.cost_per_replica * allowed_replicas(variant)
        for variant in left_out
        if not budget.namespaces or variant.namespace in budget.namespaces
    )
    return replace(budget, cost_per_hour=max(Decimal(0), budget.cost_per_hour - used))


def _keep(decision: VariantDecision, variant: Variant, why: str) -> VariantDecision:
    kept = allowed_replicas(variant)
    return replace(
        decision,
        replicas=kept,
        unconstrained_replicas=kept,
        bound_by=BoundBy.SOLVER,
        reason=Reason.HOLDING,
        message=f"{variant.name} stays at {count(kept, 'replica')}: {why}",
        reliefs=(),
    )


def _why_variant(variant: Variant, terms: VariantTerms) -> str:
    remedies = ["its cost (spec.variantCost, or the price of its accelerator)"]
    if terms.start_price > terms.cost:
        remedies.append(f"its start time of {variant.start_seconds:.0f} s")
    if variant.min_replicas >= terms.upper:
        remedies.append(f"its minReplicas of {variant.min_replicas}")
    else:
        remedies.append("its maxReplicas")
    return _why(terms.upper, "replica", variant.cost_per_replica, " or ".join(remedies))


def _why_pool(pool: NodePool) -> str:
    return _why(pool.nodes_addable, "node", pool.price_per_node, "pricePerNode or nodesAddable")


def _why(number: int, noun: str, price: Decimal, remedy: str) -> str:
    what = f"{count(number, noun)} at {price:f} per hour each cost too much"
    return f"{what} to be compared exactly with others; lower {remedy}"
