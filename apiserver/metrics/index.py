"""The metrics of all variants and bound targets, known and unknown ones; their index and its queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.kinds.autoscalers import (
    BOUND_METRIC,
    VARIANT_CURRENT,
    VARIANT_METRIC,
    VARIANT_METRIC_LEGACY,
    VARIANT_RATIO,
)
from apiserver.kinds.core.selecting import allowed_values, selects
from apiserver.kinds.metric_labels import TARGET_ID, VARIANT_NAME
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError
from apiserver.schema.json import Json

METRIC_NAMES: Final = (VARIANT_METRIC, VARIANT_METRIC_LEGACY, VARIANT_RATIO, VARIANT_CURRENT)
"""The metrics of each variant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSubject:
    """The subject of a metric: the kind of its objects, and the labels that name an entry and its object."""

    kind: str
    entry_label: str
    object_label: str
    object_title: str
    """An object, for messages: a variant can also be an annotated autoscaler."""

    entries_title: str
    """The objects that have entries, for messages."""


_VARIANT: Final = MetricSubject(
    kind="VariantAutoscaling",
    entry_label=VARIANT_NAME,
    object_label=VARIANT_NAME,
    object_title="variant",
    entries_title="variant",
)
SUBJECTS: Final[Mapping[str, MetricSubject]] = {
    **dict.fromkeys(METRIC_NAMES, _VARIANT),
    BOUND_METRIC: MetricSubject(
        kind="AutoscalingPolicyBinding",
        entry_label=TARGET_ID,
        object_label="binding_name",
        object_title="AutoscalingPolicyBinding",
        entries_title="AutoscalingPolicyBinding with a decision",
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


_CLOCK_SKEW: Final = dt.timedelta(minutes=1)


class MetricIndex:
    """Exactly one entry per metric and variant or target, since HPA adds up all values it receives.

    Entries are indexed by namespace, metric and the label that identifies them, if the selector fixes it. A
    number is as old as the latest cycle of the controller that confirmed it.
    """

    def __init__(self, *, stale_after_seconds: float) -> None:
        self._stale_after = dt.timedelta(seconds=stale_after_seconds)
        self._buckets: dict[tuple[str, str], dict[str, MetricValue | Unknown]] = {}
        self._newest: dt.datetime | None = None
        self._unproven: Heartbeat | None = None
        self._heartbeat: Heartbeat | None = None

    def put(self, entries: Iterable[MetricValue | Unknown], *, now: dt.datetime) -> None:
        """Add entries, each replacing the one with the same name.

        Only somebody else can have written a time in the future, so it does not show what was received.
        """
        for entry in entries:
            bucket = self._buckets.setdefault((entry.namespace, entry.metric_name), {})
            bucket[_entry_name(entry)] = entry
            if isinstance(entry, MetricValue) and entry.time <= now + _CLOCK_SKEW:
                self._newest = max(entry.time, self._newest or entry.time)
        self._prove()

    def remove(self, *, namespace: str, entry_name: str, metric_names: Iterable[str]) -> None:
        """Remove the entries with one name."""
        for metric_name in metric_names:
            bucket = self._buckets.get((namespace, metric_name), {})
            bucket.pop(entry_name, None)
            if not bucket:
                self._buckets.pop((namespace, metric_name), None)

    def beat(self, heartbeat: Heartbeat | None) -> None:
        """Set the heartbeat of the controller's Lease, or None if it has none.

        It takes effect once the newest decision that it includes has been received: a heartbeat that confirms
        decisions not yet seen says nothing about those in the index.
        """
        self._unproven = heartbeat
        self._prove()

    def _prove(self) -> None:
        beat = self._unproven
        if beat is not None and (
            beat.newest_decision is None or (self._newest and self._newest >= beat.newest_decision)
        ):
            self._heartbeat, self._unproven = beat, None

    def query(
        self, *, namespace: str, metric_name: str, selector: Json, now: dt.datetime
    ) -> Sequence[MetricValue]:
        """Return the matching series, at least one, sorted by name.

        Raises NotFoundError if there is no such metric or object. Raises ServiceUnavailableError if any
        matching series is unknown or stale, since a partial sum would be a wrong number.
        """
        if metric_name not in SUBJECTS:
            served = ", ".join(SUBJECTS)
            raise NotFoundError(f"no external metric {metric_name!r}: Stowplan serves {served}")
        entries = [self._confirm(entry) for entry in self._select(namespace, metric_name, selector)]
        if not entries:
            raise NotFoundError(
                f"no {SUBJECTS[metric_name].entries_title} in namespace {namespace!r} matches the selector of"
                f" {metric_name}"
            )
        series = [
            entry for entry in entries if isinstance(entry, MetricValue) and not self._is_stale(entry, now)
        ]
        if len(series) < len(entries):
            raise self._unavailable(entries, now)
        return series

    def _select(self, namespace: str, metric_name: str, selector: Json) -> list[MetricValue | Unknown]:
        bucket = self._buckets.get((namespace, metric_name), {})
        names = allowed_values(selector, SUBJECTS[metric_name].entry_label)
        candidates = (bucket.get(name) for name in (bucket if names is None else names))
        entries = [entry for entry in candidates if entry is not None and selects(selector, entry.labels)]
        return sorted(entries, key=_entry_name) if len(entries) > 1 else entries

    def _confirm(self, entry: MetricValue | Unknown) -> MetricValue | Unknown:
        beat = self._heartbeat
        if beat is None or isinstance(entry, Unknown) or beat.time <= entry.time:
            return entry
        kind, key = SUBJECTS[entry.metric_name].kind, (entry.namespace, _object_name(entry))
        return replace(entry, time=beat.time) if beat.confirms(kind, key) else entry

    def _is_stale(self, series: MetricValue, now: dt.datetime) -> bool:
        # A time in the future, beyond clock skew, would never become stale.
        return not -_CLOCK_SKEW <= now - series.time <= self._stale_after

    def _unavailable(
        self, entries: Sequence[MetricValue | Unknown], now: dt.datetime
    ) -> ServiceUnavailableError:
        reasons = [
            f"{SUBJECTS[entry.metric_name].object_title} {entry.namespace}/{_object_name(entry)}: {why}"
            for entry in entries
            if (why := self._why_unknown(entry, now))
        ]
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return ServiceUnavailableError(
            f"{entries[0].metric_name} is currently not available: {reasons[0]}{more}"
        )

    def _why_unknown(self, entry: MetricValue | Unknown, now: dt.datetime) -> str | None:
        if isinstance(entry, Unknown):
            return entry.why
        if not self._is_stale(entry, now):
            return None
        age_seconds, limit_seconds = (int(s.total_seconds()) for s in (now - entry.time, self._stale_after))
        if age_seconds < 0:
            return (
                f"the time of the last decision is {-age_seconds} s in the future: compare the clocks of the"
                " nodes of stowplan-controller and stowplan-apiserver"
            )
        return f"the last decision is {age_seconds} s old, and the limit is {limit_seconds} s"


def _entry_name(entry: MetricValue | Unknown) -> str:
    return entry.labels[SUBJECTS[entry.metric_name].entry_label]


def _object_name(entry: MetricValue | Unknown) -> str:
    return entry.labels[SUBJECTS[entry.metric_name].object_label]
