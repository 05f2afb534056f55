"""Plays the demo's scenario without a cluster, on virtual time, against the real controller.

The manifests are the shipped ones, engines are scraped through their real exposition, and the controller's
own reconciler observes, plans and writes status. Only Kubernetes is played, by a few rules. It shows within
seconds whether the scenario still tells its story.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import yaml

from apiserver.cluster.resource import VARIANT_AUTOSCALINGS
from apiserver.kinds.conversion import convert
from controller.closedloop.reconciled import InlinePlanner
from controller.config_planning import PlanningConfig, sizing_of
from controller.observe.policies import read_policies
from controller.observe.readings import parse_exposition, reading_of
from controller.observe.scraping import Scraped
from controller.reconcilers.variantautoscaling import (
    CycleSettings,
    Tools,
    VariantAutoscalingReconciler,
)
from controller.simulation.engine import Engine
from controller.simulation.exposition import exposition
from hack.demo import scenario
from hack.demo.observe import observe
from hack.demo.profiles import profile_of
from hack.demo.traffic import Traffic
from hack.demo.virtual import VirtualCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.events import EventRecorder
    from apiserver.schema.json import Json
    from controller.observe.policies import Policies
    from hack.demo.observation import Observation

TICK_SECONDS = 0.5
PLAN_SECONDS = 2
AUTOSCALE_SECONDS = 2.0
_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Rehearsal:
    """A virtual cluster, the traffic on its engines, and what the controller needs of the world."""

    cluster: VirtualCluster
    policies: Policies
    traffic: Traffic
    now_seconds: float = 0.0

    async def run(self, *, until_seconds: float) -> AsyncIterator[Observation]:
        """Play from the start and yield what can be seen, once per cycle of the controller."""
        sizing = sizing_of(PlanningConfig(interval_seconds=PLAN_SECONDS))
        reconciler = VariantAutoscalingReconciler(
            self._tools(), CycleSettings(scale_to_zero=False, sizing=sizing)
        )
        while self.now_seconds < until_seconds:
            self.cluster.reconcile(self.now_seconds)
            self._match_engines()
            self.traffic.advance(self.now_seconds)
            if self.now_seconds % PLAN_SECONDS == 0:
                await reconciler.cycle()
                yield self._observe()
            if self.now_seconds % AUTOSCALE_SECONDS == 0:
                self.cluster.autoscale(self.now_seconds)
            self.now_seconds += TICK_SECONDS

    async def scrape(self, pods: Sequence[Json]) -> Scraped:
        """Read the engines of the pods through their text exposition."""
        readings = {
            (pod["metadata"]["namespace"], pod["metadata"]["name"]): reading_of(
                parse_exposition(exposition(self._engine(pod)).decode()), time_seconds=self._now().timestamp()
            )
            for pod in pods
        }
        return Scraped(readings=readings, failures={})

    def _tools(self) -> Tools:
        return Tools(
            cluster=cast("Cluster", self.cluster),
            events=cast("EventRecorder", self.cluster),
            source=self,
            planner=InlinePlanner(),
            world=self.cluster.world,
            policies=lambda: self.policies,
            now=self._now,
        )

    def _now(self) -> datetime:
        return _START + timedelta(seconds=self.now_seconds)

    def _engine(self, pod: Json) -> Engine:
        return self.traffic.fleet.routers[profile_of(pod).model_id].engines[pod["metadata"]["name"]]

    def _match_engines(self) -> None:
        now_us, fleet = round(self.now_seconds * 1e6), self.traffic.fleet
        running = {
            name: pod for name, pod in self.cluster.pods.items() if pod["status"]["phase"] == "Running"
        }
        for model_id, router in fleet.routers.items():
            for name in [name for name in router.engines if name not in running]:
                fleet.leave(name, model_id=model_id, now_us=now_us)
        for name, pod in running.items():
            profile = profile_of(pod)
            if name not in fleet.routers[profile.model_id].engines:
                fleet.join(name, Engine(profile, now_us=now_us), now_us=now_us)

    def _observe(self) -> Observation:
        return observe(
            self.cluster.world(),
            policies=self.policies,
            clients=self.traffic.clients(),
            seconds=self.now_seconds,
        )


def prepare() -> Rehearsal:
    """Set the scene from the shipped manifests."""
    by_kind: dict[str, dict[str, Json]] = {}
    for path in (scenario.SETTINGS, *scenario.MODELS):
        for manifest in yaml.safe_load_all(path.read_text()):
            by_kind.setdefault(manifest["kind"], {})[manifest["metadata"]["name"]] = manifest
    return Rehearsal(
        cluster=VirtualCluster(
            nodes=[_ready(node.manifest()) for node in scenario.nodes()],
            deployments={name: _defaulted(item) for name, item in by_kind["Deployment"].items()},
            autoscalers=by_kind["HorizontalPodAutoscaler"],
            autoscalings={name: _stored(item) for name, item in by_kind["VariantAutoscaling"].items()},
        ),
        policies=read_policies(by_kind["ConfigMap"], unit_costs="accelerator-unit-costs"),
        traffic=Traffic(scenario.arrivals()),
    )


def _ready(node: Json) -> Json:
    return node | {"status": node["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}


def _defaulted(deployment: Json) -> Json:
    return deployment | {"spec": {"replicas": 1} | deployment["spec"]}


def _stored(manifest: Json) -> Json:
    stored = convert(manifest, VARIANT_AUTOSCALINGS.api_version)
    return stored | {"metadata": stored["metadata"] | {"uid": stored["metadata"]["name"]}}
