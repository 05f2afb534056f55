"""Advisory decisions, which are published but not applied: their scope, message and saving.

Pure. If only some variants are advisory, two plans are needed: in the plan that is applied, the replicas of
advisory variants are fixed, since nothing scales them.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from apiserver.kinds.annotations import ADVISORY
from apiserver.kinds.identity import Key
from controller.observe.claim import Orders
from controller.observe.conditions import ConditionReason
from controller.planning.decision import Plan, VariantDecision
from controller.planning.snapshot import Snapshot, Variant

_CENT: Final = Decimal("0.01")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Where a setting applies, in addition to objects that select it themselves."""

    everywhere: bool = False
    namespaces: frozenset[str] = frozenset()

    def includes(self, namespace: str) -> bool:
        """Tell whether the setting applies in a namespace."""
        return self.everywhere or namespace in self.namespaces


NOWHERE: Final = Scope()
"""No namespace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """Why the decision for one variant is advice only, and the saving if it were followed."""

    reason: ConditionReason
    """The condition reason."""

    because: str
    """The setting that makes it advisory."""

    saved_per_hour: Decimal
    """Cost per hour of the running replicas minus that of the granted ones."""

    @property
    def message(self) -> str:
        """Return one sentence about the setting and the saving."""
        return f"{self.because}: nothing is scaled, {_saving_text(self.saved_per_hour)}"


def why_advisory(namespace: str, orders: Orders, scope: Scope) -> tuple[ConditionReason, str] | None:
    """Return a reason and the setting that makes a variant advisory, or None."""
    if scope.everywhere:
        return ConditionReason.CLUSTER_ADVISORY, "planning.advisory is true"
    if scope.includes(namespace):
        return ConditionReason.NAMESPACE_ADVISORY, f"planning.advisoryNamespaces lists {namespace}"
    if orders.is_advisory:
        return ConditionReason.OBJECT_ADVISORY, f"{ADVISORY} is true"
    return None


def advice(variant: Variant, decision: VariantDecision, why: tuple[ConditionReason, str]) -> Advice:
    """Return the advice for a decision, compared with the running replicas."""
    fewer = variant.current_replicas - decision.replicas
    return Advice(reason=why[0], because=why[1], saved_per_hour=variant.cost_per_replica * fewer)


def acted_on(snapshot: Snapshot, advised_keys: AbstractSet[Key]) -> Snapshot:
    """Return the snapshot to plan from if nothing scales the advisory variants: they are paused."""
    variants = (
        replace(item, is_paused=True) if item.key in advised_keys else item for item in snapshot.variants
    )
    return replace(snapshot, variants=tuple(variants))


def join_plans(acting: Plan, advising: Plan, advised_keys: AbstractSet[Key]) -> Plan:
    """Return the applied plan, with the decisions of the other plan for advisory variants."""
    advised = {item.key: item for item in advising.decisions if item.key in advised_keys}
    return replace(acting, decisions=tuple(advised.get(item.key, item) for item in acting.decisions))


def _saving_text(per_hour: Decimal) -> str:
    amount = f"{abs(per_hour).quantize(_CENT):f}"
    if not per_hour:
        return "following it would cost the same"
    return f"following it would {'save' if per_hour > 0 else 'cost'} {amount} per hour"
