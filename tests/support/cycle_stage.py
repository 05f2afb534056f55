"""A world of two variants for whole cycles, with a recording stand-in for the API server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.schema.json import Json
from controller.engines.readings import Reading
from controller.engines.scraping import ScrapeResult
from controller.observe.gather import World
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.policies import Policies, ServiceClass
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Plan
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import LOWEST_PRIORITY, Snapshot
from controller.sizing.records import SizingSettings
from controller.variants.advisory import Scope
from controller.variants.publishing import Pulse
from controller.variants.variantautoscaling import CycleSettings, Tools, VariantAutoscalingReconciler
from support.engine_totals import alone, counted
from support.gathering import placed, pod
from support.manifests import autoscaler, deployment, node, variant

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PRODUCT = "NVIDIA-A100-PCIE-80GB"
REPLICAS = {"quiet": 3, "loud": 1}
POLICIES = Policies(
    classes={
        ("classes", "chat"): ServiceClass(
            name="chat", priority=LOWEST_PRIORITY, ttft_ms={}, tpot_ms={"loud": 20}
        )
    }
)
STEP = timedelta(seconds=15)
PER_SECOND = {"quiet": 0, "loud": 20}
"""Request rates, with 100 prompt and 100 output tokens, and 20 ms between tokens."""

SHOWN: Json = {
    "decodeParms": {"alpha": "13.2", "beta": "0.105"},
    "prefillParms": {"delta": "0.066"},
    "samples": 100,
}
"""Step times of 20 ms at that rate. Within 20 ms, a replica serves 8.6, so three are wanted."""

NODE = node("n1", accelerators=4, product=PRODUCT)


def pods(name: str) -> list[Json]:
    """Return the ready pods of one Deployment, all on the one node."""
    return [pod(f"{name}-{number}", owner=name) for number in range(REPLICAS[name])]


@dataclass
class Stage:
    """A variant with too many replicas and one with too few, with a record of writes and events."""

    annotations: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, Json] = field(default_factory=lambda: {"loud": {"decision": {"performance": SHOWN}}})
    events: dict[str, str] = field(default_factory=dict)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    """Objects and reasons of events, in order."""

    asked: list[str] = field(default_factory=list)
    scraped: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)
    """Why engines do not answer, by pod."""

    unready: str = ""
    """Name of a pod that is not ready."""

    started: str = ""
    """When that pod started on its node; empty if it did not."""

    time: datetime = NOW
    """The wall clock."""

    serves: dict[str, str] = field(default_factory=dict)
    """Models of engines that serve another model than they should, by pod."""

    gone: set[str] = field(default_factory=set)
    """Deployments that were deleted, with their pods."""

    set_by: timedelta = timedelta()
    """The part of the elapsed time by which the clock was set instead of passing."""

    unwritable: str = ""
    former: Json = field(default_factory=dict)
    """What an earlier controller left in the desired allocation of every status."""

    cleared: list[Json] = field(default_factory=list)
    """Merge patches of statuses."""

    node: Json = field(default_factory=lambda: NODE)
    calls: list[str] = field(default_factory=list)
    pulse: Pulse = field(default_factory=Pulse)
    objectives: Objectives = NO_OBJECTIVES
    policies: Policies = POLICIES

    def world(self) -> World:
        """Return the content of the caches."""
        return World(
            autoscalings=[
                placed(
                    variant(name, modelID=name, labels={"inference.optimization/acceleratorName": PRODUCT}),
                    annotations=self.annotations if name == "quiet" else {},
                )
                | {"status": self.statuses.get(name, {})}
                for name in REPLICAS
            ],
            targets={
                TargetKey(TargetKind.DEPLOYMENT, "ns", name): placed(
                    deployment(name, product=PRODUCT, accelerators=1, replicas=number)
                )
                for name, number in REPLICAS.items()
                if name not in self.gone
            },
            pods=[self._seen(pod) for name in REPLICAS if name not in self.gone for pod in pods(name)],
            nodes=[self.node],
            autoscalers=[placed(autoscaler(name)) for name in REPLICAS],
        )

    def _seen(self, pod: Json) -> Json:
        is_ready = pod["metadata"]["name"] != self.unready
        status = pod["status"] | {"conditions": [{"type": "Ready", "status": str(is_ready)}]}
        return pod | {"status": status | ({} if is_ready else {"startTime": self.started})}

    def steady(self) -> float:
        """Return the time of a monotonic clock."""
        return (self.time - self.set_by).timestamp()

    async def scrape(self, asked: Sequence[Json]) -> ScrapeResult:
        """Return a busy engine for the loud variant, and an idle one for the quiet variant."""
        names = [pod["metadata"]["name"] for pod in asked]
        self.samples = set(names)
        readings = {
            ("ns", name): replace(
                _reading(name.split("-")[0], self.time - self.set_by),
                model_names=frozenset({self.serves[name]} if name in self.serves else ()),
            )
            for name in names
            if name not in self.failures
        }
        return ScrapeResult(
            readings=readings, failures={("ns", name): why for name, why in self.failures.items()}
        )

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return a plan, like the controller's solver process."""
        self.asked.append("solve")
        return plan(snapshot, Settings())

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Store a status."""
        self.calls.append("apply")
        if body["metadata"]["name"] == self.unwritable:
            raise Unavailable("no answer")
        status = self.statuses[body["metadata"]["name"]] = body["status"]
        desired = self.former | status.get("desiredOptimizedAlloc", {})
        return {
            "metadata": body["metadata"] | {"resourceVersion": "7"},
            "status": status | {"desiredOptimizedAlloc": desired},
        }

    async def get(self, _resource: object, _name: str) -> Json:
        """Return the one node."""
        self.calls.append("get")
        return self.node | {"metadata": self.node["metadata"] | {"resourceVersion": "1"}}

    async def patch_merge(self, _resource: object, name: str, change: Json, **_options: object) -> Json:
        """Write the node's taints, or refuse to change a status."""
        self.calls.append("patch")
        if "status" in change:
            self.cleared.append({"name": name} | change)
            raise Unavailable("no answer")
        self.node = self.node | {"spec": change["spec"]}
        return self.node

    def record(self, about: Json, *, note: str, **event: str) -> None:
        """Record an event."""
        self.events[about["metadata"]["name"]] = note
        self.reasons.append((about["metadata"]["name"], event["reason"]))

    def reconciler(self, scope: Scope) -> VariantAutoscalingReconciler:
        """Return a reconciler of this world."""
        tools = Tools(
            cluster=cast("Cluster", self),
            events=cast("EventRecorder", self),
            source=self,
            planner=self,
            world=self.world,
            policies=lambda: self.policies,
            objectives=lambda: self.objectives,
            now=lambda: self.time,
            steady=self.steady,
            pulse=self.pulse,
        )
        return VariantAutoscalingReconciler(
            tools,
            CycleSettings(scale_to_zero=False, advisory=scope, sizing=SizingSettings(hold_seconds=45.0)),
        )

    async def watched(self, scope: Scope) -> VariantAutoscalingReconciler:
        """Return a reconciler after some cycles, with the recorded output cleared."""
        reconciler = self.reconciler(scope)
        for _ in range(6):
            await reconciler.cycle()
            self.time += STEP
        self.asked.clear()
        self.statuses.clear()
        self.events.clear()
        return reconciler

    def number(self, name: str) -> int | None:
        """Return the number that a HorizontalPodAutoscaler would read."""
        number: int | None = self.statuses[name]["desiredOptimizedAlloc"].get("numReplicas")
        return number


def _reading(name: str, time: datetime) -> Reading:
    rate = PER_SECOND[name]
    requests = rate * (time - NOW).total_seconds()
    return Reading(
        time_seconds=time.timestamp(),
        running=2 * rate,
        kv_tokens=16_000,
        parts=alone(counted(requests, prompt_tokens=100 * requests, generation_tokens=100 * requests)),
        model_names=frozenset(),
    )
