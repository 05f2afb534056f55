"""What the external metrics API can say about one variant, and what it cannot."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One number about one variant, and when it was decided."""

    metric_name: str
    namespace: str
    labels: Mapping[str, str]
    value_milli: int
    time: dt.datetime
    """In UTC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """A number that a variant should have and has not: queries for it are answered with an error."""

    metric_name: str
    namespace: str
    labels: Mapping[str, str]
    why: str
    """A sentence for people, without the final stop."""
