"""VariantAutoscaling as a whole: its names, versions, columns, object defaults and advice."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import GROUP, variant_identifier
from apiserver.kinds.llmd.performance import missing_parameters
from apiserver.schema.json import Json
from apiserver.schema.kind import Column, Kind, ObjectDefault, Version

DEFAULT_COST: Final = "10.0"
"""Cost of one replica when nothing else is known."""

_READY: Final = '.status.conditions[?(@.type=="OptimizationReady")]'
_MODEL: Final = Column(name="Model", type="string", json_path=".spec.modelID", description="Model served.")
_TARGET: Final = Column(
    name="Target", type="string", json_path=".spec.scaleTargetRef.name", description="Object that is scaled."
)
_CURRENT: Final = Column(
    name="Current", type="integer", json_path=".status.currentAlloc.numReplicas", description="Replicas now."
)
_DESIRED: Final = Column(
    name="Desired",
    type="integer",
    json_path=".status.desiredOptimizedAlloc.numReplicas",
    description="Replicas wanted.",
)
_AGE: Final = Column(name="Age", type="date", json_path=".metadata.creationTimestamp", description="Age.")
_MESSAGE: Final = Column(
    name="Message",
    type="string",
    json_path=f"{_READY}.message",
    description="Why, in one sentence.",
    priority=1,
)


def _reason(json_path: str) -> Column:
    return Column(name="Reason", type="string", json_path=json_path, description="What was decided last.")


def _is_current_shape(value: Json) -> bool:
    """Tell whether a cost must be made up: the legacy shapes take theirs from the accelerator's unit cost."""
    spec = value["spec"]
    return not any(name in spec for name in ("modelProfile", *v1alpha1.LEGACY_FIELDS))


def _identifier_advice(value: Json) -> list[str]:
    spec = value["spec"]
    wanted = variant_identifier(spec)
    if "variantID" not in spec or spec["variantID"] == wanted:
        return []
    return [f"spec.variantID is {spec['variantID']!r} but model, accelerator and count make {wanted!r}"]


def _parameter_advice(value: Json) -> list[str]:
    profile = value["spec"].get("variantProfile", {}).get("perfParms")
    missing = missing_parameters(profile) if profile else []
    where = "spec.variantProfile.perfParms"
    return [f"{where}: {', '.join(missing)} missing: latency cannot be predicted"] if missing else []


_COST: Final = ObjectDefault(path=("spec", "variantCost"), value=DEFAULT_COST, applies=_is_current_shape)

VARIANT_AUTOSCALING: Final = Kind(
    group=GROUP,
    kind="VariantAutoscaling",
    plural="variantautoscalings",
    singular="variantautoscaling",
    short_names=("va",),
    categories=("stowplan", "autoscaling"),
    has_conversion=True,
    versions=(
        Version(
            name="v1alpha1",
            declaration=v1alpha1.VariantAutoscaling,
            deprecation_warning=(
                "llmd.ai/v1alpha1 VariantAutoscaling is deprecated; use llmd.ai/v1alpha2, which has the same"
                " fields and requires spec.scaleTargetRef"
            ),
            columns=(_MODEL, _TARGET, _CURRENT, _DESIRED, _reason(f"{_READY}.reason"), _AGE, _MESSAGE),
            defaults=(_COST,),
            advise=(_identifier_advice, _parameter_advice),
        ),
        Version(
            name="v1alpha2",
            declaration=v1alpha2.VariantAutoscaling,
            is_storage=True,
            columns=(_MODEL, _TARGET, _CURRENT, _DESIRED, _reason(".status.decision.reason"), _AGE, _MESSAGE),
            defaults=(_COST,),
            advise=(_parameter_advice,),
        ),
    ),
)
