"""Results of one cycle of variants, for logs and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.cluster.errors import ClusterError
from apiserver.kinds.identity import Key
from controller.observe.decision_following import ActingFinding
from controller.observe.gather import Gathered
from controller.observe.policies import SettingsProblem
from controller.planning.decision import Plan
from controller.sizing.attainment import ServiceLevel
from controller.variants.advisory import Advice
from controller.variants.placement_divergence import IN_STEP, Divergence


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleResult:
    """Results of one cycle, for logs and metrics."""

    plan: Plan
    gathered: Gathered
    written: int
    scrape_failures: int
    responding: int = 0
    """The number of engines that responded."""

    silent_models: Mapping[Key, str] = field(default_factory=dict)
    """Models (namespace, ID) none of whose ready engines responded, with the cause."""

    advices: Mapping[Key, Advice] = field(default_factory=dict)
    """For the variants whose decisions are advice only."""

    service_levels: Mapping[Key, ServiceLevel] = field(default_factory=dict)
    """What the engines of each variant's model attained, if it has targets."""

    evictions: Mapping[str, int] = field(default_factory=dict)
    """The number of evictions by outcome."""

    unwritten: Mapping[Key, ClusterError] = field(default_factory=dict)
    """Errors of the statuses that could not be written."""

    not_ready: Mapping[Key, str] = field(default_factory=dict)
    """The reasons of the variants whose condition `Ready` is false."""

    acting: Mapping[Key, ActingFinding] = field(default_factory=dict)
    """Whether each decision is followed that is not only advice."""

    divergence: Divergence = IN_STEP
    """The difference between the previous plan and the scheduler's placement."""

    settings: tuple[SettingsProblem, ...] = ()
    """What is wrong with prices and service classes."""
