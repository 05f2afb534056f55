"""Whether replicas follow the published decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hack.demo.observation import VariantView

UP_SECONDS = 15.0
"""Replicas must not be below the smallest decision of this period, in seconds."""

DOWN_SECONDS = 80.0
"""Replicas must not exceed the largest decision of this period, in seconds; it is long for slow machines."""


def unfollowed_times(views: Sequence[tuple[float, VariantView]]) -> Iterator[float]:
    """Yield the times at which decisions were old enough but not applied."""
    for index, (seconds, view) in enumerate(views):
        least = _decisions_since(views[: index + 1], seconds - UP_SECONDS)
        most = _decisions_since(views[: index + 1], seconds - DOWN_SECONDS)
        if (least and view.current_replicas < min(least)) or (most and view.current_replicas > max(most)):
            yield seconds


def _decisions_since(views: Sequence[tuple[float, VariantView]], since_seconds: float) -> list[int]:
    """Return the decisions since a time; empty unless there was one all the time."""
    if views[0][0] > since_seconds:
        return []
    decided = [view.desired_replicas for moment, view in views if moment >= since_seconds]
    known = [replicas for replicas in decided if replicas is not None]
    return known if len(known) == len(decided) else []
