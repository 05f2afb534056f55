"""Results of one cycle of bindings, for logs and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.cluster.errors import ClusterError
from apiserver.kinds.identity import Key
from controller.bindings.scaling import Ending
from controller.bindings.status import BindingResult


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingCycleResult:
    """What one cycle decided, wrote and could not read."""

    results: tuple[BindingResult, ...] = ()
    written: int = 0
    scrape_failures: int = 0
    responding: int = 0
    """The number of pods that responded."""

    silent: Mapping[Key, str] = field(default_factory=dict)
    scaled: Mapping[Ending, int] = field(default_factory=dict)
    """The number of scale writes by outcome."""

    unwritten: Mapping[Key, ClusterError] = field(default_factory=dict)
    """Errors of the statuses that could not be written."""
