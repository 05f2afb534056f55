"""Events and log lines about changed decisions and about changed quality of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from apiserver.cluster.events import EventRecorder
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.observe.claim import Claimant
from controller.observe.conditions import ConditionReason, ConditionType
from controller.planning.decision import Reason, VariantDecision
from controller.variants.status import UNPLANNED

REPORTER: Final = "stowplan.dev/controller"
"""The reporting controller of events about decisions."""

_log = EventLogger(__name__)


class Announcer:
    """Records events and log lines; the claimants still have their previous status."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events

    def announce(self, claimant: Claimant, decision: VariantDecision) -> None:
        """Log a decision that differs from the published one, and record an event."""
        before = claimant.status.get("decision") or {}
        was, because = before.get("grantedReplicas"), before.get("reason")
        if (was, because) == (decision.replicas, str(decision.reason)):
            return
        _log.info(
            "decided",
            namespace=decision.namespace,
            name=decision.name,
            replicas=decision.replicas,
            was=was,
            reason=str(decision.reason),
            message=decision.message,
        )
        self._events.record(
            claimant.value,
            type="Warning" if decision.reason is Reason.SHORTAGE else "Normal",
            reason=str(decision.reason),
            action="Plan",
            note=decision.message,
            meaning=f"{decision.replicas} {decision.reason}",
        )

    def status_written(self, claimant: Claimant, status: Json) -> None:
        """Record an event if the variant can no longer be planned, or for a changed condition."""
        old = claimant.status
        if status["decision"]["reason"] == UNPLANNED:
            message = status["decision"]["message"]
            if (old.get("decision") or {}).get("message") != message:
                self._events.record(
                    claimant.value,
                    type="Warning",
                    reason=UNPLANNED,
                    action="Plan",
                    note=message,
                    meaning=message,
                )
            return
        before = _conditions(old)
        for kind, item in _conditions(status).items():
            if _alarm(kind, item) == _alarm(kind, before.get(kind)):
                continue
            is_new = kind == ConditionType.METRICS_AVAILABLE and kind not in before
            if is_new and item["reason"] not in _KNOWN_AT_ONCE:
                continue  # no engine has been queried yet
            self._events.record(
                claimant.value,
                type="Warning" if _alarm(kind, item) else "Normal",
                reason=item["reason"],
                action="Observe",
                note=item["message"],
                meaning=item["reason"],
            )


def _alarm(kind: str, condition: Json | None) -> str:
    """Return the reason of a condition if that is a problem, else an empty string."""
    if condition is None:
        return ""
    is_good = (
        condition["reason"] == ConditionReason.METRICS_AVAILABLE
        if kind == ConditionType.METRICS_AVAILABLE
        else condition["status"] == "True"
    )
    return "" if is_good else str(condition["reason"])


_KNOWN_AT_ONCE: Final = frozenset({ConditionReason.MODEL_NOT_SERVED, ConditionReason.DEMAND_NOT_VISIBLE})
"""What is announced about the metrics of a new object."""

_ANNOUNCED: Final = (
    ConditionType.TARGET_RESOLVED,
    ConditionType.DECISION_FOLLOWED,
    ConditionType.ACCELERATOR_RESOLVED,
    ConditionType.ANNOTATIONS_RESOLVED,
    ConditionType.METRICS_AVAILABLE,
)
"""The conditions whose changes are announced."""


def _conditions(status: Json) -> Mapping[str, Json]:
    """Return the conditions whose changes are announced, by type."""
    conditions = {str(item.get("type")): item for item in status.get("conditions") or []}
    return {kind: conditions[kind] for kind in _ANNOUNCED if kind in conditions}
