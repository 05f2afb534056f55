"""Claims and observations of variants, as readers of objects would return them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from controller.observe.claim import Claim, Owner, OwnerKind
from controller.observe.conditions import ConditionReason
from controller.observe.observed import ObservedVariant
from controller.observe.targets import TargetKey, TargetKind, target_of
from controller.sizing.records import VariantFacts
from support.manifests import deployment

CLASS_FOUND = (True, ConditionReason.CLASS_FOUND, "service class 'Premium', priority 1")


def claim(name: str = "chat", **fields: Any) -> Claim:
    """Return a claim of a VariantAutoscaling on the Deployment with its name."""
    owner, target = Owner(OwnerKind.VARIANT, "ns", name), TargetKey(TargetKind.DEPLOYMENT, "ns", name)
    return replace(Claim(owner=owner, name=name, model_id="m", target=target), **fields)


def observed(name: str = "chat", **fields: Any) -> ObservedVariant:
    """Return what was found about a variant with a Deployment of one replica."""
    made = deployment(name, product="A100", accelerators=1, replicas=1)
    plain = ObservedVariant(
        claim=claim(name),
        target=target_of(TargetKey(TargetKind.DEPLOYMENT, "ns", name), made),
        accelerator="A100",
        cost=(Decimal("40.00"), "UnitCost"),
        facts=VariantFacts(),
        service_class=CLASS_FOUND,
    )
    return replace(plain, **fields)
