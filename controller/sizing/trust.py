"""Grade how reliable a model's demand data is: by the age of engine reports and how many engines report.

Missing data never counts as zero and never scales down. However, one silent engine among many must not block
scaling forever: after a timeout the reporting ones decide, if they form a quorum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.planning.load import Signal
from controller.sizing.records import SizingSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """The grade of one model's reports."""

    signal: Signal
    age_seconds: float | None
    """Age of the oldest report that counts, in seconds; None without one."""

    silent_replicas: int
    """Ready replicas whose reports do not count."""

    silent_since_seconds: float | None
    """Time since which some replicas have been silent, in seconds; None if all report."""


def grade(
    ages_seconds: Sequence[float | None],
    *,
    silent_since_seconds: float | None,
    now_seconds: float,
    settings: SizingSettings,
) -> Grade:
    """Return the grade from the age of each ready replica's report; None for a replica without one."""
    usable = [age for age in ages_seconds if age is not None and age <= settings.held_seconds]
    fresh = [age for age in usable if age <= settings.fresh_seconds]
    if len(fresh) == len(ages_seconds):
        signal = Signal.FRESH if fresh else Signal.UNKNOWN
        return Grade(
            signal=signal, age_seconds=max(fresh, default=None), silent_replicas=0, silent_since_seconds=None
        )
    since = now_seconds if silent_since_seconds is None else min(silent_since_seconds, now_seconds)
    if now_seconds - since > settings.held_seconds and len(fresh) >= settings.quorum * len(ages_seconds):
        signal, counted = Signal.QUORUM, fresh
    else:
        signal, counted = Signal.HELD if usable else Signal.UNKNOWN, usable
    return Grade(
        signal=signal,
        age_seconds=max(counted, default=None),
        silent_replicas=len(ages_seconds) - len(counted),
        silent_since_seconds=since,
    )
