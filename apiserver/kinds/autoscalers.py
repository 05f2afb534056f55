"""HorizontalPodAutoscalers as frozen records: what they scale, within which bounds, and by which metrics.

One that KEDA created is described by its ScaledObject: KEDA itself scales between 0 and 1 replicas, and its
HorizontalPodAutoscaler shows neither the query nor a minimum of 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final
from urllib.parse import parse_qs, unquote

from apiserver.schema.json import Json, as_list, as_object
from apiserver.schema.quantities import amount

VARIANT_METRIC: Final = "wva_desired_replicas"
"""The external metric through which a HorizontalPodAutoscaler follows a VariantAutoscaling: its desired
replicas, for a target of type AverageValue 1."""

VARIANT_METRIC_LEGACY: Final = "inferno_desired_replicas"
"""The same metric under its name in the oldest releases."""

VARIANT_RATIO: Final = "wva_desired_ratio"
"""The desired over the current replicas of a VariantAutoscaling, or the desired ones if there are none; for a
target of type Value 1."""

VARIANT_CURRENT: Final = "wva_current_replicas"
"""The replicas of a variant at its last decision; nothing scales by it."""

BOUND_METRIC: Final = "policy_desired_replicas"
"""The external metric through which a HorizontalPodAutoscaler follows an AutoscalingPolicyBinding: the
desired replicas of a target, for a target of type AverageValue 1."""

DECISION_METRICS: Final = frozenset({VARIANT_METRIC, VARIANT_METRIC_LEGACY, VARIANT_RATIO, BOUND_METRIC})
"""The external metrics through which autoscalers follow decisions."""

KEDA_LABEL: Final = "scaledobject.keda.sh/name"
"""The label of HorizontalPodAutoscalers created by KEDA, with the name of the ScaledObject."""

_EXTERNAL_METRIC: Final = re.compile(r"/apis/external\.metrics\.k8s\.io/[^/]+/namespaces/([^/]+)/([^/]+)\Z")
_REQUIREMENT: Final = re.compile(r"([\w./-]+)\s*==?\s*([\w.-]*)")
"""A requirement of a label selector that allows one value."""

DEFAULT_TOLERANCE: Final = 0.1
"""The tolerance of a HorizontalPodAutoscaler by default."""

KEDA_MOST_REPLICAS: Final = 100
"""The maximum number of replicas of a ScaledObject by default."""

_DEFAULT_WINDOW_SECONDS: Final = 300.0
_READABLE: Final[Mapping[str, str]] = {"prometheus": "threshold", "metrics-api": "targetValue"}
"""The triggers whose metadata shows which metric they read, with the name of their target value."""

_UNKNOWN: Final = frozenset({"external", "external-push"})
"""The triggers that may read any metric, which their metadata does not show."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricReading:
    """One metric by which an autoscaler scales."""

    shown: str
    """The metric, for messages."""

    name: str | None
    """Name of the external metric; None for others, and for triggers of KEDA."""

    text: str | None = ""
    """What a trigger of KEDA reads, as text; None if it is not known."""

    selector: Json | None = None
    """Label selector of the metric."""

    target_type: str = ""
    target_value: Decimal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Autoscaler:
    """One HorizontalPodAutoscaler, or a ScaledObject of KEDA with its HorizontalPodAutoscaler."""

    name: str
    created: str
    """Creation timestamp."""

    readings: tuple[MetricReading, ...]
    min_replicas: int
    """Least replicas; for a ScaledObject also 0, which KEDA scales to itself."""

    max_replicas: int
    scaled_object: str = ""
    """Name of the ScaledObject; empty for one that KEDA did not create."""

    owner: str = ""
    """Kind and name of the object whose controller writes it; empty for none, and where KEDA does."""

    is_created: bool = True
    """Whether the HorizontalPodAutoscaler exists: that of a ScaledObject is created by KEDA."""

    scaling_active: tuple[str, str, str] = ("", "", "")
    """Status, reason and message of the condition ScalingActive; empty before the first."""

    up_tolerance: float = DEFAULT_TOLERANCE
    down_tolerance: float = DEFAULT_TOLERANCE
    """Relative differences that do not scale."""

    up_window_seconds: float = 0.0
    """For how long it keeps the fewest replicas that were recommended, before it scales up."""

    down_window_seconds: float = _DEFAULT_WINDOW_SECONDS
    """For how long it keeps the most replicas that were recommended."""

    @property
    def display_name(self) -> str:
        """The object that a user would change, for messages."""
        if self.scaled_object:
            return f"ScaledObject {self.scaled_object!r}"
        return f"HorizontalPodAutoscaler {self.name!r}"

    @property
    def is_switched_off(self) -> bool:
        """Whether it does nothing because something else scaled its target to zero replicas.

        It only scales up from zero if it scaled to zero itself. KEDA always scales up from zero.
        Source: `shouldComputeMetricsForZeroReplicas` in
        `k8s.io/kubernetes/pkg/controller/podautoscaler/horizontal.go`.
        """
        return not self.scaled_object and self.scaling_active[:2] == ("False", "ScalingDisabled")


def autoscaler_of(value: Json, scaled_objects: Mapping[str, Json] | None = None) -> Autoscaler:
    """Return the record of a HorizontalPodAutoscaler (autoscaling/v2).

    `scaled_objects` are the ScaledObjects of its namespace by name, if they can be read.
    """
    metadata, spec = value["metadata"], as_object(value.get("spec"))
    scaled_object = str(as_object(metadata.get("labels")).get(KEDA_LABEL) or "")
    known = as_object((scaled_objects or {}).get(scaled_object))
    declared = as_object(known.get("spec"))
    readings = tuple(_of_keda(spec, declared) if scaled_object else map(_metric_reading, _metrics(spec)))
    low, high = _bounds(spec, declared)
    up, down = (as_object(as_object(spec.get("behavior")).get(name)) for name in ("scaleUp", "scaleDown"))
    return Autoscaler(
        name=str(metadata.get("name") or ""),
        created=str(metadata.get("creationTimestamp") or ""),
        readings=readings,
        min_replicas=low,
        max_replicas=high,
        scaled_object=scaled_object,
        owner="" if scaled_object else _owner(metadata),
        scaling_active=_why_keda_stopped(known) or _scaling_active(value),
        up_tolerance=_number(up.get("tolerance"), DEFAULT_TOLERANCE),
        down_tolerance=_number(down.get("tolerance"), DEFAULT_TOLERANCE),
        up_window_seconds=_number(up.get("stabilizationWindowSeconds"), 0.0),
        down_window_seconds=_number(down.get("stabilizationWindowSeconds"), _DEFAULT_WINDOW_SECONDS),
    )


def _owner(metadata: Json) -> str:
    owners = map(as_object, as_list(metadata.get("ownerReferences")))
    owner_names = (
        f"{owner.get('kind')} {owner.get('name')!r}" for owner in owners if owner.get("controller")
    )
    return next(owner_names, "")


def _metrics(spec: Json) -> list[Json]:
    return [as_object(item) for item in as_list(spec.get("metrics"))]


def _metric_reading(item: Json) -> MetricReading:
    kind = str(item.get("type") or "")
    source = as_object(item.get(f"{kind[:1].lower()}{kind[1:]}"))
    metric, target = as_object(source.get("metric")), as_object(source.get("target"))
    name = str(metric.get("name") or source.get("name") or "")
    is_external = kind == "External"
    return MetricReading(
        shown=f"external metric {name!r}" if is_external else f"{kind} metric {name!r}",
        name=name if is_external else None,
        selector=as_object(metric.get("selector")) if is_external else None,
        target_type=str(target.get("type") or ""),
        target_value=_amount(target.get("averageValue") or target.get("value")),
    )


def _of_keda(spec: Json, declared: Json) -> Iterator[MetricReading]:
    """Yield the triggers of a ScaledObject; without one, the metrics of KEDA, which have names of its own."""
    readings = [reading for reading in map(_metric_reading, _metrics(spec)) if reading.name is not None]
    triggers = [as_object(item) for item in as_list(declared.get("triggers"))]
    if not triggers:
        yield from (replace(reading, name=None, text=None, selector=None) for reading in readings)
    for place, trigger in enumerate(triggers):
        kind, metadata = str(trigger.get("type") or ""), as_object(trigger.get("metadata"))
        texts = [str(text) for text in metadata.values()] if kind in _READABLE else []
        known = next((reading for reading in readings if str(reading.name).startswith(f"s{place}-")), None)
        declared_value = _amount(metadata.get(_READABLE.get(kind, "")))
        name, selector = _metric_in(str(metadata.get("url") or "")) if kind == "metrics-api" else (None, None)
        yield MetricReading(
            shown=f"trigger of type {kind!r}",
            name=name,
            selector=selector,
            text=None if kind in _UNKNOWN else "\n".join(texts),
            target_type=known.target_type if known else str(trigger.get("metricType") or "AverageValue"),
            target_value=known.target_value if known else declared_value,
        )


def _metric_in(url: str) -> tuple[str | None, Json | None]:
    """Return the external metric that a URL requests, and its selector; (None, None) for another URL."""
    place, _, query = url.partition("?")
    path = _EXTERNAL_METRIC.search(unquote(place))
    if path is None:
        return None, None
    namespace, name = path.groups()
    text = ",".join(parse_qs(query).get("labelSelector", ()))
    required = dict(_REQUIREMENT.findall(text))
    return name, {"matchLabels": {"namespace": namespace} | required}


def _bounds(spec: Json, declared: Json) -> tuple[int, int]:
    if declared:
        most = declared.get("maxReplicaCount", KEDA_MOST_REPLICAS)
        return int(declared.get("minReplicaCount") or 0), int(most)
    least = spec.get("minReplicas")
    return 1 if least is None else int(least), int(spec.get("maxReplicas") or 0)


def _why_keda_stopped(scaled_object: Json) -> tuple[str, str, str] | None:
    """Return why KEDA does not scale, in the form of ScalingActive; None if it does."""
    for item in map(as_object, as_list(as_object(scaled_object.get("status")).get("conditions"))):
        if (item.get("type"), item.get("status")) in (("Ready", "False"), ("Paused", "True")):
            reason, message = (str(item.get(name) or "") for name in ("reason", "message"))
            return "False", reason or str(item["type"]), message
    return None


def _scaling_active(value: Json) -> tuple[str, str, str]:
    for item in as_list(as_object(value.get("status")).get("conditions")):
        if as_object(item).get("type") == "ScalingActive":
            status, reason, message = (str(item.get(name) or "") for name in ("status", "reason", "message"))
            return status, reason, message
    return "", "", ""


def _amount(value: object) -> Decimal | None:
    is_quantity = isinstance(value, str | int | float) and not isinstance(value, bool)
    return amount(value) if is_quantity else None  # type: ignore[arg-type] # narrowed by the flag


def _number(value: object, default: float) -> float:
    quantity = _amount(value)
    return default if quantity is None else float(quantity)
