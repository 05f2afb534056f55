"""Metrics of a variant, read from the status of its VariantAutoscaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from apiserver.cluster.decisions import NotServedError, decision_time, desired_replicas, replicas_in
from apiserver.kinds.metric_labels import variant_labels
from apiserver.metrics.series import (
    DESIRED_RATIO,
    DESIRED_REPLICAS,
    DESIRED_REPLICAS_LEGACY,
    Series,
    Unknown,
)
from apiserver.schema.json import Json, as_object

_SPEC_FIELDS: Final = ("modelID", "accelerator", "acceleratorCount")
_STATUS_FIELDS: Final = ("desiredOptimizedAlloc", "currentAlloc", "actuation")


def metrics_of(value: Json) -> tuple[Series | Unknown, ...]:
    """Return one entry per metric name for a raw `v1alpha2` VariantAutoscaling.

    Never raises, whatever its content: an unreadable value becomes an `Unknown` with the reason.
    """
    labels, status = variant_labels(value), as_object(value.get("status"))
    return tuple(_entry(name, status, labels=labels) for name in _VALUES)


def essentials(value: Json) -> Json:
    """Return only the parts of an object that `metrics_of` reads, to keep a cache of many objects small."""
    metadata, spec, status = (as_object(value.get(name)) for name in ("metadata", "spec", "status"))
    kept: Json = {name: status[name] for name in _STATUS_FIELDS if name in status}
    if "decision" in status:  # only whether there is one is read
        kept["decision"] = {}
    return {
        "metadata": {name: metadata[name] for name in ("namespace", "name", "labels") if name in metadata},
        "spec": {name: spec[name] for name in _SPEC_FIELDS if name in spec},
        "status": kept,
    }


def _entry(metric_name: str, status: Json, *, labels: Mapping[str, str]) -> Series | Unknown:
    namespace = labels["namespace"]
    try:
        return Series(
            metric_name=metric_name,
            namespace=namespace,
            labels=labels,
            value_milli=_VALUES[metric_name](status),
            time=decision_time(status),
        )
    except NotServedError as error:
        return Unknown(metric_name=metric_name, namespace=namespace, labels=labels, why=str(error))


def _desired_milli(status: Json) -> int:
    return 1000 * desired_replicas(status)


def _ratio_milli(status: Json) -> int:
    desired_milli = _desired_milli(status)
    current = replicas_in(status, "currentAlloc", absent="its current number of replicas is unknown")
    # Rounded down: HPA multiplies by the current replicas and rounds up, which results in the decision.
    return desired_milli // current if current else desired_milli


_VALUES: Final[Mapping[str, Callable[[Json], int]]] = {
    DESIRED_REPLICAS: _desired_milli,
    DESIRED_REPLICAS_LEGACY: _desired_milli,
    DESIRED_RATIO: _ratio_milli,
}
