"""Who answers for external metrics: the APIService, of which a cluster has only one. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json, as_list, as_object

API_SERVICE: Final = "v1beta1.external.metrics.k8s.io"
TARGET: Final = "stowplan-apiserver"
"""The Service that our APIService refers to."""

REMEDY_FOR_OTHERS: Final = "see 'Clusters with KEDA' in docs/installing.md"
"""What to do about an API that is registered for another adapter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalMetrics:
    """The state of the API that autoscalers ask for external metrics; by default it is not known."""

    other_service: str = ""
    """The Service that answers instead of ours; empty if ours does."""

    unavailable: str = ""
    """Why the API is not available; empty if it is."""


UNKNOWN_METRICS: Final = ExternalMetrics()


def unknown_metrics() -> ExternalMetrics:
    """Return that the state of the API is not known."""
    return UNKNOWN_METRICS


def is_ours(api_service: Json) -> bool:
    """Tell whether an APIService refers to our Service."""
    return as_object(as_object(api_service.get("spec")).get("service")).get("name") == TARGET


def external_metrics_of(api_services: Sequence[Json]) -> ExternalMetrics:
    """Return the state that the APIService shows, given as a list that is empty if it does not exist."""
    if not api_services:
        return ExternalMetrics(unavailable=f"APIService {API_SERVICE} does not exist: see docs/installing.md")
    (api_service,) = api_services
    service = as_object(as_object(api_service.get("spec")).get("service"))
    other = "" if is_ours(api_service) else f"{service.get('namespace')}/{service.get('name')}"
    for item in map(as_object, as_list(as_object(api_service.get("status")).get("conditions"))):
        if (item.get("type"), item.get("status")) == ("Available", "False"):
            whose = f" of Service {other}" if other else ""
            cause = f"{item.get('reason')}: {item.get('message')}"
            remedy = REMEDY_FOR_OTHERS if other else f"check the pods of {TARGET}"
            why = f"APIService {API_SERVICE}{whose} is not available, {remedy}: {cause}"
            return ExternalMetrics(other_service=other, unavailable=why)
    return ExternalMetrics(other_service=other)
