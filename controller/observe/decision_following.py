"""Whether the autoscalers of a target act on a decision, as far as the cluster shows.

`apiserver.kinds.following` checks whether they are declared to follow it. Still, a decision has no effect if
another adapter answers for external metrics, of which a cluster has only one APIService, if an autoscaler
reports an error, or if nothing reads the metric.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from apiserver.kinds.autoscalers import DECISION_METRICS, Autoscaler
from apiserver.schema.json import Json, as_list, as_object
from controller.observe.scalers import RESTING, is_resting

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


LEAST_WAIT_SECONDS: Final = 60.0
"""Minimum time in seconds before replicas below the decision are reported; autoscalers act every 15 s."""

_WHERE: Final = ", see 'The HPA does not follow' in docs/troubleshooting.md"
"""Where the responses of our API are listed, with what to do."""

K = TypeVar("K", bound=Hashable)


class ActingReason(StrEnum):
    """Whether a decision is followed, as the reason of a condition."""

    FOLLOWED = "ReplicasAsDecided"
    EXPECTED = "ReplicasExpected"
    METRICS_UNAVAILABLE = "ExternalMetricsUnavailable"
    METRICS_TAKEN_OVER = "ExternalMetricsTakenOver"
    NOT_ACTIVE = "AutoscalerNotActive"
    BELOW = "ReplicasBelowDecision"
    PODS_MISSING = "PodsMissing"


ActingFinding = tuple[bool, ActingReason, str]
"""Whether the decision is followed, the reason, and the message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """The replicas of one target, and what should change them."""

    decided: int
    requested: int
    """Replicas that the target requests."""

    existing: int | None
    """Replicas with pods; None if they are not counted."""

    autoscalers: Sequence[Autoscaler]
    external: ExternalMetrics = UNKNOWN_METRICS
    waited_seconds: float = 0.0
    """For how long the replicas have been below the decision without any change towards it."""

    start_seconds: float = 0.0
    """Time that a replica takes to start."""

    is_published: bool = True
    """Whether autoscalers have had a number to read before now."""

    @property
    def is_below(self) -> bool:
        """Whether fewer replicas are requested than decided, by more than an autoscaler tolerates."""
        return self.requested < self.decided and not self._is_tolerated

    @property
    def lacks_pods(self) -> bool:
        """Whether enough replicas are requested, but not created."""
        return (
            not self.is_below
            and self.existing is not None
            and self.existing < min(self.decided, self.requested)
        )

    @property
    def is_short(self) -> bool:
        """Whether the replicas are below the decision."""
        return self.is_below or self.lacks_pods

    @property
    def _is_tolerated(self) -> bool:
        if not self.requested or not self.autoscalers:
            return False
        return self.decided / self.requested - 1 <= max(item.up_tolerance for item in self.autoscalers)


def acting_finding(seen: Situation) -> ActingFinding:
    """Return whether the decision on a target is followed. Of several causes, the most general is given."""
    if obstacle := _without_metrics(seen) or _inactive(seen):
        return False, *obstacle
    text = f"{seen.decided} decided, {seen.requested} requested"
    text += f", {seen.existing} with pods" if seen.lacks_pods else ""
    if not seen.is_short:
        return True, ActingReason.FOLLOWED, text
    if seen.waited_seconds <= max(LEAST_WAIT_SECONDS, seen.start_seconds):
        return True, ActingReason.EXPECTED, text
    since = f"{text} for {seen.waited_seconds:.0f} s"
    if seen.lacks_pods:
        return (
            False,
            ActingReason.PODS_MISSING,
            f"{since}: see the events of the workload and its ReplicaSets",
        )
    who = " and ".join(item.display_name for item in seen.autoscalers)
    if not who:
        return False, ActingReason.BELOW, f"{since}: let a HorizontalPodAutoscaler read the decision"
    return False, ActingReason.BELOW, f"{since}: see the conditions and the scaleUp behavior of {who}"


def _without_metrics(seen: Situation) -> tuple[ActingReason, str] | None:
    """Return why no autoscaler gets a number from our API; None if none asks it, or it answers."""
    names = {reading.name for item in seen.autoscalers for reading in item.readings}
    if names.isdisjoint(DECISION_METRICS):
        return None
    if why := seen.external.unavailable:
        return ActingReason.METRICS_UNAVAILABLE, f"autoscalers get no number: {why}"
    # Another adapter may serve the same number, read from Prometheus.
    if (other := seen.external.other_service) and not any(_is_active(item) for item in seen.autoscalers):
        text = (
            f"autoscalers get no number: Service {other} answers for external metrics instead of"
            f" {TARGET}; {REMEDY_FOR_OTHERS}"
        )
        return ActingReason.METRICS_TAKEN_OVER, text
    return None


def _inactive(seen: Situation) -> tuple[ActingReason, str] | None:
    if is_resting(seen.autoscalers, seen.requested):
        return ActingReason.NOT_ACTIVE, f"{seen.autoscalers[0].display_name} {RESTING}"
    if not seen.is_published:
        return None
    for item in seen.autoscalers:
        status, reason, message = item.scaling_active
        if not (item.is_created or status):
            text = f"{item.display_name} does not scale, as KEDA has not created its HorizontalPodAutoscaler"
            return ActingReason.NOT_ACTIVE, f"{text}: check whether KEDA is installed and runs"
        # KEDA disables its HorizontalPodAutoscaler at 0 replicas, and scales up from there itself.
        is_at_rest = seen.requested == 0 and bool(item.scaled_object) and reason == "ScalingDisabled"
        if status == "False" and not is_at_rest:
            where = _WHERE if reason == "FailedGetExternalMetric" else ""
            return ActingReason.NOT_ACTIVE, f"{item.display_name} does not scale{where}: {reason}: {message}"
    return None


def _is_active(item: Autoscaler) -> bool:
    return item.scaling_active[0] == "True"


class ReplicaWatch:
    """Measures for how long replicas have been below a decision without any change towards it."""

    def __init__(self) -> None:
        self._since: dict[Hashable, tuple[float, int]] = {}

    def findings(
        self, situations: Mapping[K, Situation], external: ExternalMetrics, *, now_seconds: float
    ) -> Mapping[K, ActingFinding]:
        """Return whether each decision is followed."""
        known, self._since = self._since, {}
        results: dict[K, ActingFinding] = {}
        for key, seen in situations.items():
            replicas = seen.requested + (seen.existing or 0)
            since, before = known.get(key, (now_seconds, replicas))
            since = now_seconds if replicas > before or not seen.is_short else since
            self._since[key] = since, replicas
            results[key] = acting_finding(
                replace(seen, external=external, waited_seconds=now_seconds - since)
            )
        return results
