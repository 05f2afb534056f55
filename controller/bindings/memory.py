"""State of bindings' pods and histories between cycles."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.engines.endpoints import EndpointMemory, EndpointQuery, question
from controller.observe.binding_targets import BindingCase, TargetState
from controller.policies.history import History, UnreadableHistoryError, read_history
from controller.policies.sharing import BindingObservation, TargetObservation

_log = EventLogger(__name__)


class BindingMemory:
    """Memory of this process. Histories are also in the statuses, where the next leader reads them."""

    def __init__(self) -> None:
        self.endpoints = EndpointMemory()
        """What pods and queries returned last."""

        self._histories: dict[tuple[str, str, str], History] = {}

    def last_metrics(self, case: BindingCase, *, steady_seconds: float) -> BindingObservation:
        """Return the last metrics of the pods of a binding's targets, with their age."""
        source = case.binding.activity if case.binding else None
        return BindingObservation(
            targets=tuple(
                TargetObservation(
                    current_replicas=state.current_replicas,
                    ready_replicas=state.ready_replicas,
                    pods=tuple(
                        self.endpoints.last_values(item, now_seconds=steady_seconds)
                        for item in questions_of(case, state)
                    ),
                )
                for state in case.targets
            ),
            activity=self.endpoints.activity(source, case.before, now_seconds=steady_seconds)
            if source
            else None,
        )

    def history(self, case: BindingCase, *, seen_seconds: float, unwritten_seconds: float) -> History:
        """Return the history of decisions on a binding, from memory or else from the status.

        The process that wrote the status may have decided until `seen_seconds`, but for no longer than
        `unwritten_seconds` without writing it again.
        """
        known = self._histories.get(_identity(case.value))
        if known is not None:
            return known
        stored = _stored_history(case.value)
        if "metrics" not in (case.value.get("status") or {}):  # nothing was decided since
            return stored
        panic = case.policy.panic if case.policy else None
        last_seconds = min(seen_seconds, (stored.decided_seconds or 0.0) + unwritten_seconds)
        return stored.resume(last_seconds, hold_seconds=panic.hold_seconds if panic else 0.0)

    def remember(self, histories: Iterable[tuple[Json, History]]) -> None:
        """Keep the histories of the bindings that were decided on, and drop all others."""
        self._histories = {_identity(value): history for value, history in histories}


def questions_of(case: BindingCase, state: TargetState) -> list[EndpointQuery]:
    """Return the metrics to read from the ready pods of a target."""
    names = [metric.name for metric in case.policy.metrics] if case.policy else []
    bound = state.bound
    return [question(pod, port=bound.port, path=bound.uri, names=names) for pod in state.pods]


def _stored_history(value: Json) -> History:
    """Return the history in the status of a binding."""
    text = (value.get("status") or {}).get("history")
    if not isinstance(text, str):
        return History()
    try:
        return read_history(text)
    except UnreadableHistoryError as error:
        _log.warning("history restarted", binding="/".join(_identity(value)[:2]), why=str(error))
        return History()


def _identity(value: Json) -> tuple[str, str, str]:
    metadata = value["metadata"]
    return metadata["namespace"], metadata["name"], str(metadata.get("uid", ""))
