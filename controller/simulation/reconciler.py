"""Stowplan as a policy: the controller's own reconciler and planner on the virtual cluster's objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from apiserver.cluster.errors import NotFound
from apiserver.cluster.resource import CONFIG_MAPS, PODS, VARIANT_AUTOSCALINGS
from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.annotated import model_of, reference_of
from apiserver.kinds.decision_record import read_record
from apiserver.schema.json import Json
from controller.engines.endpoints import QUEUE_SIZE
from controller.engines.metrics import Series
from controller.engines.readings import reading_of
from controller.engines.scraping import ScrapeResult
from controller.observe.gather import World
from controller.observe.policies import Policies
from controller.observe.settings_reading import read_policies
from controller.observe.targets import target_key
from controller.planning.decision import Plan
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from controller.simulation.autoscaler import SimulatedAutoscaler
from controller.simulation.cluster import VirtualCluster
from controller.simulation.manifests import Manifests, VirtualPod, manifests_of, moment
from controller.simulation.outcome import PolicyDecision
from controller.simulation.scenario import Scenario, VariantSetup
from controller.simulation.server import EngineCollector, Server
from controller.variants.variantautoscaling import CycleSettings, Tools, VariantAutoscalingReconciler
from controller.variants.watching import EngineSource

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster
    from apiserver.cluster.events import EventRecorder
    from apiserver.cluster.resource import Resource


def series_of(server: Server) -> list[Series]:
    """Return the metrics of a server as series, without the detour through the text format."""
    return [
        Series(name=sample.name, labels=sample.labels, value=float(sample.value))
        for family in EngineCollector(server).collect()
        for sample in family.samples
    ]


class InlinePlanner:
    """Plans in this process."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a snapshot."""
        return plan(snapshot, self._settings)


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
    ) -> None:
        """Set up a run; `source` reads the engines, None for the virtual ones of the run."""
        self.name = "stowplan"
        chosen = cycle_settings or CycleSettings(scale_to_zero=False)
        self.interval_seconds = chosen.sizing.interval_seconds
        self.decisions: list[PolicyDecision] = []
        self._scenario = scenario
        self._objects = _Objects(manifests or manifests_of(scenario))
        self._reconciler = VariantAutoscalingReconciler(
            Tools(
                cluster=cast("Cluster", self._objects),
                events=cast("EventRecorder", self._objects),
                source=source or self._objects,
                queries=self._objects,
                planner=InlinePlanner(settings),
                world=self._objects.world,
                policies=self._objects.policies,
                now=self._objects.now,
            ),
            chosen,
        )
        self._last: dict[str, tuple[int, str]] = {}
        """Replicas and reason of the last decision, by variant."""

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler:
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
            last = decision.replicas, str(decision.reason)
            if self._last.get(name) != last:
                self._last[name] = last
                self.decisions.append(
                    PolicyDecision(
                        seconds=cluster.now_seconds,
                        variant=name,
                        replicas=decision.replicas,
                        current_replicas=decision.current_replicas,
                        sentence=decision.message,
                    )
                )
        return self._objects.metrics()


class _Objects:
    """The stand-in for Kubernetes and for the engines' endpoints."""

    def __init__(self, manifests: Manifests) -> None:
        self.cluster: VirtualCluster | None = None
        self._manifests = manifests
        # Requests that wait for a model without replicas are always visible here: no component is simulated
        # from which a source that an annotation names could be read.
        self._owners = {name: _without_source(item.owner) for name, item in manifests.variants.items()}
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
        targets, objects = {}, manifests.variants.values()
        for name, owner in self._owners.items():
            if key := target_key(owner["metadata"]["namespace"], reference_of(owner)):
                deployment = manifests.variants[name].deployment
                spec = deployment["spec"] | {"replicas": cluster.replicas[name]}
                targets[key] = deployment | {"spec": spec}
        return World(
            autoscalings=[item for item in self._owners.values() if _has_status(item)],
            targets=targets,
            pods=[self._pod(pod) for pod in cluster.pods.values()],
            nodes=cluster.nodes,
            autoscalers=[item.autoscaler for item in objects if item.autoscaler],
            scaled_objects=[item.owner for item in objects if item.owner["kind"] == "ScaledObject"],
            records=self._records,
        )

    def metrics(self) -> Mapping[str, float]:
        published = {}
        for name, owner in self._owners.items():
            status = (owner if _has_status(owner) else self._record(owner)).get("status") or {}
            desired = status.get("desiredOptimizedAlloc") or {}
            if desired.get("numReplicas") is not None:
                published[name] = float(desired["numReplicas"])
        return published

    async def scrape(self, pods: Sequence[Json]) -> ScrapeResult:
        cluster, readings = self._cluster, {}
        for pod in pods:
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            series = series_of(cluster.server(cluster.pods[name]))
            readings[namespace, name] = reading_of(series, time_seconds=self.now().timestamp())
        return ScrapeResult(readings=readings, failures={})

    async def evaluate(self, expressions: Collection[str]) -> Mapping[str, Sequence[Series] | str]:
        """Return nothing: no annotation names an expression here."""
        return dict.fromkeys(expressions, ())

    async def queues(self) -> Sequence[Series]:
        """Return the requests that are held for each model, as an endpoint picker reports them."""
        routers = self._cluster.fleet.routers
        held = {
            (owner["metadata"]["namespace"], model): float(len(routers[model].held))
            for owner in self._owners.values()
            if (model := str(owner["spec"].get("modelID") or model_of(owner))) in routers
        }
        name = f"llm_d_epp{QUEUE_SIZE}"
        return [
            Series(
                name=name,
                labels={"__name__": name, "namespace": namespace, "model_name": model},
                value=number,
            )
            for (namespace, model), number in held.items()
        ]

    async def apply(self, resource: Resource, body: Json, **_options: object) -> Json:
        """Store a status, or the first records of a namespace, like server-side apply."""
        if resource is CONFIG_MAPS:
            self._records[body["metadata"]["namespace"]] = body["data"]
            return body
        name = self.names[body["metadata"]["namespace"], body["metadata"]["name"]]
        self._owners[name] = self._owners[name] | {"status": body["status"]}
        return self._owners[name]

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
        return self._pod(pod)

    def record(self, _about: Json, **_event: str) -> None:
        """Discard an event."""

    def _record(self, owner: Json) -> Json:
        """Return what was decided last for an annotated autoscaler."""
        metadata = owner["metadata"]
        return read_record(self._records.get(metadata["namespace"], {}).get(metadata["uid"]))

    def _pod(self, pod: VirtualPod) -> Json:
        return pod.manifest(self._manifests.variants[pod.variant].deployment)

    @property
    def _cluster(self) -> VirtualCluster:
        assert self.cluster is not None, "publish() says which cluster"
        return self.cluster


def _without_source(owner: Json) -> Json:
    metadata = owner["metadata"]
    annotations = {
        name: text for name, text in (metadata.get("annotations") or {}).items() if name != ACTIVITY
    }
    return owner | {
        "metadata": metadata | ({"annotations": annotations} if "annotations" in metadata else {})
    }


def _has_status(owner: Json) -> bool:
    """Return whether decisions are in the object's status, and not in records."""
    return bool(owner["kind"] == VARIANT_AUTOSCALINGS.kind)
