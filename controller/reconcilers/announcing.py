"""Events and log lines about changed decisions and about changed quality of metrics."""

from __future__ import annotations

from apiserver.cluster.events import EventRecorder
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason, ConditionType
from controller.planning.decision import Decision, Reason
from controller.reconcilers.status import UNPLANNED

_log = EventLogger(__name__)


class Announcer:
    """Records events and log lines; the objects passed in still have their previous status."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events

    def decided(self, autoscaling: Json, decision: Decision) -> None:
        """Log a decision that differs from the published one, and record an event."""
        before = (autoscaling.get("status") or {}).get("decision") or {}
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
            autoscaling,
            type="Warning" if decision.reason is Reason.SHORTAGE else "Normal",
            reason=str(decision.reason),
            action="Plan",
            note=decision.message,
            meaning=f"{decision.replicas} {decision.reason}",
        )

    def status_written(self, autoscaling: Json, status: Json) -> None:
        """Record an event if the variant can no longer be planned, or the availability of metrics changed."""
        old = autoscaling.get("status") or {}
        if status["decision"]["reason"] == UNPLANNED:
            message = status["decision"]["message"]
            if (old.get("decision") or {}).get("message") != message:
                self._events.record(
                    autoscaling,
                    type="Warning",
                    reason=UNPLANNED,
                    action="Plan",
                    note=message,
                    meaning=message,
                )
            return
        before, now = _metrics(old), _metrics(status)
        if before is None or now is None or before["reason"] == now["reason"]:
            return
        self._events.record(
            autoscaling,
            type="Normal" if now["reason"] == ConditionReason.METRICS_AVAILABLE else "Warning",
            reason=now["reason"],
            action="Observe",
            note=now["message"],
            meaning=now["reason"],
        )


def _metrics(status: Json) -> Json | None:
    """Return the condition about the availability of metrics."""
    conditions = status.get("conditions") or []
    return next((item for item in conditions if item["type"] == ConditionType.METRICS_AVAILABLE), None)
