"""Plays the demo's scenario without a cluster, on virtual time, against the real planner.

The manifests are the shipped ones, engines are scraped through their real exposition, and observing,
planning and the status are the controller's own code. Only Kubernetes is played, by a few rules. It shows
within seconds whether the scenario still tells its story.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import yaml

from apiserver.cluster.resource import VARIANT_AUTOSCALINGS
from apiserver.kinds.conversion import convert
from controller.observe.engines import EngineRecords
from controller.observe.gather import engine_pods, gather
from controller.observe.policies import read_policies
from controller.observe.readings import parse_exposition, reading_of
from controller.observe.variants import effective_cost
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
from controller.reconcilers.status import Verdict, planned_status
from controller.simulation.engine import Engine
from controller.simulation.exposition import exposition
from hack.demo import scenario
from hack.demo.observe import observe
from hack.demo.profiles import profile_of
from hack.demo.traffic import Traffic
from hack.demo.virtual import VirtualCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apiserver.schema.json import Json
    from controller.observe.policies import Policies
    from hack.demo.observation import Observation

TICK_SECONDS = 0.5
PLAN_SECONDS = 2.0
AUTOSCALE_SECONDS = 2.0
_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Rehearsal:
    """A virtual cluster with a fleet of engines and the controller's memory."""

    cluster: VirtualCluster
    policies: Policies
    traffic: Traffic
    settings: Settings
    state: PlanningState = field(default_factory=PlanningState)
    engines: EngineRecords = field(default_factory=EngineRecords)

    def run(self, *, until_seconds: float) -> Iterator[Observation]:
        """Play from the start and yield what can be seen, once per cycle of the planner."""
        tick = 0
        while (now_seconds := tick * TICK_SECONDS) < until_seconds:
            self.cluster.reconcile(now_seconds)
            self._match_engines(now_seconds)
            self.traffic.advance(now_seconds)
            if now_seconds % PLAN_SECONDS == 0:
                self._plan(now_seconds)
                yield self._observe(now_seconds)
            if now_seconds % AUTOSCALE_SECONDS == 0:
                self.cluster.autoscale(now_seconds)
            tick += 1

    def _running(self) -> dict[str, Json]:
        return {name: pod for name, pod in self.cluster.pods.items() if pod["status"]["phase"] == "Running"}

    def _engine(self, pod: Json) -> Engine:
        return self.traffic.fleet.routers[profile_of(pod).model_id].engines[pod["metadata"]["name"]]

    def _match_engines(self, now_seconds: float) -> None:
        now_us, running = round(now_seconds * 1e6), self._running()
        for model_id, router in self.traffic.fleet.routers.items():
            for name in [name for name in router.engines if name not in running]:
                self.traffic.fleet.leave(name, model_id=model_id, now_us=now_us)
        for name, pod in running.items():
            profile = profile_of(pod)
            if name not in self.traffic.fleet.routers[profile.model_id].engines:
                self.traffic.fleet.join(name, Engine(profile, now_us=now_us), now_us=now_us)

    def _plan(self, now_seconds: float) -> None:
        world = self.cluster.world()
        readings = {
            (pod["metadata"]["namespace"], pod["metadata"]["name"]): reading_of(
                parse_exposition(exposition(self._engine(pod)).decode()), time_seconds=now_seconds
            )
            for pod in engine_pods(world)
        }
        self.engines = self.engines.updated(readings, frozenset(readings))
        gathered = gather(
            world,
            policies=self.policies,
            engines=self.engines,
            now_seconds=now_seconds,
            may_scale_to_zero=False,
        )
        made, self.state = plan(gathered.snapshot, self.state, self.settings)
        variants = {variant.key: variant for variant in gathered.snapshot.variants}
        for decision in made.decisions:
            autoscaling = self.cluster.autoscalings[decision.name]
            template = self.cluster.deployments[decision.name]["spec"]["template"]["spec"]
            verdict = Verdict(
                variant=variants[decision.namespace, decision.name],
                decision=decision,
                solver=made.solver,
                cost_source=effective_cost(autoscaling, template, self.policies)[1],
                silence="",
                unheeded=gathered.unheeded.get((decision.namespace, decision.name), ""),
            )
            now = _START + timedelta(seconds=now_seconds)
            autoscaling["status"] = planned_status(autoscaling, verdict, now=now)

    def _observe(self, now_seconds: float) -> Observation:
        clients = self.traffic.clients()
        return observe(self.cluster.world(), policies=self.policies, clients=clients, seconds=now_seconds)


def prepare() -> Rehearsal:
    """Set the scene from the shipped manifests."""
    by_kind: dict[str, dict[str, Json]] = {}
    for path in (scenario.SETTINGS, *scenario.MODELS):
        for manifest in yaml.safe_load_all(path.read_text()):
            by_kind.setdefault(manifest["kind"], {})[manifest["metadata"]["name"]] = manifest
    storage = VARIANT_AUTOSCALINGS.api_version
    return Rehearsal(
        cluster=VirtualCluster(
            nodes=[_ready(node.manifest()) for node in scenario.nodes()],
            deployments={name: _defaulted(item) for name, item in by_kind["Deployment"].items()},
            autoscalers=by_kind["HorizontalPodAutoscaler"],
            autoscalings={
                name: convert(manifest, storage) for name, manifest in by_kind["VariantAutoscaling"].items()
            },
        ),
        policies=read_policies(by_kind["ConfigMap"], unit_costs="accelerator-unit-costs"),
        traffic=Traffic(scenario.arrivals()),
        settings=Settings(),
    )


def _defaulted(deployment: Json) -> Json:
    return deployment | {"spec": {"replicas": 1} | deployment["spec"]}


def _ready(node: Json) -> Json:
    return node | {"status": node["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}
