"""Rules for which status changes are written to the API server, and how soon.

Figures change in every cycle. They are written together with other changes, and never cause a write alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final, TypeVar

from apiserver.cluster.heartbeat import served_time
from apiserver.schema.json import Json, without
from controller.evictions.rounds import BEING_MOVED
from controller.observe.conditions import ConditionType
from controller.observe.performance import learned_of
from controller.sizing.records import Learned

T = TypeVar("T")

_MORE_SAMPLES: Final = 4.0
_OTHER_SPEED: Final = 0.2
_OTHER_UTILIZATION: Final = 0.1
_OTHER_ATTAINMENT: Final = 0.2
_TYPICAL_SEQUENCES: Final = 32.0
_TYPICAL_PROMPT_TOKENS: Final = 256.0
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


class News(StrEnum):
    """How soon a status should be written."""

    URGENT = "urgent"
    """In this cycle, because something acts on it or waits for it."""

    ORDINARY = "ordinary"
    """In turn: an explanation or the state for a restart changed, which noise alone can cause."""


def in_turn(candidates: Sequence[tuple[T, News | None, str]], *, most: int) -> list[T]:
    """Return what to write now, given for each status how soon, and when it was last written.

    These are all urgent ones. If there are fewer than `most`, ordinary ones are added, starting with the
    least recently written, so that none starves.
    """
    urgent = [item for item, how_soon, _ in candidates if how_soon is News.URGENT]
    ordinary = [(written, item) for item, how_soon, written in candidates if how_soon is News.ORDINARY]
    ordinary.sort(key=lambda dated: dated[0])
    return [*urgent, *(item for _, item in ordinary[: max(0, most - len(urgent))])]


def without_numbers(text: str) -> str:
    """Return a message without its numbers, which change in every cycle."""
    return _NUMBER.sub("", text)


def news(old: Json, new: Json) -> News | None:
    """Return how soon a status should be written, or None if only figures changed."""
    old = _comparable(old, new)
    if _acted_on(old) != _acted_on(new) or _is_misdated(old, new):
        return News.URGENT
    is_changed = _explanation(old) != _explanation(new) or _has_learned(old, new) or _has_attained(old, new)
    return News.ORDINARY if is_changed else None


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


def _is_other_utilization(before: Learned, now: Learned) -> bool:
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


def _typical_step_ms(learned: Learned) -> float:
    parameters = learned.parameters
    return (
        parameters.alpha_ms
        + parameters.beta_ms * _TYPICAL_SEQUENCES
        + parameters.delta_ms * _TYPICAL_PROMPT_TOKENS
    )
