"""Reads VariantAutoscalings (v1alpha2): their claims, or why they have none. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from apiserver.kinds.authorship import writer_identity
from apiserver.kinds.identity import Key, key_of
from apiserver.kinds.llmd.identity import label_of
from apiserver.kinds.llmd.v1alpha2 import VariantAutoscaling
from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.metric_labels import variant_labels
from apiserver.schema.json import Json, as_object
from apiserver.schema.validation import validate
from controller.observe.accelerators import short_name
from controller.observe.claim import Claim, Claimant, Claims, Owner, OwnerKind
from controller.observe.conditions import ConditionReason
from controller.observe.overrides import orders_of
from controller.observe.performance import profile_of, resume
from controller.observe.targets import scaled_by
from controller.observe.unplanned import Unplanned, unplanned_by


def claims_of(autoscalings: Iterable[Json]) -> Claims:
    """Return the claims of VariantAutoscalings; an error in reading one sets only that one aside."""
    claims: list[Claim] = []
    unplanned: dict[Key, Unplanned] = {}
    values = tuple(autoscalings)
    for value in values:
        try:
            if wrong := validate(VariantAutoscaling, {"spec": value.get("spec")}):
                # It was stored before admission was installed, or bypassed it.
                invalid = ConditionReason.INVALID_CONFIGURATION
                unplanned[key_of(value)] = Unplanned(reason=invalid, message=str(wrong[0]))
            else:
                claims.append(claim_of(value))
        except Exception as error:  # noqa: BLE001 (an error of one object must not affect others)
            unplanned[key_of(value)] = unplanned_by(error)
    return Claims(readable=tuple(claims), unplanned=unplanned, claimants=tuple(map(claimant_of, values)))


def claimant_of(value: Json) -> Claimant:
    """Return the record of a raw VariantAutoscaling as the object that receives decisions."""
    return Claimant(
        key=key_of(value), value=value, status=as_object(value.get("status")), labels=variant_labels(value)
    )


def claim_of(value: Json) -> Claim:
    """Return the claim of a well-formed VariantAutoscaling."""
    metadata, spec = value["metadata"], value["spec"]
    named, reference = spec.get("accelerator") or label_of(value), spec.get("sloClassRef")
    cost: str = spec.get("variantCost", DEFAULT_COST)
    profile, problems = profile_of(spec.get("variantProfile"))
    claim = Claim(
        owner=Owner(OwnerKind.VARIANT, *key_of(value)),
        name=metadata["name"],
        created=metadata.get("creationTimestamp") or "",
        model_id=spec["modelID"],
        target=scaled_by(value),
        accelerator=short_name(named) if named else "",
        accelerator_count=spec.get("acceleratorCount"),
        cost=None if cost == DEFAULT_COST else Decimal(cost),  # admission writes the default
        service_class=(reference["name"], reference["key"]) if reference is not None else None,
        orders=orders_of(value),
        writer=writer_identity(value),
        profile=profile,
        bounds=(spec.get("minReplicas", 0), spec.get("maxReplicas")),
        may_scale_to_zero=spec.get("minReplicas") == 0,
        problems=problems,
    )
    return resume(claim, as_object(value.get("status")))
