"""The same loads on a real control plane, with simulated engines, HorizontalPodAutoscalers and our processes.

An hour takes twelve minutes: all durations of the policy, the loads and the engines are divided by five. Each
Deployment has one load and one start-up time, and is bound to the common policy. Its Ready pods share the
load, and their metrics are the only input of the controller. The table compares the outcome with Stowplan and
the reference in virtual time; the drawing shows the reference's decision for each sample.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from aiohttp import web

from apiserver.cluster.cache import Cache, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.resource import DEPLOYMENTS, PODS
from apiserver.schema.json import Json
from controller.observe.pods import is_ready
from controller.policies.policy import StableLimits
from hack.bench.policies.kthena import Reference
from hack.bench.policies.trajectories import (
    BOUNDS,
    HOUR_SECONDS,
    LOADS,
    POLICY,
    STARTS_SECONDS,
    TARGET,
    TOLERATED,
    Course,
)
from hack.controlplane import ControlPlane
from hack.controlplane.nodes import Node, create_nodes
from hack.demo.profiles import START_UP_ANNOTATION
from hack.installation import Installation

PACE: Final = 5
"""Seconds of the load per second of wall-clock time."""

NAMESPACE: Final = "trajectories"
_INTERVAL_SECONDS: Final = 15 // PACE
_PORT: Final = 8100
_NODES: Final = 4
_TICK_SECONDS: Final = 0.5
_READY_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The state of one Deployment; its time is that of the load, in seconds."""

    seconds: float
    load: float
    """The load, in replicas that it needs."""

    asked: int
    ready: int


@dataclass(kw_only=True)
class LiveRun:
    """The samples of one load with one start-up time."""

    shape: str
    start_seconds: float
    samples: list[Sample] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of its Deployment, autoscaler and binding."""
        return f"{self.shape}-{self.start_seconds:.0f}"

    @property
    def course(self) -> Course:
        """Its figures, like those of a run in virtual time."""
        held = overloaded = 0.0
        for sample, after in zip(self.samples, self.samples[1:], strict=False):
            span = after.seconds - sample.seconds
            held += span * sample.asked
            overloaded += span * (sample.load > sample.ready * TOLERATED + 1e-9)
        return Course(
            replica_hours=held / HOUR_SECONDS,
            overload_seconds=overloaded,
            replicas=tuple(sample.asked for sample in self.samples),
        )

    def reference(self) -> tuple[int, ...]:
        """Return the decision of the mended reference for each sample; it is not applied."""
        reference = Reference(POLICY, BOUNDS, is_mended=True)
        return tuple(
            reference.decide(
                sample.seconds, current=sample.asked, ready=sample.ready, total=sample.load * TARGET
            )
            for sample in self.samples
        )


def live() -> list[LiveRun]:
    """Run all loads for an hour of load time, and return the samples.

    Raises ControlPlaneError, and TimeoutError if the pods do not become Ready in time.
    """
    runs = [LiveRun(shape=shape, start_seconds=start) for shape in LOADS for start in STARTS_SECONDS]
    with ControlPlane() as control_plane:
        settings = {
            "controller": {
                "planning": {"intervalSeconds": _INTERVAL_SECONDS},
                "engines": {"podNetworks": [control_plane.pod_cidr]},
            }
        }
        with Installation(control_plane, settings=settings):
            nodes = (f"bench-{number}" for number in range(_NODES))
            create_nodes(
                control_plane, [Node(name=name, accelerator="none", accelerator_count=0) for name in nodes]
            )
            control_plane.kubectl("create", "namespace", NAMESPACE)
            items = [_policy(), *(item for run in runs for item in _manifests(run))]
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            control_plane.kubectl("apply", f"--namespace={NAMESPACE}", "--filename=-", input=text)
            asyncio.run(_play_runs(control_plane, runs))
    return runs


async def _play_runs(control_plane: ControlPlane, runs: list[LiveRun]) -> None:
    async with await Cluster.connect(control_plane.kubeconfig) as cluster, _Engines() as engines:
        pods = Cache(cluster, PODS, namespace=NAMESPACE, reduce=without_managed_fields)
        deployments = Cache(cluster, DEPLOYMENTS, namespace=NAMESPACE, reduce=without_managed_fields)
        watching = [asyncio.create_task(cache.run()) for cache in (pods, deployments)]
        began: float | None = None
        deadline = time.monotonic() + _READY_SECONDS
        while began is None or (time.monotonic() - began) * PACE < HOUR_SECONDS:
            ready = _ready(pods.items())
            seconds = 0.0 if began is None else (time.monotonic() - began) * PACE
            loads = {run.name: LOADS[run.shape](seconds) for run in runs}
            await engines.match(ready, loads)
            asked = {item["metadata"]["name"]: item["spec"]["replicas"] for item in deployments.items()}
            if began is None:
                if all(len(ready.get(run.name, ())) >= asked.get(run.name, 1) for run in runs):
                    began = time.monotonic()
                elif time.monotonic() > deadline:
                    raise TimeoutError(f"not every pod is Ready after {_READY_SECONDS:.0f} s")
            else:
                for run in runs:
                    run.samples.append(
                        Sample(
                            seconds=seconds,
                            load=loads[run.name],
                            asked=asked[run.name],
                            ready=len(ready.get(run.name, ())),
                        )
                    )
            await asyncio.sleep(_TICK_SECONDS)
        for task in watching:
            task.cancel()


def _ready(pods: tuple[Json, ...]) -> Mapping[str, list[str]]:
    """Return the addresses of the Ready pods by Deployment, without pods that terminate."""
    addresses: dict[str, list[str]] = {}
    for pod in pods:
        if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]:
            addresses.setdefault(pod["metadata"]["labels"]["app"], []).append(pod["status"]["podIP"])
    return addresses


class _Engines:
    """Serves metrics on the address of each Ready pod, with the pod's share of the load."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._sites: dict[str, web.TCPSite] = {}
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def match(self, ready: Mapping[str, list[str]], loads: Mapping[str, float]) -> None:
        """Listen on exactly the addresses of the Ready pods, and set their loads."""
        self._shares = {
            address: loads[name] * TARGET / len(addresses)
            for name, addresses in ready.items()
            for address in addresses
        }
        for address in self._sites.keys() - self._shares.keys():
            await self._sites.pop(address).stop()
        for address in self._shares.keys() - self._sites.keys():
            site = web.TCPSite(self._runner, address, _PORT, reuse_address=True)
            await site.start()
            self._sites[address] = site

    async def _metrics(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        share = self._shares.get(request.transport.get_extra_info("sockname")[0])
        if share is None:
            raise web.HTTPServiceUnavailable
        return web.Response(text=f"# TYPE m gauge\nm {share}\n")


def _policy() -> Json:
    up, down, panic = POLICY.up, POLICY.down, POLICY.panic
    assert panic is not None, "the policy has a panic mode"
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "bench"},
        "spec": {
            "metrics": [{"metricName": "m", "targetValue": round(TARGET)}],
            "tolerancePercent": POLICY.tolerance_percent,
            "behavior": {
                "scaleUp": {
                    "stablePolicy": _limits(up),
                    "panicPolicy": {
                        "percent": panic.percent,
                        "period": _scaled_duration(panic.period_seconds),
                        "panicThresholdPercent": panic.threshold_percent,
                        "panicModeHold": _scaled_duration(panic.hold_seconds),
                    },
                },
                "scaleDown": _limits(down),
            },
        },
    }


def _limits(limits: StableLimits) -> Json:
    return {
        "instances": limits.instances,
        "percent": limits.percent,
        "period": _scaled_duration(limits.period_seconds),
        "stabilizationWindow": _scaled_duration(limits.window_seconds),
        "selectPolicy": limits.select,
    }


def _scaled_duration(seconds: float) -> str:
    return f"{seconds / PACE:g}s"


def _manifests(run: LiveRun) -> Iterator[Json]:
    engine = {"name": "engine", "image": "vllm", "ports": [{"containerPort": _PORT}]}
    first = max(1, round(LOADS[run.shape](0.0)))
    start = {START_UP_ANNOTATION: _scaled_duration(run.start_seconds)}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": run.name}
    at_once = {
        "tolerance": "0",
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}],
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": run.name},
        "spec": {
            "replicas": first,
            "selector": {"matchLabels": {"app": run.name}},
            "template": {
                "metadata": {"labels": {"app": run.name}, "annotations": start},
                "spec": {"containers": [engine]},
            },
        },
    }
    metric = {"name": "policy_desired_replicas", "selector": {"matchLabels": {"target_name": run.name}}}
    yield {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": run.name},
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": 1,
            "maxReplicas": BOUNDS.max_replicas,
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
            "behavior": {"scaleUp": at_once, "scaleDown": at_once},
        },
    }
    yield {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": run.name},
        "spec": {
            "policyRef": {"name": "bench"},
            "scalingConfiguration": {
                "minReplicas": BOUNDS.min_replicas,
                "maxReplicas": BOUNDS.max_replicas,
                "target": {"targetRef": reference},
            },
        },
    }
