"""The kind VariantAutoscaling: names, versions, printer columns, object defaults and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from msgspec import UNSET

from apiserver.kinds.core.names import group_of
from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, GROUP, label_advice
from apiserver.kinds.llmd.identity import MOST_COST, implied_target, is_planned, variant_identifier
from apiserver.kinds.llmd.v1alpha2 import missing_parameters
from apiserver.kinds.meta import AGE, READY, condition
from apiserver.schema.conversion import read_kept
from apiserver.schema.json import Json, as_object
from apiserver.schema.kind import Column, ComputedDefault, Kind, Reference, Version
from apiserver.schema.paths import FieldPath

DEFAULT_COST: Final = "10.0"
"""The cost of one replica if no other is known."""

_LABEL_VALUE_CHARACTERS: Final = 63


_ACCELERATOR: Final = Column(
    "Accelerator", "string", ".status.currentAlloc.accelerator", "Accelerator type that the replicas use."
)
_MODEL: Final = Column("Model", "string", ".spec.modelID", "Model served.")
_CURRENT: Final = Column("Current", "integer", ".status.currentAlloc.numReplicas", "Requested replicas.")
_DESIRED: Final = Column(
    "Desired", "integer", ".status.desiredOptimizedAlloc.numReplicas", "Desired replicas."
)
_COST: Final = Column(
    "Cost", "string", ".status.currentAlloc.variantCost", "Cost of these replicas per hour."
)
_WIDE: Final = (
    Column("Target", "string", ".spec.scaleTargetRef.name", "Scale target.", priority=1),
    condition(
        "MetricsAvailable", "MetricsReady", description="Whether the engines report metrics.", priority=1
    ),
    condition(
        "DecisionFollowed", "Followed", description="Whether autoscalers follow the decision.", priority=1
    ),
    condition("Ready", "Message", member="message", description="Reason, in one sentence.", priority=1),
)


def _decision_column(name: str, member: str, description: str) -> Column:
    return Column(name, "integer", f".status.decision.{member}", description)


def _cost(value: Json) -> Iterator[ComputedDefault]:
    """Yield the default cost of an object in the current shape; others use the accelerator's unit cost.

    No cost is filled in if the object has no scale target: it is then a manifest of a release without a
    default cost.
    """
    spec = value.get("spec", {})
    names = {*spec, *_kept_of_spec(value)}  # fields that v1alpha1 cannot express also tell the shapes apart
    if "scaleTargetRef" in spec and names.isdisjoint(("modelProfile", *v1alpha1.LEGACY_FIELDS)):
        yield ComputedDefault(path=("spec", "variantCost"), value=DEFAULT_COST)


def _kept_of_spec(value: Json) -> Iterator[str]:
    """Yield the spec fields that conversion keeps in the annotation."""
    annotations = as_object(as_object(value.get("metadata")).get("annotations"))
    for field in read_kept(annotations.get(ANNOTATION)).fields:
        if len(field.path) > 1 and field.path[0] == "spec" and field.value is not UNSET:
            yield field.path[1]


def _identifier_advice(value: Json) -> list[str]:
    spec = value["spec"]
    expected = variant_identifier(spec)
    if "variantID" not in spec or spec["variantID"] == expected:
        return []
    return [f"spec.variantID is {spec['variantID']!r} but model, accelerator and count make {expected!r}"]


def _parameter_advice(value: Json) -> list[str]:
    profile = value["spec"].get("variantProfile", {}).get("perfParms")
    missing = missing_parameters(profile) if profile else []
    where = "spec.variantProfile.perfParms"
    return [f"{where}: {', '.join(missing)} missing: latency cannot be predicted"] if missing else []


def _target_advice(value: Json) -> list[str]:
    target = value["spec"].get("scaleTargetRef") or implied_target(value)
    if is_planned(target):
        return []
    condition = "only if the controller may read its scale: see docs/targets.md"
    return [f"spec.scaleTargetRef: {target['kind']} is planned {condition}"]


def _implied_target_advice(value: Json) -> list[str]:
    """Return a warning for an implied target, unless the shape is older: those never named a target."""
    spec = value["spec"]
    if any(name in spec for name in ("scaleTargetRef", "modelProfile", "variantProfile")):
        return []
    return [f"spec.scaleTargetRef is not set: the Deployment {implied_target(value)['name']!r} is meant"]


def _name_advice(value: Json) -> list[str]:
    if len((value.get("metadata") or {}).get("name") or "") <= _LABEL_VALUE_CHARACTERS:
        return []
    limit = f"longer than {_LABEL_VALUE_CHARACTERS} characters"
    return [f"metadata.name: {limit}: no HorizontalPodAutoscaler can select its metric by it"]


def _cost_advice(value: Json) -> list[str]:
    cost = value["spec"].get("variantCost", DEFAULT_COST)
    if Decimal(cost) <= MOST_COST:
        return []
    return [f"spec.variantCost: above {MOST_COST}, so the variant is not planned"]


def _references(value: Json) -> Iterator[Reference]:
    spec = value.get("spec", {})
    target = spec.get("scaleTargetRef") or implied_target(value)
    group = group_of(str(target.get("apiVersion") or "apps/v1"))
    kind = "" if group is None else target.get("kind", "")
    path = FieldPath().child("spec", "scaleTargetRef")
    yield Reference(path=path, group=group or "", kind=kind, name=target.get("name", ""), is_scaled=True)
    if service_class := spec.get("sloClassRef"):
        yield Reference(
            path=path.parent.child("sloClassRef"),
            group="",
            kind="ConfigMap",
            name=service_class.get("name", ""),
            key=service_class.get("key", ""),
            is_settings=True,
        )


VARIANT_AUTOSCALING: Final = Kind(
    group=GROUP,
    kind="VariantAutoscaling",
    plural="variantautoscalings",
    short_names=("va",),
    categories=("stowplan", "autoscaling"),
    has_conversion=True,
    versions=(
        Version(
            name="v1alpha1",
            declaration=v1alpha1.VariantAutoscaling,
            deprecation_warning=(
                "llmd.ai/v1alpha1 VariantAutoscaling is deprecated; use llmd.ai/v1alpha2. `stowplan convert"
                " -f FILE --to v1alpha2 --in-place` converts a manifest; `stowplan upgrade` shows whether"
                " stored objects are left to convert"
            ),
            columns=(_MODEL, _ACCELERATOR, _CURRENT, _DESIRED, _COST, *READY, AGE, *_WIDE),
            fill=(_cost,),
            references=_references,
            advise=(
                _identifier_advice,
                _parameter_advice,
                _target_advice,
                _implied_target_advice,
                _name_advice,
                _cost_advice,
                label_advice,
            ),
        ),
        Version(
            name="v1alpha2",
            declaration=v1alpha2.VariantAutoscaling,
            is_storage=True,
            columns=(
                _MODEL,
                _ACCELERATOR,
                _decision_column("Priority", "priority", "Priority from 1 (served first) to 100."),
                _decision_column("Serving", "readyReplicas", "Ready replicas."),
                _decision_column(
                    "Granted", "grantedReplicas", "Replicas that the plan grants in this cluster."
                ),
                _decision_column(
                    "Wanted", "unconstrainedReplicas", "Replicas that it would have with unlimited nodes."
                ),
                _decision_column(
                    "Unmet ‰", "unmetPerMille", "Missing share of the capacity, in thousandths."
                ),
                _COST,
                *READY,
                AGE,
                *_WIDE,
            ),
            fill=(_cost,),
            references=_references,
            advise=(_parameter_advice, _target_advice, _name_advice, _cost_advice, label_advice),
        ),
    ),
)
