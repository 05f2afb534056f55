"""Writes statuses: those that somebody acts on at once, and the others a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound
from apiserver.cluster.resource import VARIANT_AUTOSCALINGS
from apiserver.schema.json import Json
from controller.planning.decision import Decision, Plan
from controller.reconcilers.announcing import Announcer
from controller.reconcilers.news import News, news

FIELD_MANAGER: Final = "stowplan-controller"
WRITES_PER_SECOND: Final = 3.0
"""Statuses whose news can wait are written only as long as a cycle has not written more than so many. Events
come to that, and one renewal of the Lease in two seconds: together they are to be less than five."""

_WRITERS: Final = 16

_log = structlog.get_logger(__name__)

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What became of the statuses of a cycle."""

    written: frozenset[Key] = frozenset()
    unwritten: Mapping[Key, BaseException] = field(default_factory=dict)
    """Why some that were due could not be written."""


class Publisher:
    """Writes what is news, and tells people of it."""

    def __init__(self, cluster: Cluster, announcer: Announcer, *, interval_seconds: float) -> None:
        """`interval_seconds` is the time between two cycles."""
        self._cluster = cluster
        self._announcer = announcer
        self._most = max(1, round(WRITES_PER_SECOND * interval_seconds))

    async def publish(
        self, autoscalings: Sequence[Json], statuses: Mapping[Key, Json], plan: Plan
    ) -> Published:
        """Write the statuses that are due, all of them even where some cannot be written."""
        decisions = {(item.namespace, item.name): item for item in plan.decisions}
        chosen = await asyncio.to_thread(due, autoscalings, statuses, most=self._most)
        gate = asyncio.Semaphore(_WRITERS)

        async def write(autoscaling: Json) -> bool:
            key = _key(autoscaling)
            async with gate:
                is_there = await self._write(autoscaling, statuses[key])
            if is_there:
                self._announce(autoscaling, statuses[key], decisions.get(key))
            return is_there

        results = await asyncio.gather(*(write(item) for item in chosen), return_exceptions=True)
        ended = dict(zip(map(_key, chosen), results, strict=True))
        return Published(
            written=frozenset([key for key, result in ended.items() if result is True]),
            unwritten={key: result for key, result in ended.items() if isinstance(result, BaseException)},
        )

    def _announce(self, autoscaling: Json, status: Json, decision: Decision | None) -> None:
        self._announcer.status_written(autoscaling, status)
        if decision:
            self._announcer.decided(autoscaling, decision)

    async def _write(self, autoscaling: Json, status: Json) -> bool:
        """Write one status; returns whether its object is still there."""
        metadata = autoscaling["metadata"]
        body = {
            "apiVersion": VARIANT_AUTOSCALINGS.api_version,
            "kind": VARIANT_AUTOSCALINGS.kind,
            # The uid keeps a status from landing on a namesake that was created since.
            "metadata": {name: metadata[name] for name in ("namespace", "name", "uid")},
            "status": status,
        }
        try:
            await self._cluster.apply(
                VARIANT_AUTOSCALINGS, body, field_manager=FIELD_MANAGER, force=True, subresource="status"
            )
        except (NotFound, Conflict):
            _log.info(
                "gone before its status was written", namespace=metadata["namespace"], name=metadata["name"]
            )
            return False
        return True


def due(autoscalings: Sequence[Json], statuses: Mapping[Key, Json], *, most: int) -> list[Json]:
    """Return the objects whose status is to be written now.

    All with urgent news are among them. Where these are less than `most`, others fill it up, first those
    whose status was written longest ago: each of them has its turn.
    """
    urgent, ordinary = [], []
    for item in autoscalings:
        status = statuses.get(_key(item))
        found = None if status is None else news(item.get("status") or {}, status)
        if found is News.URGENT:
            urgent.append(item)
        elif found is News.ORDINARY:
            ordinary.append(item)
    ordinary.sort(key=_written)
    return [*urgent, *ordinary[: max(0, most - len(urgent))]]


def _written(autoscaling: Json) -> str:
    desired = (autoscaling.get("status") or {}).get("desiredOptimizedAlloc") or {}
    return str(desired.get("lastRunTime") or "")


def _key(obj: Json) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
