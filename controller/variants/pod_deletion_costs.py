"""Pod deletion costs, which make ReplicaSets remove the chosen pods, set before a scale-down is published.

They are optional: without the permission, planning uses the ReplicaSets' default order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, NotFound
from apiserver.cluster.resource import PODS
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from controller.observe.gather import GatherResult
from controller.observe.removal_order import DeletionMark, marks
from controller.planning.decision import Plan

ASK_AGAIN: Final = timedelta(seconds=300)
"""Time between retries: the permission may be granted while we run."""

_WRITERS: Final = 16

_log = EventLogger(__name__)


def due_marks(gathered: GatherResult, plan: Plan, *, steered: Callable[[Key], bool]) -> list[DeletionMark]:
    """Return the changes of pod annotations for a plan; on targets not `steered`, our marks are removed."""
    replicas = {item.key: item.replicas for item in plan.decisions}
    return [
        mark
        for key, item in gathered.observed.items()
        if item.target.is_steerable
        for mark in marks(item.pods, replicas[key] if key in replicas and steered(key) else len(item.pods))
    ]


class PodMarker:
    """Writes marks; remembers only for a while where that failed."""

    def __init__(self, cluster: Cluster, *, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._now = now
        self._failed: dict[Key, datetime] = {}
        """When a pod could not be marked; with an empty name, when a namespace forbade it."""

        self._gate = asyncio.Semaphore(_WRITERS)

    @property
    def forbidden(self) -> frozenset[str]:
        """The namespaces in which pods cannot be marked, and are removed in the default order."""
        return frozenset(namespace for namespace, name in self._recent() if not name)

    async def write(self, due: Iterable[DeletionMark]) -> None:
        """Write every mark; never raises. A failure concerns one pod, or its namespace if it is forbidden."""
        recent = self._recent()
        due = [item for item in due if recent.isdisjoint({(item.namespace, ""), (item.namespace, item.name)})]
        errors = await asyncio.gather(*map(self._write, due))
        failures = {
            (item.namespace, "" if isinstance(error, Forbidden) else item.name): error
            for item, error in zip(due, errors, strict=True)
            if error is not None
        }
        for (namespace, name), error in failures.items():
            if (namespace, name) not in self._failed:
                _log.warning("pod deletion cost not set", namespace=namespace, pod=name, why=error.message)
        self._failed = {key: self._failed[key] for key in recent} | dict.fromkeys(failures, self._now())

    def _recent(self) -> frozenset[Key]:
        now = self._now()
        return frozenset(key for key, failed in self._failed.items() if now - failed < ASK_AGAIN)

    async def _write(self, mark: DeletionMark) -> ClusterError | None:
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
