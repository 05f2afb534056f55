"""What was seen of each model over the last hours: by this process, and before that by a Prometheus."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json, as_object
from controller.commands.explain.variant import last_time
from controller.commands.status.fleet import FleetState, ModelState, total
from controller.engines.prometheus_history import Course, PrometheusHistory

KEPT_SECONDS: Final = 6 * 3600.0
"""How long samples are kept."""

_MOST_EVENTS: Final = 100
_STEP_SECONDS: Final = 60.0

# The namespace of an object is `exported_namespace`, unless Prometheus honors the labels of targets. `max`
# joins the replicas of the controller, of which only the leader has series.
_BY_MODEL: Final = "max by (exported_namespace, namespace, model_id)"
_BY_VARIANT: Final = "max by (exported_namespace, namespace, variant_name)"
_OF_MODEL: Final = {
    "requests_per_second": f"{_BY_MODEL} (stowplan_demand_requests_per_second)",
    "unmet": f"{_BY_MODEL} (stowplan_unmet_ratio)",
    "within_ttft": f"{_BY_MODEL} (stowplan_ttft_attained_ratio)",
    "within_itl": f"{_BY_MODEL} (stowplan_itl_attained_ratio)",
}
_OF_VARIANT: Final = {
    "ready": f"{_BY_VARIANT} (stowplan_ready_replicas)",
    "granted": f"{_BY_VARIANT} (stowplan_desired_replicas)",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSample:
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


History = Mapping[Key, tuple[ModelSample, ...]]
"""Samples by namespace and model, the oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionEvent:
    """A decision, as its event says it."""

    time: datetime
    namespace: str
    name: str
    reason: str
    message: str
    is_warning: bool


def record(history: History, fleet: FleetState) -> History:
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


def _sample(model: ModelState, now: float) -> ModelSample:
    return ModelSample(
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


def decisions(events: Sequence[Json], kinds: Container[object]) -> tuple[DecisionEvent, ...]:
    """Return the latest decisions in events about objects of some kinds, the latest first."""
    made = []
    for event in events:
        about = as_object(event.get("regarding"))
        time = _time(event)
        if about.get("kind") in kinds and time is not None:
            made.append(
                DecisionEvent(
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


async def read_past(source: PrometheusHistory, models: Mapping[Key, Key], *, now: datetime) -> History:
    """Return what Prometheus has about some models; `models` are those of variants, by namespace and name.

    Raises UnreadableMetricsError, with the reason.
    """
    end = now.timestamp() - _STEP_SECONDS
    queries = {**_OF_MODEL, **_OF_VARIANT}
    answers = await asyncio.gather(
        *(
            source.evaluate_range(
                expression, begin_seconds=end - KEPT_SECONDS, end_seconds=end, step_seconds=_STEP_SECONDS
            )
            for expression in queries.values()
        )
    )
    return past_of(dict(zip(queries, answers, strict=True)), models)


def past_of(courses: Mapping[str, Sequence[Course]], models: Mapping[Key, Key]) -> History:
    """Return the history of models from the courses of each member of a sample. Variants are added up."""
    points: dict[Key, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    known = frozenset(models.values())
    for member, own in courses.items():
        for course in own:
            model = _model_of(course.labels, models)
            if model not in known:
                continue
            for time, value in course.points:
                at = points[model][time]
                at[member] = at.get(member, 0.0) + value if member in _OF_VARIANT else value
    return {key: tuple(_past_sample(*point) for point in sorted(own.items())) for key, own in points.items()}


def _model_of(labels: Mapping[str, str], models: Mapping[Key, Key]) -> Key | None:
    namespace = labels.get("exported_namespace") or labels.get("namespace", "")
    if "variant_name" in labels:
        return models.get((namespace, labels["variant_name"]))
    return namespace, labels.get("model_id", "")


def _past_sample(time: float, at: Mapping[str, float]) -> ModelSample:
    ready, granted = at.get("ready"), at.get("granted")
    return ModelSample(
        time=time,
        requests_per_second=at.get("requests_per_second"),
        ready=None if ready is None else round(ready),
        granted=None if granted is None else round(granted),
        unmet=at.get("unmet"),
        within_ttft=at.get("within_ttft"),
        within_itl=at.get("within_itl"),
    )
