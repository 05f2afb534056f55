"""What was seen of each model over the last hours. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json, as_object
from controller.commands.explain.variant import last_time
from controller.commands.status.fleet import Fleet, ModelState, total

KEPT_SECONDS: Final = 6 * 3600.0
"""How long samples are kept."""

_MOST_EVENTS: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One model at one time; None for what was not known."""

    time: float
    """Unix time in seconds."""

    requests_per_second: float | None
    ready: int | None
    granted: int | None
    unmet: float | None
    within_ttft: float | None
    """Share of the requests of the hour before that were within the TTFT target."""

    within_itl: float | None


History = Mapping[Key, tuple[Sample, ...]]
"""Samples by namespace and model, the oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """A decision, as its event says it."""

    time: datetime
    namespace: str
    name: str
    reason: str
    message: str
    is_warning: bool


def record(history: History, fleet: Fleet) -> History:
    """Return the history with the present state, without old samples and models that are gone."""
    now = fleet.time.timestamp()
    return {
        (model.namespace, model.model_id): (
            *(
                item
                for item in history.get((model.namespace, model.model_id), ())
                if now - KEPT_SECONDS <= item.time < now
            ),
            _sample(model, now),
        )
        for model in fleet.models
    }


def _sample(model: ModelState, now: float) -> Sample:
    return Sample(
        time=now,
        requests_per_second=model.requests_per_second,
        ready=total(item.ready for item in model.variants),
        granted=total(item.granted for item in model.variants),
        unmet=model.unmet,
        within_ttft=_within(model.service_level, "ttft"),
        within_itl=_within(model.service_level, "itl"),
    )


def _within(level: Json, target: str) -> float | None:
    if f"{target}Target" not in level or f"{target}Missed" not in level:
        return None
    return 1 - float(level[f"{target}Missed"])


def decisions(events: Sequence[Json], kinds: Container[object]) -> tuple[Decided, ...]:
    """Return the latest decisions in events about objects of some kinds, the latest first."""
    made = []
    for event in events:
        about = as_object(event.get("regarding"))
        time = _time(event)
        if about.get("kind") in kinds and time is not None:
            made.append(
                Decided(
                    time=time,
                    namespace=str(about.get("namespace")),
                    name=str(about.get("name")),
                    reason=str(event.get("reason")),
                    message=str(event.get("note") or ""),
                    is_warning=event.get("type") == "Warning",
                )
            )
    return tuple(sorted(made, key=lambda item: item.time, reverse=True)[:_MOST_EVENTS])


def _time(event: Json) -> datetime | None:
    try:
        return datetime.fromisoformat(last_time(event) or "")
    except ValueError:
        return None
