"""Decisions that are told and not acted on: for whom, what they say, and what following them would save.

Pure. Two plans are needed where only some variants are advised: in the one that is acted on, what runs of the
advised stands, since nobody will move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason
from controller.observe.orders import ADVISORY, orders_of
from controller.planning.decision import Decision, Plan
from controller.planning.snapshot import Snapshot, Variant

Key = tuple[str, str]

_CENT: Final = Decimal("0.01")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Where something holds, besides the objects that say so themselves."""

    everywhere: bool = False
    namespaces: frozenset[str] = frozenset()

    def includes(self, namespace: str) -> bool:
        """Tell whether it holds in a namespace."""
        return self.everywhere or namespace in self.namespaces


NOWHERE: Final = Scope()
"""In no namespace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """Why the decision for one variant is told only, and what following it would save."""

    reason: ConditionReason
    """One word for programs."""

    because: str
    """The setting that says so."""

    saved_per_hour: Decimal
    """Cost of what runs less cost of what would be granted."""

    @property
    def message(self) -> str:
        """Return the sentence about both."""
        return f"{self.because}: nothing is scaled, {_saving(self.saved_per_hour)}"


def advised(autoscaling: Json, scope: Scope) -> tuple[ConditionReason, str] | None:
    """Return a reason and the setting by which one is advised only, or None."""
    if scope.everywhere:
        return ConditionReason.CLUSTER_ADVISORY, "planning.advisory is true"
    namespace = autoscaling["metadata"]["namespace"]
    if scope.includes(namespace):
        return ConditionReason.NAMESPACE_ADVISORY, f"planning.advisoryNamespaces lists {namespace}"
    if orders_of(autoscaling).is_advisory:
        return ConditionReason.OBJECT_ADVISORY, f"{ADVISORY} is true"
    return None


def advice(variant: Variant, decision: Decision, why: tuple[ConditionReason, str]) -> Advice:
    """Return what a decision amounts to beside what runs."""
    fewer = variant.current_replicas - decision.replicas
    return Advice(reason=why[0], because=why[1], saved_per_hour=variant.cost_per_replica * fewer)


def acted_on(snapshot: Snapshot, advised_keys: AbstractSet[Key]) -> Snapshot:
    """Return the snapshot as it is where nobody scales the advised: what runs of them stands."""
    variants = (
        replace(item, is_paused=True) if item.key in advised_keys else item for item in snapshot.variants
    )
    return replace(snapshot, variants=tuple(variants))


def joined(acting: Plan, advising: Plan, advised_keys: AbstractSet[Key]) -> Plan:
    """Return the plan that is acted on, with the decisions of the other one for the advised."""
    told = {_key(decision): decision for decision in advising.decisions if _key(decision) in advised_keys}
    return replace(acting, decisions=tuple(told.get(_key(item), item) for item in acting.decisions))


def with_advice(plan: Plan, advices: Mapping[Key, Advice]) -> Plan:
    """Return the plan whose sentences say which decisions are told only."""
    return replace(plan, decisions=tuple(_worded(item, advices.get(_key(item))) for item in plan.decisions))


def _worded(decision: Decision, found: Advice | None) -> Decision:
    return replace(decision, message=f"{decision.message}; {found.message}") if found else decision


def _saving(per_hour: Decimal) -> str:
    amount = f"{abs(per_hour).quantize(_CENT):f}"
    if not per_hour:
        return "following it would cost the same"
    return f"following it would {'save' if per_hour > 0 else 'cost'} {amount} per hour"


def _key(decision: Decision) -> Key:
    return decision.namespace, decision.name
