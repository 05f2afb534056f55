"""Pod deletion costs, which make ReplicaSets remove the chosen pods, set before a scale-down is published.

They are optional: without the permission, planning uses the ReplicaSets' default order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.resource import PODS
from apiserver.log import EventLogger
from controller.observe.gather import Gathered
from controller.observe.leaving import Mark, marks
from controller.planning.decision import Plan

ASK_AGAIN: Final = timedelta(seconds=300)
"""Time between retries: the permission may be granted while we run."""

_WRITERS: Final = 16

_log = EventLogger(__name__)


def due_marks(gathered: Gathered, plan: Plan, *, steered: Callable[[tuple[str, str]], bool]) -> list[Mark]:
    """Return the changes of pod annotations for a plan; on targets not `steered`, our marks are removed."""
    replicas = {item.key: item.replicas for item in plan.decisions}
    return [
        mark
        for key, pods in gathered.pods.items()
        if gathered.targets[key].is_steerable
        for mark in marks(pods, replicas[key] if key in replicas and steered(key) else len(pods))
    ]


class PodMarker:
    """Writes marks; remembers only whether that worked recently."""

    def __init__(self, cluster: Cluster, *, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._now = now
        self._failed_time: datetime | None = None
        self._gate = asyncio.Semaphore(_WRITERS)

    @property
    def is_working(self) -> bool:
        """Whether marks can be written, so that pods will be removed in the chosen order."""
        return self._failed_time is None or self._now() - self._failed_time >= ASK_AGAIN

    async def write(self, due: Iterable[Mark]) -> None:
        """Write every mark; never raises."""
        due = list(due)
        if not due or not self.is_working:
            return
        failures = [error for error in await asyncio.gather(*map(self._write, due)) if error is not None]
        if failures and self._failed_time is None:
            _log.warning("pod deletion costs not set", why=failures[0].message)
        self._failed_time = self._now() if failures else None

    async def _write(self, mark: Mark) -> ClusterError | None:
        metadata = {"resourceVersion": mark.resource_version, "annotations": dict(mark.annotations)}
        async with self._gate:
            try:
                await self._cluster.patch_merge(
                    PODS, mark.name, {"metadata": metadata}, namespace=mark.namespace
                )
            except (NotFound, Conflict):
                return None  # deleted or changed meanwhile: the next cycle decides again
            except ClusterError as error:
                return error
        _log.info(
            "pod deletion cost set",
            namespace=mark.namespace,
            pod=mark.name,
            annotations=dict(mark.annotations),
        )
        return None
