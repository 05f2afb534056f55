"""Stowplan as a policy: the controller's own reconciler and planner on the virtual cluster's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from apiserver.cluster.errors import NotFound
from apiserver.cluster.resource import CONFIG_MAPS, PODS
from apiserver.kinds.annotated import reference_of
from apiserver.kinds.decision_record import read_record
from controller.closedloop.manifests import manifests_of
from controller.closedloop.pods import moment
from controller.closedloop.policy import Told
from controller.closedloop.series import series_of
from controller.engines.readings import reading_of
from controller.engines.scraping import Scraped
from controller.observe.gather import World
from controller.observe.policies import Policies
from controller.observe.settings_reading import read_policies
from controller.observe.targets import target_key
from controller.planning.inputs import PlanningState, Settings
from controller.planning.plan import plan
from controller.variants.variantautoscaling import (
    CycleSettings,
    Tools,
    VariantAutoscalingReconciler,
)
from controller.variants.watching import EngineSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.events import EventRecorder
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json
    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.manifests import Manifests
    from controller.closedloop.scenario import Scenario, VariantSetup
    from controller.planning.decision import Plan
    from controller.planning.snapshot import Snapshot


class InlinePlanner:
    """Plans in this process, and keeps its state in memory."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._state = PlanningState()

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a snapshot."""
        made, self._state = plan(snapshot, self._state, self._settings)
        return made


class ReconciledPolicy:
    """The real reconciler: it reads objects and engines, and the statuses it writes are published."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        manifests: Manifests | None = None,
        settings: Settings | None = None,
        cycle_settings: CycleSettings | None = None,
        source: EngineSource | None = None,
        name: str = "stowplan",
    ) -> None:
        """Set up a run; `source` reads the engines, None for the virtual ones of the run."""
        self.name = name
        chosen = cycle_settings or CycleSettings(scale_to_zero=False)
        self.interval_seconds = chosen.sizing.interval_seconds
        self.told: list[Told] = []
        self._scenario = scenario
        self._objects = _Objects(manifests or manifests_of(scenario))
        self._reconciler = VariantAutoscalingReconciler(
            Tools(
                cluster=cast("Cluster", self._objects),
                events=cast("EventRecorder", self._objects),
                source=source or self._objects,
                planner=InlinePlanner(settings),
                world=self._objects.world,
                policies=self._objects.policies,
                now=self._objects.now,
            ),
            chosen,
        )
        self._said: dict[str, tuple[int, str]] = {}

    def autoscaler(self, variant: VariantSetup) -> Autoscaler:
        """Return the HPA that reads the decision for a variant."""
        return self._scenario.follower(variant)

    def world(self) -> World:
        """Return the current objects; available after the first `publish`."""
        return self._objects.world()

    def policies(self) -> Policies:
        """Return prices and service classes."""
        return self._objects.policies()

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Run a cycle and return the replicas in the resulting statuses."""
        self._objects.cluster = cluster
        result = await self._reconciler.cycle()
        for decision in result.plan.decisions:
            name = self._objects.names[decision.namespace, decision.name]
            said = decision.replicas, str(decision.reason)
            if self._said.get(name) != said:
                self._said[name] = said
                self.told.append(
                    Told(
                        seconds=cluster.now_seconds,
                        variant=name,
                        replicas=decision.replicas,
                        current_replicas=decision.current_replicas,
                        sentence=decision.message,
                    )
                )
        return self._objects.published()


class _Objects:
    """The stand-in for Kubernetes and for the engines' endpoints."""

    def __init__(self, manifests: Manifests) -> None:
        self.cluster: VirtualCluster | None = None
        self._manifests = manifests
        self._autoscalings = dict(manifests.autoscalings)
        self._owners = {**manifests.autoscalings, **manifests.annotated}
        self._records: dict[str, dict[str, str]] = {}
        self._policies = read_policies(
            manifests.config_maps,
            unit_costs=manifests.unit_costs,
            default_classes=manifests.service_classes,
        )
        self.names = {
            (item["metadata"]["namespace"], item["metadata"]["name"]): name
            for name, item in self._owners.items()
        }

    def now(self) -> datetime:
        return moment(self._cluster.now_seconds)

    def policies(self) -> Policies:
        return self._policies

    def world(self) -> World:
        manifests, cluster = self._manifests, self._cluster
        targets = {}
        for name, owner in self._owners.items():
            if key := target_key(owner["metadata"]["namespace"], reference_of(owner)):
                deployment = manifests.deployments[name]
                spec = deployment["spec"] | {"replicas": cluster.replicas[name]}
                targets[key] = deployment | {"spec": spec}
        return World(
            autoscalings=list(self._autoscalings.values()),
            targets=targets,
            pods=[pod.manifest(manifests.deployments[pod.variant]) for pod in cluster.pods.values()],
            nodes=cluster.nodes,
            autoscalers=list(manifests.autoscalers.values()),
            scaled_objects=[item for item in manifests.annotated.values() if item["kind"] == "ScaledObject"],
            records=self._records,
        )

    def published(self) -> Mapping[str, float]:
        found = {}
        statuses = {name: item.get("status") or {} for name, item in self._autoscalings.items()}
        for name, item in self._manifests.annotated.items():
            text = self._records.get(item["metadata"]["namespace"], {}).get(item["metadata"]["uid"])
            statuses[name] = read_record(text).get("status") or {}
        for name, status in statuses.items():
            desired = status.get("desiredOptimizedAlloc") or {}
            if desired.get("numReplicas") is not None:
                found[name] = float(desired["numReplicas"])
        return found

    async def scrape(self, pods: Sequence[Json]) -> Scraped:
        cluster, readings = self._cluster, {}
        for pod in pods:
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            series = series_of(cluster.server(cluster.pods[name]))
            readings[namespace, name] = reading_of(series, time_seconds=self.now().timestamp())
        return Scraped(readings=readings, failures={})

    async def apply(self, resource: Resource, body: Json, **_options: object) -> Json:
        """Store a status, or the first records of a namespace, like server-side apply."""
        if resource is CONFIG_MAPS:
            self._records[body["metadata"]["namespace"]] = body["data"]
            return body
        name = self.names[body["metadata"]["namespace"], body["metadata"]["name"]]
        self._autoscalings[name] = self._autoscalings[name] | {"status": body["status"]}
        return self._autoscalings[name]

    async def patch_merge(self, resource: Resource, name: str, body: Json, *, namespace: str) -> Json:
        """Apply a merge patch to a pod's annotations, where null removes one, or to records."""
        if resource is CONFIG_MAPS and namespace not in self._records:
            raise NotFound(f"no ConfigMap {name!r}")
        if resource is CONFIG_MAPS:
            self._records[namespace] = {**self._records[namespace], **body["data"]}
        if resource is not PODS:
            return body  # nobody reads the annotation of an autoscaler
        pod = self._cluster.pods[name]
        for key, value in (body["metadata"].get("annotations") or {}).items():
            if value is None:
                pod.annotations.pop(key, None)
            else:
                pod.annotations[key] = str(value)
        return pod.manifest(self._manifests.deployments[pod.variant])

    def record(self, _about: Json, **_event: str) -> None:
        """Discard an event."""

    @property
    def _cluster(self) -> VirtualCluster:
        assert self.cluster is not None, "publish() says which cluster"
        return self.cluster
