"""Bindings with their policies, targets and pods, and their reconciler, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.metrics.index import MetricValue
from apiserver.metrics.watches import bound_essentials, bound_metrics_of
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.bindings.autoscalingpolicybinding import (
    AutoscalingPolicyBindingReconciler,
    BindingSettings,
    BindingTools,
)
from controller.bindings.joint import Exchange
from controller.bindings.scaling import DirectScaler
from controller.bindings.status import BindingCycleResult
from controller.engines.endpoints import EndpointQuery, Exposures
from controller.observe.binding_targets import BoundWorld
from controller.observe.targets import TargetKey, TargetKind
from controller.policies.measuring import ExposedMetric, PodExposure
from controller.variants.publishing import Pulse
from support.manifests import autoscaler

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP = timedelta(seconds=15)
API = "registry.volcano.sh/v1alpha1"


def metadata(name: str, **more: Any) -> Json:
    """Return the metadata of a stored object."""
    base = {"namespace": "ns", "name": name, "uid": f"u-{name}", "generation": 1}
    return base | {"creationTimestamp": "2026-01-01T00:00:00Z"} | more


def policy(**spec: Any) -> Json:
    """Return a policy with one metric that scales up at once, and down after a minute."""
    behavior = {
        "scaleUp": {"stablePolicy": {"period": "0s"}},
        "scaleDown": {"period": "0s", "stabilizationWindow": "60s"},
    }
    body = {"metrics": [{"metricName": "m", "targetValue": 10}], "tolerancePercent": 0, "behavior": behavior}
    return {"apiVersion": API, "kind": "AutoscalingPolicy", "metadata": metadata("p"), "spec": body | spec}


def reference(name: str) -> Json:
    """Return a reference to a Deployment."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def binding(name: str = "b", target: str = "a", **more: Any) -> Json:
    """Return a binding of one Deployment."""
    scaling = {"minReplicas": 1, "maxReplicas": 9, "target": {"targetRef": reference(target)}}
    spec = {"policyRef": {"name": "p"}, "scalingConfiguration": scaling}
    made = {"apiVersion": API, "kind": "AutoscalingPolicyBinding", "spec": spec}
    return made | {"metadata": metadata(name, **more)}


def optimizer(name: str, *targets: str, **more: Any) -> Json:
    """Return a binding of several Deployments with increasing costs."""
    params = [
        {"cost": 10 + place, "minReplicas": 0, "maxReplicas": 9, "target": {"targetRef": reference(target)}}
        for place, target in enumerate(targets)
    ]
    spec = {"policyRef": {"name": "p"}, "optimizerConfiguration": {"params": params}}
    made = {"apiVersion": API, "kind": "AutoscalingPolicyBinding", "spec": spec}
    return made | {"metadata": metadata(name, **more)}


def pod(target: str, number: int) -> Json:
    """Return a ready pod of a Deployment."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{target}-abc", "controller": True}
    name = f"{target}-{number}"
    return {
        "metadata": metadata(name, labels={"pod-template-hash": "abc"}, ownerReferences=[owner]),
        "spec": {"nodeName": "n", "containers": [{}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def router() -> Json:
    """Return a ready pod in front of replicas, such as a router."""
    made = pod("router", 0)
    made["metadata"] |= {"name": "router", "labels": {"app": "router"}, "ownerReferences": []}
    return made


def follower(target: str) -> Json:
    """Return an HPA that reads the decision."""
    made = autoscaler(target)
    labels = {"target_kind": "Deployment", "target_name": target}
    metric = {"name": "policy_desired_replicas", "selector": {"matchLabels": labels}}
    made["spec"]["metrics"][0]["external"]["metric"] = metric
    return made | {"metadata": metadata(target)}


@dataclass
class Stage:
    """Some bindings and their Deployments, with a record of writes and events."""

    bindings: dict[str, Json] = field(default_factory=lambda: {"b": binding()})
    policies: list[Json] = field(default_factory=lambda: [policy()])
    replicas: dict[str, int] = field(default_factory=lambda: {"a": 2})
    loads: dict[str, float] = field(default_factory=dict)
    """The metric's value in each pod of a Deployment; pods of others are silent."""

    router_says: float | None = None
    """The metric of the pod in front of the replicas; None if there is none."""

    router_counts: bool = False
    """Whether that metric is a counter."""

    silent_names: set[str] = field(default_factory=set)
    """Series that no page contains."""

    silent_pods: set[str] = field(default_factory=set)
    """Pods that do not answer, whatever the load of their Deployment."""

    autoscalers: list[Json] = field(default_factory=lambda: [follower("a")])
    autoscalings: list[Json] = field(default_factory=list)
    settings: BindingSettings = field(default_factory=BindingSettings)
    time: datetime = NOW
    events: list[tuple[str, str]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    unwritable: str = ""
    pulse: Pulse = field(default_factory=Pulse)
    exchange: Exchange = field(default_factory=Exchange)
    asked: list[EndpointQuery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Replace the reconciler by that of a new leader without memory."""
        tools = BindingTools(
            cluster=cast("Cluster", self),
            events=cast("EventRecorder", self),
            source=self,
            world=self.world,
            now=self.now,
            steady=self.steady,
            pulse=self.pulse,
            scaler=self.scaler(),
            exchange=self.exchange,
        )
        self.reconciler = AutoscalingPolicyBindingReconciler(tools, self.settings)

    def scaler(self) -> DirectScaler | None:
        """Return None, because HorizontalPodAutoscalers scale here."""
        return None

    def now(self) -> datetime:
        """Return the wall-clock time."""
        return self.time

    def steady(self) -> float:
        """Return the seconds of a monotonic clock."""
        return self.time.timestamp()

    def world(self) -> BoundWorld:
        """Return the content of the caches."""
        return BoundWorld(
            policies=self.policies,
            bindings=list(self.bindings.values()),
            autoscalings=self.autoscalings,
            autoscalers=self.autoscalers,
            replicas={
                TargetKey(TargetKind.DEPLOYMENT, "ns", name): count for name, count in self.replicas.items()
            },
            pods=[pod(name, number) for name, count in self.replicas.items() for number in range(count)]
            + ([] if self.router_says is None else [router()]),
        )

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return the metrics of the pods of Deployments with a load."""
        self.asked = list(questions)
        loads = {}
        for item in questions:
            pod = item.endpoint.pod
            loads[item] = None if pod in self.silent_pods else self.loads.get(pod.rsplit("-", 1)[0])
            if pod == "router" and self.router_says is not None:
                loads[item] = self.router_says
        return Exposures(
            looks={
                item.endpoint: PodExposure(
                    self.time.timestamp(),
                    dict.fromkeys(
                        item.names - self.silent_names,
                        ExposedMetric(
                            value=load, is_counter=self.router_counts and item.endpoint.pod == "router"
                        ),
                    ),
                )
                for item, load in loads.items()
                if load is not None
            },
            failures={item.endpoint: "no answer" for item, load in loads.items() if load is None},
        )

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Store a status, as the API server does."""
        name = body["metadata"]["name"]
        if name == self.unwritable:
            raise Unavailable("cut off")
        assert validate(AutoscalingPolicyBinding, self.bindings[name] | {"status": body["status"]}) == []
        self.bindings[name] = self.bindings[name] | {"status": body["status"]}
        self.written.append(name)
        return self.bindings[name]

    def record(self, about: Json, **event: str) -> None:
        """Record an event."""
        self.events.append((about["metadata"]["name"], event["reason"]))

    async def cycle(self, *, times: int = 1, follow: bool = False) -> BindingCycleResult:
        """Run cycles; with `follow`, autoscalers apply decisions at once."""
        for _ in range(times):
            outcome = await self.reconciler.cycle()
            self.time += STEP
            for item in self.bindings.values() if follow else ():
                for target in (item.get("status") or {}).get("targets") or []:
                    self.replicas[target["name"]] = target.get("replicas", self.replicas[target["name"]])
        return outcome

    def status(self, name: str = "b") -> Json:
        """Return the written status."""
        found: Json = self.bindings[name].get("status") or {}
        return found

    def reason(self, condition: str, name: str = "b") -> str:
        """Return the reason of a condition."""
        (found,) = [item for item in self.status(name)["conditions"] if item["type"] == condition]
        return str(found["reason"])

    def published(self, name: str = "b") -> dict[str, int | None]:
        """Return the published metrics of a binding, by target."""
        entries = bound_metrics_of(bound_essentials(self.bindings[name]))
        return {
            item.labels["target_name"]: item.value_milli // 1000 if isinstance(item, MetricValue) else None
            for item in entries
        }
