"""An in-memory cluster of bindings: objects as the caches contain them, and pods with metrics of engines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.schema.json import Json
from controller.bindings.autoscalingpolicybinding import (
    AutoscalingPolicyBindingReconciler,
    BindingSettings,
    BindingTools,
)
from controller.bindings.joint import Exchange, Grant
from controller.engines.endpoints import EndpointQuery, Exposures, exposed_in
from controller.observe.binding_targets import BoundWorld
from controller.observe.targets import TargetKey, TargetKind
from controller.policies.measuring import PodExposure
from controller.simulation.profile import EngineProfile
from controller.simulation.server import Server, exposition
from controller.simulation.workload import Request
from controller.variants.advisory import Scope

INTERVAL_SECONDS: Final = 15.0
_PER_PAIR: Final = 10
"""One binding of this many distributes its load over two different targets."""

_PODS: Final = 3
_API: Final = "registry.volcano.sh/v1alpha1"
_WAITING: Final = "vllm:num_requests_waiting"
_LATENCY: Final = "vllm:time_to_first_token_seconds"


@dataclass(kw_only=True)
class BindingFleet:
    """Bindings with targets of three pods each; accepts status writes and events like an API server."""

    bindings: int
    is_joint: bool
    """Whether bindings wait for a plan, which grants each of their targets what runs."""

    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    written: int = 0
    """Status writes."""

    recorded: int = 0
    """Events."""

    exchange: Exchange = field(default_factory=Exchange)
    pods: list[Json] = field(default_factory=list)
    objects: dict[str, Json] = field(default_factory=dict)
    autoscalers: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text = _exposition().decode()
        for number in range(self.bindings):
            names = [f"t{number}"] if number % _PER_PAIR else [f"t{number}-h100", f"t{number}-l40s"]
            self.objects[f"b{number}"] = _binding(f"b{number}", names)
            self.pods += [_pod(name, place) for name in names for place in range(_PODS)]
            self.autoscalers += map(_autoscaler, names)
        self.replicas = {
            TargetKey(TargetKind.DEPLOYMENT, "bench", item["metadata"]["name"]): _PODS
            for item in self.autoscalers
        }
        self.reconciler = AutoscalingPolicyBindingReconciler(
            BindingTools(
                cluster=cast("Cluster", self),
                events=cast("EventRecorder", self),
                source=self,
                world=self.world,
                now=self.now,
                steady=self.steady,
                exchange=self.exchange,
            ),
            BindingSettings(joint=Scope(everywhere=self.is_joint)),
        )

    async def cycle(self) -> None:
        """Run one cycle of the reconciler, and advance the time."""
        async with asyncio.TaskGroup() as group:
            if self.is_joint:
                group.create_task(self._plan())
            group.create_task(self.reconciler.cycle())
        self.time += timedelta(seconds=INTERVAL_SECONDS)

    async def _plan(self) -> None:
        await self.exchange.wait_for_request(within_seconds=self.exchange.patience_seconds)
        requests = self.exchange.take()
        granted = {ask.key: Grant(replicas=dict.fromkeys(ask.variants, _PODS)) for ask in requests.demands}
        self.exchange.grant(requests.number, granted)

    def world(self) -> BoundWorld:
        """Return the content of the caches."""
        return BoundWorld(
            policies=[_policy()],
            bindings=list(self.objects.values()),
            autoscalers=self.autoscalers,
            replicas=self.replicas,
            pods=self.pods,
        )

    def now(self) -> datetime:
        """Return the wall-clock time."""
        return self.time

    def steady(self) -> float:
        """Return the time of a monotonic clock, in seconds."""
        return self.time.timestamp()

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return the requested metrics of each pod, with all work except that of the network."""
        return Exposures(
            looks={
                item.endpoint: PodExposure(self.steady(), exposed_in(self.text, item.names))
                for item in questions
            }
        )

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Store a status, which is serialized for the request."""
        json.dumps(body)
        name = body["metadata"]["name"]
        self.objects[name] = self.objects[name] | {"status": body["status"]}
        self.written += 1
        return self.objects[name]

    def record(self, _about: Json, **_event: str) -> None:
        """Accept an event."""
        self.recorded += 1


def _exposition() -> bytes:
    profile = EngineProfile(
        model_id="m", alpha_ms=8.0, beta_ms=0.05, gamma_ms=0.0, delta_ms=0.03, num_gpu_blocks=24_000
    )
    engine = Server(profile)
    for number in range(400):
        engine.submit(
            Request(request_id=number, arrival_us=0, prompt_tokens=500, output_tokens=200), now_us=0
        )
    engine.advance(4_000_000)
    return exposition(engine)


def _metadata(name: str) -> Json:
    stamp = "2026-01-01T00:00:00Z"
    return {
        "namespace": "bench",
        "name": name,
        "uid": name,
        "generation": 1,
        "resourceVersion": "1",
        "creationTimestamp": stamp,
    }


def _policy() -> Json:
    metrics = [
        {"metricName": _WAITING, "targetValue": 40},
        {"metricName": _LATENCY, "targetValue": "2"},
    ]
    spec = {"metrics": metrics, "behavior": {"scaleUp": {"panicPolicy": {"period": "15s"}}}}
    return {"apiVersion": _API, "kind": "AutoscalingPolicy", "metadata": _metadata("p"), "spec": spec}


def _binding(name: str, targets: Sequence[str]) -> Json:
    bounds = {"minReplicas": 1, "maxReplicas": 50}
    parts = [bounds | {"target": {"targetRef": _reference(target)}} for target in targets]
    spec: Json = {"policyRef": {"name": "p"}}
    metadata = _metadata(name)
    if len(parts) == 1:
        spec["scalingConfiguration"] = parts[0]
    else:
        spec["optimizerConfiguration"] = {"params": [parts[0] | {"cost": 100}, parts[1] | {"cost": 32}]}
        metadata["annotations"] = {"stowplan.dev/capacity": f"{targets[0]}=3.5,{targets[1]}=1"}
    return {"apiVersion": _API, "kind": "AutoscalingPolicyBinding", "metadata": metadata, "spec": spec}


def _reference(name: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _autoscaler(name: str) -> Json:
    external = {"external": {"metric": {"name": "policy_desired_replicas"}}}
    spec = {"scaleTargetRef": _reference(name), "metrics": [external]}
    return {"metadata": _metadata(name), "spec": spec}


def _pod(target: str, place: int) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{target}-abc", "controller": True}
    labels = {"app": target, "pod-template-hash": "abc"}
    return {
        "metadata": _metadata(f"{target}-abc-{place}") | {"labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "n", "containers": [{"name": "vllm"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
