"""Metrics of bound targets, read from the status of their AutoscalingPolicyBinding."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

from apiserver.metrics.series import BOUND_REPLICAS, TARGET_ID, Series, Unknown
from apiserver.schema.json import Json, JsonValue

_STATUS_FIELDS: Final = ("lastDecisionTime", "targets")
_UNDECIDED: Final = "it has no decision yet, or its decision is only advice"


def bound_metrics_of(value: Json) -> tuple[Series | Unknown, ...]:
    """Return one entry for each target of a raw binding.

    Never raises, whatever its content: an unreadable value becomes an `Unknown` with the reason.
    """
    status = _object(value.get("status"))
    targets = status.get("targets")
    found = [item for item in targets if isinstance(item, dict)] if isinstance(targets, list) else []
    return tuple(_entry(value, status, target) for target in found)


def bound_essentials(value: Json) -> Json:
    """Return only the parts of a binding that `bound_metrics_of` reads."""
    metadata, spec, status = (_object(value.get(name)) for name in ("metadata", "spec", "status"))
    return {
        "metadata": {name: metadata[name] for name in ("namespace", "name") if name in metadata},
        "spec": {"policyRef": spec.get("policyRef")},
        "status": {name: status[name] for name in _STATUS_FIELDS if name in status},
    }


def _entry(value: Json, status: Json, target: Json) -> Series | Unknown:
    metadata = value["metadata"]
    namespace = str(metadata.get("namespace", ""))
    labels = _labels(value, target)
    replicas, time = target.get("replicas"), _time(status)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0 or time is None:
        return Unknown(metric_name=BOUND_REPLICAS, namespace=namespace, labels=labels, why=_UNDECIDED)
    return Series(
        metric_name=BOUND_REPLICAS, namespace=namespace, labels=labels, value_milli=1000 * replicas, time=time
    )


def _labels(value: Json, target: Json) -> Mapping[str, str]:
    metadata, policy = value["metadata"], _object(_object(value.get("spec")).get("policyRef"))
    binding, kind, name = str(metadata["name"]), str(target.get("kind", "")), str(target.get("name", ""))
    return {
        "binding_name": binding,
        "policy_name": str(policy.get("name", "")),
        "target_kind": kind,
        "target_name": name,
        TARGET_ID: f"{binding}/{kind}/{name}",
        "namespace": str(metadata.get("namespace", "")),
        "exported_namespace": str(metadata.get("namespace", "")),
    }


def _time(status: Json) -> dt.datetime | None:
    text: JsonValue = status.get("lastDecisionTime")
    try:
        return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _object(value: JsonValue) -> Json:
    return value if isinstance(value, dict) else {}
