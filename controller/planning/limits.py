"""Quotas, budgets and ceilings of models as hard limit rows.

A quota or budget below current use does not remove replicas that are needed: the variants under it keep what
they have, and none gets more until use is within the limit. Ceilings and strict budgets apply at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_DOWN

from controller.planning.cluster import Budget, Quota
from controller.planning.problem import LimitKind, LimitRow, VariantTerms
from controller.planning.ranges import COST_UNIT, RESOLUTION, cost_units
from controller.planning.snapshot import PlannedModel, Snapshot, Variant

MAX_LIMIT = 2**62
"""Larger limits are stated as this: it is never reached, and the engine has 64-bit integers."""


def limit_rows(
    snapshot: Snapshot, variants: Sequence[Variant], terms: Sequence[VariantTerms]
) -> tuple[LimitRow, ...]:
    """Return the limit rows, ordered by name within each kind; `terms` are those of the variants."""
    rows: list[LimitRow] = []
    for _, row, is_exceeded in stated_limits(snapshot, variants, terms):
        rows += _hold_rows(row, terms) if is_exceeded else [row]
    return (*rows, *_ceilings(snapshot.models, variants))


def stated_limits(
    snapshot: Snapshot, variants: Sequence[Variant], terms: Sequence[VariantTerms]
) -> Iterator[tuple[Quota | Budget, LimitRow, bool]]:
    """Yield each quota and budget, its row, and whether current replicas exceed it and are kept."""
    for quota in sorted(snapshot.quotas, key=lambda quota: (quota.namespace, quota.name)):
        row = _quota(quota, variants)
        yield quota, row, current_use(row, terms) > row.limit
    for budget in sorted(snapshot.budgets, key=lambda budget: budget.name):
        row = _budget(budget, variants)
        yield budget, row, current_use(row, terms) > row.limit and not budget.is_strict


def current_use(row: LimitRow, terms: Sequence[VariantTerms]) -> int:
    """Return how much of a limit the current replicas use."""
    return sum(amount * terms[v].current for v, amount in row.terms)


def _hold_rows(row: LimitRow, terms: Sequence[VariantTerms]) -> Iterator[LimitRow]:
    """Yield a row for each variant under a limit that caps it at its current replicas."""
    for v, amount in row.terms:
        yield replace(row, limit=amount * terms[v].current, terms=((v, amount),), allowed=row.limit)


def _quota(quota: Quota, variants: Sequence[Variant]) -> LimitRow:
    left = max(0, quota.accelerators)
    return LimitRow(
        name=f"{quota.namespace}/{quota.name}",
        kind=LimitKind.QUOTA,
        limit=min(left, MAX_LIMIT),
        others=quota.accelerators + quota.used_by_others - left,
        terms=tuple(
            (index, variant.accelerators_per_replica)
            for index, variant in enumerate(variants)
            if variant.namespace == quota.namespace
            and quota.accelerator in ("", variant.accelerator)
            and variant.accelerators_per_replica
        ),
    )


def _budget(budget: Budget, variants: Sequence[Variant]) -> LimitRow:
    whole = (budget.cost_per_hour / COST_UNIT).to_integral_value(rounding=ROUND_DOWN)
    return LimitRow(
        name=budget.name,
        kind=LimitKind.BUDGET,
        limit=min(int(whole) * RESOLUTION, MAX_LIMIT),
        terms=tuple(
            (index, cost_units(variant.cost_per_replica))
            for index, variant in enumerate(variants)
            if not budget.namespaces or variant.namespace in budget.namespaces
        ),
    )


def _ceilings(models: Sequence[PlannedModel], variants: Sequence[Variant]) -> Iterator[LimitRow]:
    for model in sorted(models, key=lambda model: (model.namespace, model.model_id)):
        if model.max_replicas is not None:
            yield LimitRow(
                name=f"{model.namespace}/{model.model_id}",
                kind=LimitKind.CEILING,
                limit=model.max_replicas,
                terms=tuple(
                    (index, 1)
                    for index, variant in enumerate(variants)
                    if (variant.namespace, variant.model_id) == (model.namespace, model.model_id)
                ),
            )
