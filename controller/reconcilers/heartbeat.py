"""Keeps what is said on the Lease of the newest finished cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.heartbeat import MOST_UNCONFIRMED, WHOLE_KIND, Heartbeat, Key
from apiserver.schema.json import Json
from controller.reconcilers.publishing import Published

NO_BINDINGS: Final = frozenset({(WHOLE_KIND, "AutoscalingPolicyBinding")})
"""Unconfirmed: all of them."""


class Pulse:
    """Takes note of finished cycles; the elector writes what it says with its next renewal."""

    def __init__(self) -> None:
        self._last: Heartbeat | None = None
        self._bound: tuple[datetime | None, frozenset[Key]] = (None, frozenset())

    def beat(
        self,
        autoscalings: Iterable[Json],
        statuses: Mapping[Key, Json],
        published: Published,
        *,
        time: datetime,
    ) -> None:
        """Take note of a cycle that published at `time`; `statuses` are what it decided on.

        Where many could not be written the cycle counts for nothing, and all decisions grow old.
        """
        newest, bound_unconfirmed = self._bound
        unconfirmed: set[Key] = set()
        for item in autoscalings:
            key, old = (item["metadata"]["namespace"], item["metadata"]["name"]), item.get("status") or {}
            if key in published.unwritten or key not in statuses:
                unconfirmed.add(key)
            decided = _decided(statuses[key] if key in published.written else old)
            newest = max(filter(None, (newest, decided)), default=None)
        if len(unconfirmed) <= MOST_UNCONFIRMED:
            silent = bound_unconfirmed | unconfirmed
            self._last = Heartbeat(time=time, newest_decision=newest, unconfirmed=silent)

    def bound(self, *, newest: datetime | None, unconfirmed: frozenset[Key]) -> None:
        """Take note of a cycle of the bindings, which the next beats confirm together with all others."""
        is_told = len(unconfirmed) <= MOST_UNCONFIRMED
        self._bound = (newest, unconfirmed) if is_told else (None, NO_BINDINGS)

    def unbound(self) -> None:
        """Take note that a cycle of the bindings did not go through: nothing of them is confirmed."""
        self._bound = None, NO_BINDINGS

    def annotations(self) -> Mapping[str, str]:
        """Return what to write; nothing before the first cycle, so that another leader's word stands."""
        return self._last.annotations() if self._last else {}


def _decided(status: Json) -> datetime | None:
    """Return when a status was decided; None also for advice, and for what somebody else wrote there.

    Readers of the metric know decisions by their numbers: they would wait for one without a number for ever.
    """
    desired = status.get("desiredOptimizedAlloc") or {}
    text = desired.get("lastRunTime") if desired.get("numReplicas") is not None else None
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (TypeError, ValueError, OverflowError):
        return None
