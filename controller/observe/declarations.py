"""Reads what declares variants: VariantAutoscalings (v1alpha2), and annotated autoscalers of other kinds.

Pure functions that return their claims, or why they have none. An error in reading one object sets only that
one aside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from apiserver.kinds.annotated import (
    MANAGED,
    cost_of,
    managed_autoscalers,
    model_of,
    reference_of,
    term_problems,
)
from apiserver.kinds.authorship import writer_identity
from apiserver.kinds.decision_record import read_record, record_text
from apiserver.kinds.identity import Key, key_of, seniority
from apiserver.kinds.llmd.identity import UNKNOWN, label_of
from apiserver.kinds.llmd.v1alpha2 import VariantAutoscaling
from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.metric_labels import annotated_labels, variant_labels
from apiserver.schema.json import Json, as_object
from apiserver.schema.validation import validate
from controller.observe.accelerators import short_name
from controller.observe.claim import (
    Claim,
    Claimant,
    Claims,
    Exclusion,
    Orders,
    Owner,
    OwnerKind,
    orders_of,
    unplanned_by,
)
from controller.observe.conditions import ConditionReason
from controller.observe.performance import profile_of, resume
from controller.observe.scales import ScaleReference, is_reference
from controller.observe.targets import scaled_by, target_key


def claims_of(autoscalings: Iterable[Json]) -> Claims:
    """Return the claims of VariantAutoscalings; an error in reading one sets only that one aside."""
    claims: list[Claim] = []
    unplanned: dict[Key, Exclusion] = {}
    values = tuple(autoscalings)
    for value in values:
        try:
            if wrong := validate(VariantAutoscaling, {"spec": value.get("spec")}):
                # It was stored before admission was installed, or bypassed it.
                invalid = ConditionReason.INVALID_CONFIGURATION
                unplanned[key_of(value)] = Exclusion(invalid, str(wrong[0]))
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


Records = Mapping[str, Mapping[str, str]]
"""The records of decisions on annotated autoscalers, as text, by namespace and uid."""


def claims_of_annotated(
    autoscalers: Sequence[Json], scaled_objects: Sequence[Json], records: Records, *, claimed: Collection[Key]
) -> Claims:
    """Return the claims of annotated autoscalers; an error in reading one sets only that one aside.

    `claimed` are the names of other variants. Of two objects with one name, the older one has it.
    """
    claims: list[Claim] = []
    unplanned: dict[Key, Exclusion] = {}
    claimants: list[Claimant] = []
    names: dict[Key, OwnerKind] = dict.fromkeys(claimed, OwnerKind.VARIANT)
    for value in sorted(managed_autoscalers(autoscalers, scaled_objects), key=seniority):
        owner = Owner(OwnerKind(value["kind"]), *key_of(value))
        claimant = annotated_claimant(value, records)
        other = names.setdefault(owner[1:], owner.kind)
        if owner[1:] in claimed or other is not owner.kind:
            key = owner.namespace, f"{owner.kind.short_name}/{owner.name}"
            claimants.append(annotated_claimant(value, records, key=key))
            unplanned[key] = _without_name(owner, other)
            continue
        claimants.append(claimant)
        try:
            claims.append(resume(claim_of_annotated(value, owner), claimant.status))
        except Exception as error:  # noqa: BLE001 (an error of one object must not affect others)
            unplanned[claimant.key] = unplanned_by(error)
    return Claims(readable=tuple(claims), unplanned=unplanned, claimants=tuple(claimants))


def annotated_claimant(value: Json, records: Records, *, key: Key | None = None) -> Claimant:
    """Return an annotated autoscaler as the object that receives decisions.

    With a `key`, another object has its name, and its metrics have no labels.
    """
    metadata = value["metadata"]
    text = records.get(metadata["namespace"], {}).get(metadata.get("uid") or "")
    status = as_object(read_record(text).get("status"))
    labels = {} if key else annotated_labels(value, status)
    return Claimant(
        key=key or key_of(value),
        value=value,
        status=status,
        labels=labels,
        is_annotated=True,
        is_stored=text == record_text(value, labels, status),
    )


def claim_of_annotated(value: Json, owner: Owner) -> Claim:
    """Return the claim of an annotated autoscaler, without what was published. Raises ValueError.

    Its bounds are those of the target's autoscaler, which it is itself.
    """
    problems, reference, label = tuple(term_problems(value)), reference_of(value), label_of(value)
    if not (model := model_of(value)):
        raise ValueError("; ".join(problems))
    if not is_reference(reference):
        raise ValueError("spec.scaleTargetRef: must name the kind and the name of the object to scale")
    least = "minReplicas" if owner.kind is OwnerKind.HORIZONTAL_POD_AUTOSCALER else "minReplicaCount"
    return Claim(
        owner=owner,
        name=owner.name,
        created=value["metadata"].get("creationTimestamp") or "",
        model_id=model,
        target=target_key(owner.namespace, reference),
        accelerator=short_name(label) if label and label != UNKNOWN else "",
        cost=cost_of(value),
        orders=_orders(value, owner.kind, problems),
        may_scale_to_zero=as_object(value.get("spec")).get(least) == 0,
    )


def annotated_references(
    autoscalers: Sequence[Json], scaled_objects: Sequence[Json]
) -> Iterator[ScaleReference]:
    """Yield the references of annotated autoscalers to their targets; invalid ones are omitted."""
    for value in managed_autoscalers(autoscalers, scaled_objects):
        if is_reference(reference := reference_of(value)):
            yield value["metadata"]["namespace"], reference


def _orders(value: Json, kind: OwnerKind, problems: tuple[str, ...]) -> Orders:
    orders = orders_of(value, kind)
    return replace(orders, problems=(*orders.problems, *problems))


def _without_name(owner: Owner, other: OwnerKind) -> Exclusion:
    text = (
        f"{other} {owner.name!r} has the same name, by which autoscalers select the metric, and takes"
        f" precedence: rename this {owner.kind}, or remove its annotation {MANAGED}"
    )
    return Exclusion(ConditionReason.INVALID_CONFIGURATION, text)
