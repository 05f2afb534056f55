"""The heartbeat on the Lease, which describes the last completed cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from apiserver.cluster.heartbeat import Heartbeat, Key, annotation_entries, served_time, whole_kind
from apiserver.schema.json import Json
from controller.observe.claim import Claimant
from controller.variants.publishing import Published

NO_BINDINGS: Final = frozenset({whole_kind("AutoscalingPolicyBinding")})
"""Marks all bindings as unconfirmed."""


class Pulse:
    """Records completed cycles; the elector writes the heartbeat with its next renewal."""

    def __init__(self) -> None:
        self._last: Heartbeat | None = None
        self._bound: tuple[datetime | None, frozenset[Key]] = (None, frozenset())

    def beat(
        self,
        claimants: Iterable[Claimant],
        statuses: Mapping[Key, Json],
        published: Published,
        *,
        time: datetime,
    ) -> None:
        """Record a cycle that published at `time`; `statuses` are its decisions.

        If too many could not be written, all decisions in their namespaces become stale. If these are too
        many, the cycle does not count, and all decisions become stale. The stored status of an object whose
        status could not be written does not count: its users may have written any time. Nor do records of
        annotated autoscalers count: their users may edit them, and not every reader has them.
        """
        newest, bound_unconfirmed = self._bound
        unconfirmed: set[Key] = set()
        for item in claimants:
            key, old = item.key, item.status
            if key not in statuses or key in published.unwritten or key in published.gone:
                unconfirmed.add(key)
                continue
            if item.is_annotated:
                continue
            decided = served_time(statuses[key] if key in published.written else old)
            newest = max(filter(None, (newest, decided)), default=None)
        entries = annotation_entries(frozenset(unconfirmed))
        if entries is not None:
            self._last = Heartbeat(time=time, newest_decision=newest, unconfirmed=bound_unconfirmed | entries)

    def bound(self, *, newest: datetime | None, unconfirmed: frozenset[Key]) -> None:
        """Record a cycle of the bindings; the next heartbeats confirm it together with the variants."""
        entries = annotation_entries(unconfirmed)
        self._bound = (None, NO_BINDINGS) if entries is None else (newest, entries)

    def unbound(self) -> None:
        """Record a failed cycle of the bindings: none of their decisions is confirmed."""
        self._bound = None, NO_BINDINGS

    def annotations(self) -> Mapping[str, str]:
        """Return the annotations to write; none before the first cycle, to keep those of another leader."""
        return self._last.annotations() if self._last else {}
