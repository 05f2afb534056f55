"""Since when models have had no request, as far as this process has seen it.

Pure state. A model is taken to be busy until its engines have been seen idle: after a restart, and while none
of them reports, the time starts over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.observe.engines import EngineRecord, EngineRecords

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Idleness:
    """The last sign of a request, by namespace and model."""

    last_seconds: Mapping[Key, float] = field(default_factory=dict)

    def updated(
        self,
        models: Mapping[Key, Key],
        *,
        before: EngineRecords,
        after: EngineRecords,
        now_seconds: float,
    ) -> Idleness:
        """Return the memory after a look at the engines; `models` names the model of each pod."""
        signs: dict[Key, float] = {}
        for pod, model in models.items():
            record = after.records.get(pod)
            if record is not None:
                known = signs.get(model, self.last_seconds.get(model, now_seconds))
                is_busy = _is_busy(before.records.get(pod), record)
                signs[model] = max(known, record.reading.time_seconds) if is_busy else known
        return Idleness(last_seconds=signs)

    def idle_seconds(self, model: Key, *, now_seconds: float) -> float:
        """Return how long a model has been without requests; nothing of one that nobody has watched."""
        return max(0.0, now_seconds - self.last_seconds.get(model, now_seconds))


def _is_busy(before: EngineRecord | None, after: EngineRecord) -> bool:
    """Tell whether an engine has requests, or has finished some since it was last asked."""
    now = after.reading
    if now.running or now.waiting or before is None:
        return bool(now.running or now.waiting)
    return now.parts != before.reading.parts
