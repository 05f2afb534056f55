"""The labels of the external metrics, by which HorizontalPodAutoscalers select them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from apiserver.kinds.annotated import model_of
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL, variant_identifier
from apiserver.schema.json import Json, JsonValue, as_object

VARIANT_NAME: Final = "variant_name"
TARGET_ID: Final = "target_id"
"""The label that identifies a target among all bindings of a namespace: binding, kind and name."""

INSTANCE_LABEL: Final = "wva.llmd.ai/controller-instance"
"""The label of an object that names a controller; charts of llm-d 0.5 select by it."""

VARIANT_LABELS: Final = frozenset(
    [
        *(VARIANT_NAME, "variant_id", "namespace", "exported_namespace"),
        *("accelerator_type", "model_id", "controller_instance"),
    ]
)
"""All labels that the metric of a variant can have; some depend on its status."""

TARGET_LABELS: Final = frozenset(
    [
        *("binding_name", "policy_name", "target_kind", "target_name"),
        *(TARGET_ID, "namespace", "exported_namespace"),
    ]
)
"""All labels of the metric of a bound target."""


def variant_labels(value: Json) -> dict[str, str]:
    """Return the labels of the metrics of a raw `v1alpha2` VariantAutoscaling, whatever its content."""
    metadata, spec, status = (as_object(value.get(name)) for name in ("metadata", "spec", "status"))
    desired, current = (as_object(status.get(name)) for name in ("desiredOptimizedAlloc", "currentAlloc"))
    labels = as_object(metadata.get("labels"))
    return place_labels(metadata.get("namespace", ""), metadata["name"]) | _texts(
        {
            "variant_id": desired.get("variantID") or current.get("variantID") or _identifier(spec),
            "accelerator_type": desired.get("accelerator")
            or spec.get("accelerator")
            or labels.get(ACCELERATOR_LABEL),
            "model_id": spec.get("modelID"),
            "controller_instance": labels.get(INSTANCE_LABEL),
        }
    )


def annotated_labels(value: Json, status: Json) -> dict[str, str]:
    """Return the labels of the metrics of a raw annotated autoscaler with a published status."""
    metadata, desired = value["metadata"], as_object(status.get("desiredOptimizedAlloc"))
    labels = as_object(metadata.get("labels"))
    return place_labels(metadata.get("namespace", ""), metadata["name"]) | _texts(
        {
            "accelerator_type": desired.get("accelerator") or labels.get(ACCELERATOR_LABEL),
            "model_id": model_of(value) or None,
            "controller_instance": labels.get(INSTANCE_LABEL),
        }
    )


def place_labels(namespace: str, name: str) -> dict[str, str]:
    """Return the labels that say which variant a metric is about."""
    # How Prometheus renames `namespace` when its own differs.
    return {VARIANT_NAME: name, "namespace": namespace, "exported_namespace": namespace}


def _texts(labels: Mapping[str, JsonValue]) -> dict[str, str]:
    return {key: str(text) for key, text in labels.items() if text is not None}


def target_labels(value: Json, kind: str, name: str) -> Mapping[str, str]:
    """Return the labels of the metric of one target of a raw binding, whatever its content."""
    metadata, policy = value["metadata"], as_object(as_object(value.get("spec")).get("policyRef"))
    binding, namespace = str(metadata["name"]), str(metadata.get("namespace", ""))
    return {
        "binding_name": binding,
        "policy_name": str(policy.get("name", "")),
        "target_kind": kind,
        "target_name": name,
        TARGET_ID: f"{binding}/{kind}/{name}",
        "namespace": namespace,
        "exported_namespace": namespace,
    }


def _identifier(spec: Json) -> str | None:
    return variant_identifier(spec) if "accelerator" in spec and "acceleratorCount" in spec else None
