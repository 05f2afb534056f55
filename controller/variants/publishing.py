"""Writes statuses, and records of those without one: urgent ones at once, others at a limited rate.

Figures change in every cycle. They are written together with other changes, and never cause a write alone.
The heartbeat on the Lease describes the last completed cycle.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.heartbeat import Heartbeat, annotation_entries, served_time, whole_kind
from apiserver.cluster.resource import VARIANT_AUTOSCALINGS
from apiserver.cluster.status_writer import apply_status
from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from apiserver.schema.json import Json, without
from controller.evictions.rounds import BEING_MOVED
from controller.observe.claim import Claimant
from controller.observe.conditions import ConditionType
from controller.observe.declarations import Records
from controller.observe.performance import learned_of
from controller.planning.decision import Plan
from controller.sizing.records import LearnedProfile
from controller.variants.annotated import DecisionStore
from controller.variants.announcing import Announcer

FIELD_MANAGER: Final = "stowplan-controller"
WRITES_PER_SECOND: Final = 3.0
"""Maximum rate at which non-urgent statuses are written, counting urgent ones too. Events and one renewal of
the Lease every two seconds come on top; the total should stay below five requests per second."""

_WRITERS: Final = 16
_OURS: Final = frozenset({"currentAlloc", "desiredOptimizedAlloc", "actuation", "decision"})
"""The members of a status that no other controller may write beside ours."""

_ACTED_ON: Final[Mapping[str, frozenset[str]]] = {"desiredOptimizedAlloc": frozenset({"numReplicas"})}
"""The fields of these members that users or controllers may act on."""

_log = EventLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishResult:
    """Results of a cycle's status writes."""

    written: frozenset[Key] = frozenset()
    unwritten: Mapping[Key, BaseException] = field(default_factory=dict)
    """Errors of the statuses that were due but could not be written."""

    deleted: frozenset[Key] = frozenset()
    """The objects that were deleted or replaced before their status was written."""


class Publisher:
    """Writes changed statuses, and announces the changes."""

    def __init__(self, cluster: Cluster, announcer: Announcer, *, interval_seconds: float) -> None:
        """Create a publisher; `interval_seconds` is the time between two cycles."""
        self._cluster = cluster
        self._announcer = announcer
        self._store = DecisionStore(cluster)
        self._most = max(1, round(WRITES_PER_SECOND * interval_seconds))

    async def publish(
        self,
        claimants: Sequence[Claimant],
        statuses: Mapping[Key, Json],
        plan: Plan,
        *,
        records: Records | None = None,
    ) -> PublishResult:
        """Write all statuses that are due, even if some writes fail.

        `records` are those of annotated autoscalers as stored; None if these are not planned.
        """
        decisions = {item.key: item for item in plan.decisions}
        chosen = await asyncio.to_thread(due, claimants, statuses, most=self._most)
        gate = asyncio.Semaphore(_WRITERS)

        def announce(claimant: Claimant) -> None:
            self._announcer.status_written(claimant, statuses[claimant.key])
            if decision := decisions.get(claimant.key):
                self._announcer.announce(claimant, decision)

        async def write(claimant: Claimant) -> bool:
            key = claimant.key
            async with gate:
                stored = await apply_status(
                    self._cluster,
                    VARIANT_AUTOSCALINGS,
                    claimant.value,
                    statuses[key],
                    field_manager=FIELD_MANAGER,
                )
                if stored is None:
                    _log.info("gone before its status was written", namespace=key[0], name=key[1])
                    return False
                announce(claimant)
                await self._clear(stored, statuses[key])
            return True

        own = [item for item in chosen if not item.is_annotated]
        results = await asyncio.gather(*(write(item) for item in own), return_exceptions=True)
        ended = dict(zip((item.key for item in own), results, strict=True))
        annotated = [item for item in chosen if item.is_annotated]
        refused = await self._store.publish(claimants, annotated, statuses, records or {})
        for item in annotated:
            ended[item.key] = refused.get(item.key, True)
            if item.key not in refused:
                announce(item)
        return PublishResult(
            written=frozenset([key for key, result in ended.items() if result is True]),
            deleted=frozenset([key for key, result in ended.items() if result is False]),
            unwritten={key: result for key, result in ended.items() if isinstance(result, BaseException)},
        )

    async def _clear(self, stored: Json, status: Json) -> None:
        """Remove what an earlier controller left in a status that was just written.

        If the object has been written since, the next cycle detects the difference and tries again.
        """
        stale = left_over(stored.get("status") or {}, status)
        if not stale:
            return
        metadata = stored["metadata"]
        with contextlib.suppress(NotFound, Conflict):
            await self._cluster.patch_merge(
                VARIANT_AUTOSCALINGS,
                metadata["name"],
                {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": stale},
                namespace=metadata["namespace"],
                subresource="status",
            )


def expected_errors(errors: Mapping[Key, BaseException]) -> Mapping[Key, ClusterError]:
    """Return errors of the API server, by object. Raises the first error of another type."""
    expected: dict[Key, ClusterError] = {}
    for key, error in errors.items():
        if not isinstance(error, ClusterError):
            raise error
        expected[key] = error
    return expected


def log_unwritten(kind: str, errors: Mapping[Key, ClusterError]) -> None:
    """Log the first of the statuses that could not be written, and their number."""
    if errors:
        key, error = next(iter(errors.items()))
        name = "/".join(key)
        _log.warning("statuses not written", kind=kind, first=name, number=len(errors), error=error.message)


def left_over(stored: Json, ours: Json) -> Json:
    """Return a merge patch that removes fields of an earlier controller from a status; empty if it has none.

    An apply does not remove fields of other managers, so an earlier number would pass for our decision. Where
    we write no allocation, its accelerator stays: conversion may need it to choose among candidates.
    """
    patch: Json = {}
    for member in _OURS & stored.keys():
        names = (stored[member] or {}).keys()
        stale = names - ours[member].keys() if member in ours else names & _ACTED_ON.get(member, frozenset())
        if stale:
            patch[member] = dict.fromkeys(sorted(stale))
    return patch


def due(claimants: Sequence[Claimant], statuses: Mapping[Key, Json], *, most: int) -> list[Claimant]:
    """Return the objects whose status should be written now."""
    candidates = [
        (item, news(item.status, new) if item.is_stored else Urgency.URGENT, _status_text(item.status))
        for item in claimants
        if (new := statuses.get(item.key)) is not None
    ]
    return in_turn(candidates, most=most)


def _status_text(status: Json) -> str:
    return str((status.get("desiredOptimizedAlloc") or {}).get("lastRunTime") or "")


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
        published: PublishResult,
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
            if key not in statuses or key in published.unwritten or key in published.deleted:
                unconfirmed.add(key)
                continue
            if item.is_annotated:
                continue
            decided = served_time(statuses[key] if key in published.written else old)
            newest = max(filter(None, (newest, decided)), default=None)
        entries = annotation_entries(frozenset(unconfirmed))
        if entries is not None:
            self._last = Heartbeat(time=time, newest_decision=newest, unconfirmed=bound_unconfirmed | entries)

    def record_bindings(self, *, newest: datetime | None, unconfirmed: frozenset[Key]) -> None:
        """Record a cycle of the bindings; the next heartbeats confirm it together with the variants."""
        entries = annotation_entries(unconfirmed)
        self._bound = (None, NO_BINDINGS) if entries is None else (newest, entries)

    def unbound(self) -> None:
        """Record a failed cycle of the bindings: none of their decisions is confirmed."""
        self._bound = None, NO_BINDINGS

    def annotations(self) -> Mapping[str, str]:
        """Return the annotations to write; none before the first cycle, to keep those of another leader."""
        return self._last.annotations() if self._last else {}


T = TypeVar("T")

_MORE_SAMPLES: Final = 4.0
_OTHER_SPEED: Final = 0.2
_OTHER_UTILIZATION: Final = 0.1
_OTHER_ATTAINMENT: Final = 0.2
_TYPICAL_SEQUENCES: Final = 32.0
_TYPICAL_PROMPT_TOKENS: Final = 256.0
"""Step by which learned times are compared: single parameters vary, and make up for each other."""
_SAID_AT_ONCE: Final = ("reason", "signal", "costPerReplica", "grantedReplicas")
_WORDED: Final = frozenset(
    {
        ConditionType.TARGET_RESOLVED,
        ConditionType.DECISION_FOLLOWED,
        ConditionType.ACCELERATOR_RESOLVED,
        ConditionType.SERVICE_CLASS_RESOLVED,
        ConditionType.ANNOTATIONS_RESOLVED,
        ConditionType.COST_RESOLVED,
        ConditionType.METRICS_AVAILABLE,
    }
)
"""Conditions whose messages say a cause, and change with it; numbers in them change in every cycle."""

_TYPES: Final = frozenset(ConditionType)
_NUMBER: Final = re.compile(r"\d+")
_BY_THRESHOLD: Final = frozenset({ConditionType.PERFORMANCE_AS_DECLARED, ConditionType.ATTAINMENT_KEPT})
"""Conditions that can alternate because of noise around a threshold."""


class Urgency(StrEnum):
    """How soon a status should be written."""

    URGENT = "urgent"
    """In this cycle, because something acts on it or waits for it."""

    ORDINARY = "ordinary"
    """In turn: an explanation or the state for a restart changed, which noise alone can cause."""


def in_turn(candidates: Sequence[tuple[T, Urgency | None, str]], *, most: int) -> list[T]:
    """Return what to write now, given for each status how soon, and when it was last written.

    These are all urgent ones. If there are fewer than `most`, ordinary ones are added, starting with the
    least recently written, so that none starves.
    """
    urgent = [item for item, how_soon, _ in candidates if how_soon is Urgency.URGENT]
    ordinary = [(written, item) for item, how_soon, written in candidates if how_soon is Urgency.ORDINARY]
    ordinary.sort(key=lambda dated: dated[0])
    return [*urgent, *(item for _, item in ordinary[: max(0, most - len(urgent))])]


def without_numbers(text: str) -> str:
    """Return a message without its numbers, which change in every cycle."""
    return _NUMBER.sub("", text)


def news(old: Json, new: Json) -> Urgency | None:
    """Return how soon a status should be written, or None if only figures changed."""
    old = _comparable(old, new)
    if _acted_on(old) != _acted_on(new) or _is_misdated(old, new):
        return Urgency.URGENT
    is_changed = _explanation(old) != _explanation(new) or _has_learned(old, new) or _has_attained(old, new)
    return Urgency.ORDINARY if is_changed else None


def _comparable(old: Json, new: Json) -> Json:
    """Return an old status without what stays of it beside a new one without allocations."""
    if "desiredOptimizedAlloc" in new:
        return old
    number = (old.get("desiredOptimizedAlloc") or {}).get("numReplicas")
    rest = without(old, ("currentAlloc", "desiredOptimizedAlloc"))
    return rest if number is None else rest | {"desiredOptimizedAlloc": {"numReplicas": number}}


def _is_misdated(old: Json, new: Json) -> bool:
    """Tell whether the time of a published number is missing or later than now.

    The status was edited, or the clock was set back. The metrics API serves no number without a time, or with
    a time more than a minute later than now.
    """
    before, now = (served_time(status) for status in (old, new))
    return now is not None and (before is None or before > now)


def _acted_on(status: Json) -> Json:
    decision = status.get("decision") or {}
    desired = status.get("desiredOptimizedAlloc") or {}
    return {
        "current": status.get("currentAlloc"),
        "desired": {name: value for name, value in desired.items() if name != "lastRunTime"},
        "applied": status.get("actuation"),
        "decision": [decision.get(name) for name in _SAID_AT_ONCE],
        "moving": BEING_MOVED in (decision.get("message") or ""),
        "conditions": {
            item["type"]: [item["status"], item.get("observedGeneration")]
            for item in own_conditions(status, _TYPES)
            if item["type"] not in _BY_THRESHOLD
        },
    }


def _explanation(status: Json) -> Json:
    conditions, decision = [*own_conditions(status, _TYPES)], status.get("decision") or {}
    return {
        "boundBy": decision.get("boundBy"),
        "priority": decision.get("priority"),
        "ready": decision.get("readyReplicas"),
        "conditions": {item["type"]: item["reason"] for item in conditions},
        "causes": [without_numbers(item["message"]) for item in conditions if item["type"] in _WORDED],
    }


def own_conditions(status: Json, types: AbstractSet[str]) -> Iterator[Json]:
    """Yield our own conditions: others in the same list are kept when ours are written."""
    return (item for item in status.get("conditions") or [] if item.get("type") in types)


def _has_learned(old: Json, new: Json) -> bool:
    """Tell whether what was learned should be saved again: it differs, or has four times as many samples."""
    before, now = (learned_of((status.get("decision") or {}).get("performance")) for status in (old, new))
    if before is None or now is None:
        return before != now
    if now.samples >= _MORE_SAMPLES * before.samples or _is_other_utilization(before, now):
        return True
    return abs(_typical_step_ms(now) / _typical_step_ms(before) - 1) > _OTHER_SPEED


def _is_other_utilization(before: LearnedProfile, now: LearnedProfile) -> bool:
    if before.utilization is None or now.utilization is None:
        return before.utilization != now.utilization
    return abs(now.utilization / before.utilization - 1) > _OTHER_UTILIZATION


def _has_attained(old: Json, new: Json) -> bool:
    """Tell whether the attained share changed by a part of what may miss, or is known for the first time."""
    before, now = ((status.get("decision") or {}).get("serviceLevel") or {} for status in (old, new))
    if not before or not now or before.get("promised") != now["promised"]:
        return before != now
    allowed = 1 - float(now["promised"])
    return abs(float(now["attained"]) - float(before["attained"])) > _OTHER_ATTAINMENT * allowed


def _typical_step_ms(learned: LearnedProfile) -> float:
    parameters = learned.parameters
    return (
        parameters.alpha_ms
        + parameters.beta_ms * _TYPICAL_SEQUENCES
        + parameters.delta_ms * _TYPICAL_PROMPT_TOKENS
    )
