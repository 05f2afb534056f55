"""The metrics of the external metrics API, with known and unknown values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.autoscalers import (
    BOUND_METRIC,
    VARIANT_CURRENT,
    VARIANT_METRIC,
    VARIANT_METRIC_LEGACY,
    VARIANT_RATIO,
)
from apiserver.kinds.metric_labels import TARGET_ID, VARIANT_NAME

DESIRED_REPLICAS: Final = VARIANT_METRIC
"""The desired replicas of a variant, for an HPA target of type AverageValue 1."""

DESIRED_REPLICAS_LEGACY: Final = VARIANT_METRIC_LEGACY
"""The same metric under its name in the oldest releases."""

DESIRED_RATIO: Final = VARIANT_RATIO
"""Desired over current replicas, or the desired replicas if there are none; for an HPA target of type Value
1."""

CURRENT_REPLICAS: Final = VARIANT_CURRENT
"""The replicas of a variant at its last decision; nothing scales by it."""

METRIC_NAMES: Final = (DESIRED_REPLICAS, DESIRED_REPLICAS_LEGACY, DESIRED_RATIO, CURRENT_REPLICAS)
"""The metrics of each variant."""

BOUND_REPLICAS: Final = BOUND_METRIC
"""The desired replicas of a target of an AutoscalingPolicyBinding, for an HPA target of type AverageValue
1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The subject of a metric: the kind of its objects, and the labels that name an entry and its object."""

    kind: str
    entry_label: str
    object_label: str
    called: str
    """An object, for messages: a variant can also be an annotated autoscaler."""

    sought: str
    """The objects that have entries, for messages."""


_VARIANT: Final = Subject(
    kind="VariantAutoscaling",
    entry_label=VARIANT_NAME,
    object_label=VARIANT_NAME,
    called="variant",
    sought="variant",
)
SUBJECTS: Final[Mapping[str, Subject]] = {
    **dict.fromkeys(METRIC_NAMES, _VARIANT),
    BOUND_REPLICAS: Subject(
        kind="AutoscalingPolicyBinding",
        entry_label=TARGET_ID,
        object_label="binding_name",
        called="AutoscalingPolicyBinding",
        sought="AutoscalingPolicyBinding with a decision",
    ),
}
"""The subject of every served metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricValue:
    """A number, and the time of the decision."""

    metric_name: str
    namespace: str
    labels: Mapping[str, str]
    value_milli: int
    time: dt.datetime
    """The time in UTC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A number that is not available: queries for it return an error."""

    metric_name: str
    namespace: str
    labels: Mapping[str, str]
    why: str
    """The reason, as a sentence without the final period."""
