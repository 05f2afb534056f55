"""Track the time since models had their last request, as far as this process has observed.

Pure state. A model is considered busy until its engines have been observed idle: after a restart, and while
none of them reports, the time starts over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.kinds.identity import Key
from controller.engines.records import EngineRecord, EngineRecords


@dataclass(frozen=True, kw_only=True, slots=True)
class Idleness:
    """Time of the last activity, by (namespace, model)."""

    last_seconds: Mapping[Key, float] = field(default_factory=dict)

    def update(
        self,
        models: Mapping[Key, Key],
        *,
        before: EngineRecords,
        after: EngineRecords,
        now_seconds: float,
    ) -> Idleness:
        """Return the state updated from engine records; `models` is the model of each pod."""
        signs: dict[Key, float] = {}
        for pod, model in models.items():
            record = after.records.get(pod)
            if record is not None:
                known = signs.get(model, self.last_seconds.get(model, now_seconds))
                is_busy = _is_busy(before.records.get(pod), record)
                signs[model] = max(known, record.reading.time_seconds) if is_busy else known
        return Idleness(last_seconds=signs)

    def idle_seconds(self, model: Key, *, now_seconds: float) -> float:
        """Return the time since a model's last request, in seconds; 0 for an unobserved model."""
        return max(0.0, now_seconds - self.last_seconds.get(model, now_seconds))


def _is_busy(before: EngineRecord | None, after: EngineRecord) -> bool:
    """Return whether an engine has requests, or its counters changed since the last reading."""
    now = after.reading
    if now.running or now.waiting or before is None:
        return bool(now.running or now.waiting)
    return now.parts != before.reading.parts
