"""Reads the hours before from a Prometheus that scrapes the controller."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from apiserver.kinds.identity import Key
from controller.commands.dashboard.history import KEPT_SECONDS, History, Sample
from controller.engines.prometheus_history import Course, PrometheusHistory

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


async def read_past(source: PrometheusHistory, models: Mapping[Key, Key], *, now: datetime) -> History:
    """Return what Prometheus has about some models; `models` are those of variants, by namespace and name.

    Raises UnreadableMetricsError, with the reason.
    """
    end = now.timestamp() - _STEP_SECONDS
    queries = {**_OF_MODEL, **_OF_VARIANT}
    answers = await asyncio.gather(
        *(
            source.evaluated(
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
    return {
        model: tuple(_sample(time, at) for time, at in sorted(own.items())) for model, own in points.items()
    }


def _model_of(labels: Mapping[str, str], models: Mapping[Key, Key]) -> Key | None:
    namespace = labels.get("exported_namespace") or labels.get("namespace", "")
    if "variant_name" in labels:
        return models.get((namespace, labels["variant_name"]))
    return namespace, labels.get("model_id", "")


def _sample(time: float, at: Mapping[str, float]) -> Sample:
    ready, granted = at.get("ready"), at.get("granted")
    return Sample(
        time=time,
        requests_per_second=at.get("requests_per_second"),
        ready=None if ready is None else round(ready),
        granted=None if granted is None else round(granted),
        unmet=at.get("unmet"),
        within_ttft=at.get("within_ttft"),
        within_itl=at.get("within_itl"),
    )
