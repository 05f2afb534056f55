"""What planning remembers from one cycle to the next: passed in, passed out, never kept.

After a restart an empty state will do: the capacity per replica comes back from the status
(`Variant.published_capacity_tokens`), the windows fill again.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.known_prices import KnownPrices
from controller.planning.ranges import negative_or_endless


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class WindowKey:
    """What an observed capacity depends on."""

    namespace: str
    model_id: str
    accelerator: str
    accelerators_per_replica: int
    output_length: str
    """`short` (under 100 tokens), `medium` (under 500) or `long`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """The last capacities that full engines showed, oldest first, in tokens of KV cache."""

    key: WindowKey
    tokens: tuple[int, ...]
    quiet_cycles: int = 0
    """Cycles since the last entry. Old windows are dropped: a low entry must not count for good."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownCapacity:
    """The last capacity per replica that a variant's own engines showed."""

    namespace: str
    name: str
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """How the published replicas of a variant have moved."""

    namespace: str
    name: str
    replicas: int
    """What was published last."""

    direction: int = 0
    """Of the last change: 1 for up, -1 for down; 0 before the first."""

    reversed_seconds: tuple[float, ...] = ()
    """When it turned from up to down or back, oldest first; only of late."""

    @property
    def key(self) -> tuple[str, str]:
        """The variant: (namespace, name)."""
        return (self.namespace, self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningState:
    """Memory between cycles; sorted by key, so that equal memories are equal bytes.

    Raises ValueError when a moment is none.
    """

    windows: tuple[Window, ...] = ()
    capacities: tuple[KnownCapacity, ...] = ()
    queued: tuple[tuple[str, str], ...] = ()
    """(namespace, pod) of the engines that were full in the last cycle."""

    courses: tuple[Course, ...] = ()
    prices: KnownPrices | None = None
    """Of the last search: where the next one begins."""

    thorough_seconds: float = 0.0
    """When plans were last asked for a thorough search and made one, in seconds since 1970; 0 if unknown."""

    def __post_init__(self) -> None:
        """Refuse a moment that no clock shows."""
        wrong = negative_or_endless(thorough_seconds=self.thorough_seconds)
        if wrong:
            raise ValueError("; ".join(wrong))
