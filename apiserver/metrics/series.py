"""What the external metrics API can say about one variant or bound target, and what it cannot."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DESIRED_REPLICAS: Final = "wva_desired_replicas"
"""How many replicas a variant should have; for a target of type AverageValue 1."""

DESIRED_REPLICAS_LEGACY: Final = "inferno_desired_replicas"
"""The same under the name that the oldest releases gave it."""

DESIRED_RATIO: Final = "wva_desired_ratio"
"""Desired over current replicas, or just the desired when there are none; for a target of type Value 1."""

METRIC_NAMES: Final = (DESIRED_REPLICAS, DESIRED_REPLICAS_LEGACY, DESIRED_RATIO)
"""Of each variant."""

BOUND_REPLICAS: Final = "policy_desired_replicas"
"""How many replicas a target of an AutoscalingPolicyBinding should have; for an AverageValue of 1."""

VARIANT_NAME: Final = "variant_name"
TARGET_ID: Final = "target_id"
"""Label that tells the targets of all bindings of a namespace apart: binding, kind and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What a metric is about: the kind of its objects, and the labels that name one entry and its object."""

    kind: str
    entry_label: str
    object_label: str


_VARIANT: Final = Subject(kind="VariantAutoscaling", entry_label=VARIANT_NAME, object_label=VARIANT_NAME)
SUBJECTS: Final[Mapping[str, Subject]] = {
    **dict.fromkeys(METRIC_NAMES, _VARIANT),
    BOUND_REPLICAS: Subject(
        kind="AutoscalingPolicyBinding", entry_label=TARGET_ID, object_label="binding_name"
    ),
}
"""By metric: all that are served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One number, and when it was decided."""

    metric_name: str
    namespace: str
    labels: Mapping[str, str]
    value_milli: int
    time: dt.datetime
    """In UTC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A number that there should be and is not: queries for it are answered with an error."""

    metric_name: str
    namespace: str
    labels: Mapping[str, str]
    why: str
    """A sentence for people, without the final stop."""
