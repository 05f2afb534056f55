"""Check quotas, budgets and ceilings; use that already exceeds a limit may stay, but not grow."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.decision import Decision
    from controller.planning.snapshot import Snapshot

    Decisions = Mapping[tuple[str, str], Decision]
    Limit = tuple[str, Decimal, Sequence[Decimal]]
    """Name, limit, and use per replica of each variant."""


def limit_problems(snapshot: Snapshot, decisions: Decisions) -> Iterator[str]:
    """Yield a message for each limit that the plan exceeds."""
    for name, limit, amounts in (*_quotas(snapshot), *_budgets(snapshot), *_ceilings(snapshot)):
        granted = [decisions[v.namespace, v.name].replicas for v in snapshot.variants]
        planned = sum((a * count for a, count in zip(amounts, granted, strict=True)), Decimal(0))
        now = sum(
            (a * v.current_replicas for a, v in zip(amounts, snapshot.variants, strict=True)), Decimal(0)
        )
        if planned > max(limit, now):
            yield f"{name}: {planned} planned, {limit} allowed"


def _quotas(snapshot: Snapshot) -> Iterator[Limit]:
    for quota in snapshot.quotas:
        counted = [
            v.namespace == quota.namespace and quota.accelerator in ("", v.accelerator)
            for v in snapshot.variants
        ]
        amounts = [
            Decimal(v.accelerators_per_replica * c) for v, c in zip(snapshot.variants, counted, strict=True)
        ]
        yield f"quota {quota.namespace}/{quota.name}", Decimal(quota.accelerators), amounts


def _budgets(snapshot: Snapshot) -> Iterator[Limit]:
    for budget in snapshot.budgets:
        counted = [not budget.namespaces or v.namespace in budget.namespaces for v in snapshot.variants]
        amounts = [v.cost_per_replica * c for v, c in zip(snapshot.variants, counted, strict=True)]
        yield f"budget {budget.name}", budget.cost_per_hour, amounts


def _ceilings(snapshot: Snapshot) -> Iterator[Limit]:
    for rule in snapshot.models:
        if rule.max_replicas is not None:
            model = (rule.namespace, rule.model_id)
            amounts = [Decimal((v.namespace, v.model_id) == model) for v in snapshot.variants]
            yield f"maximum of {rule.namespace}/{rule.model_id}", Decimal(rule.max_replicas), amounts
