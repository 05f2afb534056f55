"""The policy `hpa`: the HorizontalPodAutoscalers and ScaledObjects of an export, each by its own metrics.

Proposals follow the real controller: `k8s.io/kubernetes/pkg/controller/podautoscaler/replica_calculator.go`.
The highest proposal of all metrics counts, and one that is unknown prevents scaling down. Metrics are those
of the moment: the delay of a scrape is not simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.simulation.autoscaler import SimulatedAutoscaler
from controller.simulation.cluster import VirtualCluster
from controller.simulation.manifests import Manifests, VirtualPod
from controller.simulation.outcome import PolicyDecision
from controller.simulation.scaling_rules import (
    Aggregation,
    Gauge,
    Refusal,
    Scaler,
    ScalingMetric,
    Term,
    refusal_text,
    scaler_of,
)
from controller.simulation.scenario import Scenario, VariantSetup

_AGGREGATIONS: Final[Mapping[Aggregation, Callable[[Sequence[float]], float]]] = {
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
}


def scalers_of(manifests: Manifests) -> tuple[Mapping[str, Scaler], str]:
    """Return the autoscalers by variant, and which cannot be simulated and why."""
    scalers: dict[str, Scaler] = {}
    problems: list[Refusal] = []
    for name, objects in manifests.variants.items():
        scaler, refused = scaler_of(objects.autoscaler, objects.scaled_object)
        if scaler is not None:
            scalers[name] = scaler
        problems += refused
    return scalers, refusal_text(problems)


@dataclass(kw_only=True)
class HorizontalPolicy:
    """Autoscalers by variant; a variant without one keeps its replicas."""

    scenario: Scenario
    scalers: Mapping[str, Scaler]
    name: str = "hpa"
    decisions: list[PolicyDecision] = field(default_factory=list)

    @property
    def interval_seconds(self) -> float:
        """The sync period of HPAs, because they read the metrics directly."""
        return self.scenario.sync_seconds

    @property
    def note(self) -> str:
        """What is simulated in another way than it runs, in sentences; empty for nothing."""
        unscaled = [item.name for item in self.scenario.variants if item.name not in self.scalers]
        remarks = [text for scaler in self.scalers.values() for text in scaler.remarks]
        if refused := refusal_text(item for scaler in self.scalers.values() for item in scaler.refused):
            remarks.append(f"{refused}; the other metrics of these autoscalers are simulated")
        if unscaled:
            remarks.append(f"no autoscaler scales {', '.join(unscaled)}, so their replicas stay")
        return "; ".join(dict.fromkeys(remarks))

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler | None:
        """Return an HPA that follows the proposals, which allow for tolerance themselves."""
        scaler = self.scalers.get(variant.name)
        if scaler is None:
            return None
        return SimulatedAutoscaler(
            behaviour=scaler.behaviour.without_tolerance(),
            min_replicas=scaler.min_replicas,
            max_replicas=scaler.max_replicas,
            target_average=1.0,
        )

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the proposed replicas of each variant; one whose metrics are unknown is missing."""
        for name, item in self.scalers.items():
            if item.starts_from_zero and not cluster.replicas[name]:
                cluster.scale(name, item.min_replicas)
        series = _series(cluster)
        published: dict[str, float] = {}
        for name in cluster.variants:
            scaler = self.scalers.get(name)
            if scaler is None:
                published[name] = float(cluster.replicas[name])
            elif (proposal := _proposal(scaler, cluster, name, series)) is not None:
                published[name] = float(proposal)
        return published


@dataclass(frozen=True, kw_only=True, slots=True)
class _PodGauges:
    """The gauges of one ready pod, with its labels."""

    variant: str
    labels: Mapping[str, str]
    gauges: Mapping[Gauge, float]


def _series(cluster: VirtualCluster) -> list[_PodGauges]:
    """Return the series of all pods that are ready."""
    series = []
    for pod in cluster.pods.values():
        if pod.is_ready and pod.deleted_seconds is None:
            server = cluster.server(pod)
            series.append(
                _PodGauges(
                    variant=pod.variant,
                    labels=_labels(cluster, pod),
                    gauges={
                        "waiting": float(server.waiting),
                        "running": float(server.running),
                        "kv_usage": server.kv_usage,
                    },
                )
            )
    return series


def _labels(cluster: VirtualCluster, pod: VirtualPod) -> Mapping[str, str]:
    metadata = cluster.manifests.variants[pod.variant].deployment["metadata"]
    # Deployments, and so their pods, can have other names than their variants.
    name = pod.name.replace(pod.variant, metadata["name"], 1)
    model_id = cluster.variants[pod.variant].model_id
    return {"namespace": metadata.get("namespace", ""), "pod": name, "model_name": model_id}


def _proposal(scaler: Scaler, cluster: VirtualCluster, name: str, series: Sequence[_PodGauges]) -> int | None:
    """Return the replicas that the metrics of a variant ask for; None if they are kept."""
    replicas = cluster.replicas[name]
    proposals = [_of_rule(rule, scaler, cluster, name, series) for rule in scaler.rules]
    known = [item for item in proposals if item is not None]
    if not known or (len(known) < len(proposals) and max(known) < replicas):
        return None
    return max(known)


def _of_rule(
    rule: ScalingMetric, scaler: Scaler, cluster: VirtualCluster, name: str, series: Sequence[_PodGauges]
) -> int | None:
    own = [item for item in series if item.variant == name]
    pods = len(cluster.pods_of(name))
    if rule.kind == "pods":
        values = [item.gauges[rule.terms[0].gauge] for item in own]
        return proposal_by_pods(values, rule.target, scaler, pods=pods, replicas=cluster.replicas[name])
    values = [value for term in rule.terms if (value := _value(term, own, series)) is not None]
    if not values and not rule.is_zero_without_series:
        return None
    total = sum(values)
    # A value scales the ready pods by its ratio to the target. An average is a total, divided by the target.
    base = len(own) if rule.kind == "value" else pods
    ratio = (
        total / rule.target if rule.kind == "value" else total / (rule.target * base) if base else math.inf
    )
    if _is_tolerated(ratio, scaler):
        return cluster.replicas[name]
    return math.ceil(round(ratio * base if rule.kind == "value" else total / rule.target, 9))


def proposal_by_pods(
    values: Sequence[float], target: float, scaler: Scaler, *, pods: int, replicas: int
) -> int | None:
    """Return the proposal for a mean over pods; those without values count against any change.

    `values` are those of the pods that have one. None without any value.
    """
    if not values:
        return None
    ratio = sum(values) / len(values) / target
    missing = pods - len(values)
    if not missing:
        return replicas if _is_tolerated(ratio, scaler) else math.ceil(round(ratio * len(values), 9))
    # As in the real controller, what is missing counts against the change: at the target when scaling down, 0
    # when scaling up. If the change then points the other way, there is none.
    assumed = target if ratio < 1 else 0.0
    filled = (sum(values) + missing * assumed) / pods / target
    if _is_tolerated(filled, scaler) or (filled < 1) != (ratio < 1):
        return replicas
    proposed = math.ceil(round(filled * pods, 9))
    is_other_way = proposed > replicas if filled < 1 else proposed < replicas
    return replicas if is_other_way else proposed


def _is_tolerated(ratio: float, scaler: Scaler) -> bool:
    return 1 - scaler.behaviour.down.tolerance <= ratio <= 1 + scaler.behaviour.up.tolerance


def _value(term: Term, own: Sequence[_PodGauges], series: Sequence[_PodGauges]) -> float | None:
    """Return the value of a term; None without any series."""
    values = [
        item.gauges[term.gauge]
        for item in (own if term.is_own else series)
        if all(matcher.holds(item.labels) for matcher in term.matchers)
    ]
    return _AGGREGATIONS[term.aggregation](values) if values else None
