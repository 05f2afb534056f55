"""Metrics of bound targets, read from the status of their AutoscalingPolicyBinding."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.decisions import bound_replicas
from apiserver.cluster.timestamps import moment_of
from apiserver.kinds.metric_labels import target_labels
from apiserver.metrics.series import BOUND_REPLICAS, Series, Unknown
from apiserver.schema.json import Json, as_object

_STATUS_FIELDS: Final = ("lastDecisionTime", "targets")
_UNDECIDED: Final = "it has no decision yet, or its decision is only advice"


def bound_metrics_of(value: Json) -> tuple[Series | Unknown, ...]:
    """Return one entry for each target of a raw binding.

    Never raises, whatever its content: an unreadable value becomes an `Unknown` with the reason.
    """
    status = as_object(value.get("status"))
    targets = status.get("targets")
    found = [item for item in targets if isinstance(item, dict)] if isinstance(targets, list) else []
    return tuple(_entry(value, status, target) for target in found)


def bound_essentials(value: Json) -> Json:
    """Return only the parts of a binding that `bound_metrics_of` reads."""
    metadata, spec, status = (as_object(value.get(name)) for name in ("metadata", "spec", "status"))
    return {
        "metadata": {name: metadata[name] for name in ("namespace", "name") if name in metadata},
        "spec": {"policyRef": spec.get("policyRef")},
        "status": {name: status[name] for name in _STATUS_FIELDS if name in status},
    }


def _entry(value: Json, status: Json, target: Json) -> Series | Unknown:
    metadata = value["metadata"]
    namespace = str(metadata.get("namespace", ""))
    labels = target_labels(value, str(target.get("kind", "")), str(target.get("name", "")))
    replicas, time = bound_replicas(target), moment_of(status.get("lastDecisionTime"))
    if replicas is None or time is None:
        return Unknown(metric_name=BOUND_REPLICAS, namespace=namespace, labels=labels, why=_UNDECIDED)
    return Series(
        metric_name=BOUND_REPLICAS, namespace=namespace, labels=labels, value_milli=1000 * replicas, time=time
    )
