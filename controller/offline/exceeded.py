"""Limits that stand exceeded although a plan keeps to them: none makes replicas go that run already."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from controller.offline.table import price
from controller.planning.decision import Plan
from controller.planning.snapshot import Snapshot
from controller.planning.wording import count

_WHY: Final = "limits stop what is new; what runs and is needed may stay"


def exceeded(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Yield a sentence for each budget and quota that what is granted exceeds."""
    granted = {(item.namespace, item.name): item.replicas for item in plan.decisions}
    for budget in snapshot.budgets:
        cost = sum(
            (
                variant.cost_per_replica * granted.get(variant.key, 0)
                for variant in snapshot.variants
                if not budget.namespaces or variant.namespace in budget.namespaces
            ),
            Decimal(0),
        )
        if cost > budget.cost_per_hour:
            allowed = price(budget.cost_per_hour)
            yield f"budget {budget.name} of {allowed} per hour is exceeded: {price(cost)}; {_WHY}"
    for quota in snapshot.quotas:
        held = sum(
            variant.accelerators_per_replica * granted.get(variant.key, 0)
            for variant in snapshot.variants
            if variant.namespace == quota.namespace and quota.accelerator in ("", variant.accelerator)
        )
        if held > max(0, quota.accelerators):
            what = f"{quota.accelerator} accelerator".strip()
            allowed = count(max(0, quota.accelerators), what)
            yield f"quota {quota.namespace}/{quota.name} of {allowed} is exceeded: {held}; {_WHY}"
