"""One cycle from objects to statuses, events and log lines, and the server as a record of what is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from engine_totals import counted
from structlog.testing import capture_logs

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.heartbeat import Heartbeat, heartbeat_of
from apiserver.schema.json import Json
from controller.observe.gather import World
from controller.observe.policies import Policies, ServiceClass
from controller.observe.readings import Reading
from controller.observe.scraping import Scraped
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Plan
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import LOWEST_PRIORITY, Snapshot
from controller.planning.state import PlanningState
from controller.reconcilers.advisory import Scope
from controller.reconcilers.heartbeat import Pulse
from controller.reconcilers.variantautoscaling import CycleSettings, Tools, VariantAutoscalingReconciler
from manifests import autoscaler, deployment, variant

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
"""Requests of 100 prompt and 100 answer tokens, with 20 ms between two tokens."""

SHOWN: Json = {
    "decodeParms": {"alpha": "13.2", "beta": "0.105"},
    "prefillParms": {"delta": "0.066"},
    "samples": 100,
}
"""So that steps take 20 ms at that rate. To stay below, a replica may serve 10: three are wanted."""

NODE: Json = {
    "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": PRODUCT}},
    "status": {
        "allocatable": {"nvidia.com/gpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def placed(manifest: Json, **metadata: object) -> Json:
    """Return a manifest as the API server would hand it out."""
    base = {"namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    return manifest | {"metadata": base | manifest["metadata"] | metadata}


def pods(name: str) -> list[Json]:
    """Return the ready pods of one Deployment, all on the one node."""
    container = {"resources": {"requests": {"nvidia.com/gpu": 1}}}
    return [
        {
            "metadata": {
                "namespace": "ns",
                "name": f"{name}-{number}",
                "labels": {"pod-template-hash": "abc"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": f"{name}-abc", "controller": True}],
            },
            "spec": {"nodeName": "n1", "containers": [container]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for number in range(REPLICAS[name])
    ]


@dataclass
class Stage:
    """A world of a variant with too many replicas and one with too few; what is said of them is kept."""

    annotations: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, Json] = field(default_factory=lambda: {"loud": {"decision": {"performance": SHOWN}}})
    events: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    scraped: set[str] = field(default_factory=set)
    unready: str = ""
    """A pod."""

    time: datetime = NOW
    unwritable: str = ""
    node: Json = field(default_factory=lambda: NODE)
    calls: list[str] = field(default_factory=list)
    pulse: Pulse = field(default_factory=Pulse)

    def world(self) -> World:
        """Return what the caches would hold."""
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
            },
            pods=[self._seen(pod) for name in REPLICAS for pod in pods(name)],
            nodes=[self.node],
            autoscalers=[placed(autoscaler(name)) for name in REPLICAS],
        )

    def _seen(self, pod: Json) -> Json:
        is_ready = pod["metadata"]["name"] != self.unready
        conditions = [{"type": "Ready", "status": str(is_ready)}]
        return pod | {"status": pod["status"] | {"conditions": conditions}}

    async def scrape(self, asked: Sequence[Json]) -> Scraped:
        """Let the loud one's engine be busy, and the quiet one's idle."""
        names = [pod["metadata"]["name"] for pod in asked]
        self.scraped = set(names)
        readings = {("ns", name): _reading(name.split("-")[0], self.time) for name in names}
        return Scraped(readings=readings, failures={})

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Plan as the controller's own process does."""
        self.asked.append("solve")
        return plan(snapshot, PlanningState(), Settings())[0]

    async def consider(self, snapshot: Snapshot) -> Plan:
        """Plan what might be."""
        self.asked.append("consider")
        return plan(snapshot, PlanningState(), Settings())[0]

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Take a status."""
        self.calls.append("apply")
        if body["metadata"]["name"] == self.unwritable:
            raise Unavailable("no answer")
        self.statuses[body["metadata"]["name"]] = body["status"]
        return body

    async def get(self, _resource: object, _name: str) -> Json:
        """Return the one node."""
        self.calls.append("get")
        return self.node | {"metadata": self.node["metadata"] | {"resourceVersion": "1"}}

    async def patch_merge(self, _resource: object, _name: str, change: Json) -> Json:
        """Write the node's taints."""
        self.calls.append("patch")
        self.node = self.node | {"spec": change["spec"]}
        return self.node

    def record(self, about: Json, *, note: str, **_event: str) -> None:
        """Take an event."""
        self.events[about["metadata"]["name"]] = note

    def reconciler(self, scope: Scope) -> VariantAutoscalingReconciler:
        """Return a reconciler of this world."""
        tools = Tools(
            cluster=cast("Cluster", self),
            events=cast("EventRecorder", self),
            source=self,
            planner=self,
            world=self.world,
            policies=lambda: POLICIES,
            now=lambda: self.time,
            consider=self.consider,
            pulse=self.pulse,
        )
        return VariantAutoscalingReconciler(tools, CycleSettings(scale_to_zero=False, advisory=scope))

    async def watched(self, scope: Scope) -> VariantAutoscalingReconciler:
        """Return a reconciler that has watched this world for a while; what it said is forgotten."""
        reconciler = self.reconciler(scope)
        for _ in range(6):
            await reconciler.cycle()
            self.time += STEP
        self.asked.clear()
        self.statuses.clear()
        self.events.clear()
        return reconciler

    def number(self, name: str) -> int | None:
        """Return what a HorizontalPodAutoscaler would be told."""
        number: int | None = self.statuses[name]["desiredOptimizedAlloc"].get("numReplicas")
        return number


def _reading(name: str, time: datetime) -> Reading:
    rate = PER_SECOND[name]
    requests = rate * (time - NOW).total_seconds()
    return Reading(
        time_seconds=time.timestamp(),
        kv_usage=0.4 if rate else 0.0,
        waiting=0,
        running=2 * rate,
        kv_tokens=16_000,
        totals=counted(requests, prompt_tokens=100 * requests, generation_tokens=100 * requests),
        model_names=frozenset(),
    )


async def test_without_advice_the_quiet_give_way_to_the_loud() -> None:
    """One plan, two numbers, and nothing to save by anybody's hand."""
    stage = Stage()

    outcome = await (await stage.watched(Scope())).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (1, 3)
    assert (stage.asked, outcome.advices) == (["solve"], {})
    assert all(item["type"] != "Advisory" for item in stage.statuses["quiet"]["conditions"])


async def test_what_is_advised_gets_its_decision_and_no_number_and_others_do_not_count_on_it() -> None:
    """The accelerators that advice alone would free are not there for the loud one."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})

    outcome = await (await stage.watched(Scope())).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (None, 1)
    assert stage.statuses["quiet"]["decision"]["grantedReplicas"] == 1
    assert stage.statuses["loud"]["decision"]["reason"] == "Shortage"
    assert stage.asked == ["solve", "consider"]
    assert {key: advice.saved_per_hour for key, advice in outcome.advices.items()} == {("ns", "quiet"): 80}


async def test_a_cluster_that_is_only_advised_is_planned_once() -> None:
    """Everybody is told what would be if all followed."""
    stage = Stage()

    outcome = await (await stage.watched(Scope(everywhere=True))).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (None, None)
    granted = {name: status["decision"]["grantedReplicas"] for name, status in stage.statuses.items()}
    assert granted == {"quiet": 1, "loud": 3}
    assert (stage.asked, len(outcome.advices)) == (["solve"], 2)


async def test_status_event_and_log_say_the_same_sentence() -> None:
    """Whoever reads one of them knows what the others say, with the advice in it."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})

    reconciler = await stage.watched(Scope())
    with capture_logs() as lines:
        outcome = await reconciler.cycle()

    logged = {line["name"]: line["message"] for line in lines if line["event"] == "decided"}
    for decision in outcome.plan.decisions:
        status = stage.statuses[decision.name]
        ready = next(item for item in status["conditions"] if item["type"] == "OptimizationReady")
        said = {status["decision"]["message"], ready["message"], stage.events[decision.name]}
        assert said == {logged[decision.name]} == {decision.message}
    assert "nothing is scaled, following it would save 80.00 per hour" in stage.events["quiet"]


async def test_advice_that_stays_the_same_is_told_once() -> None:
    """No event and no write follows from a decision that is known."""
    stage = Stage(annotations={"stowplan.dev/advisory": "true"})
    reconciler = await stage.watched(Scope())
    await reconciler.cycle()
    stage.events.clear()

    outcome = await reconciler.cycle()

    assert (outcome.written, stage.events) == (0, {})


async def test_a_status_that_cannot_be_written_leaves_no_node_closed() -> None:
    """The error is raised all the same, after the other statuses were written."""
    closed = NODE | {"spec": {"taints": [{"key": "stowplan.dev/moving", "effect": "NoSchedule"}]}}
    stage = Stage()
    reconciler = await stage.watched(Scope())
    stage.unwritable, stage.node = "quiet", closed

    with pytest.raises(Unavailable, match="no answer"):
        await reconciler.cycle()

    assert stage.node["spec"]["taints"] == []
    assert set(stage.statuses) == {"loud"}


def told(stage: Stage) -> Heartbeat | None:
    """Return what the Lease would say."""
    return heartbeat_of({"metadata": {"annotations": dict(stage.pulse.annotations())}})


async def test_an_idle_cycle_asks_the_api_server_for_nothing_and_says_that_it_ended() -> None:
    """However long nothing changes."""
    stage = Stage()
    reconciler = stage.reconciler(Scope())
    await reconciler.cycle()
    stage.calls.clear()

    for _ in range(3):
        await reconciler.cycle()

    assert stage.calls == []
    assert told(stage) == Heartbeat(time=NOW, newest_decision=NOW)


async def test_a_status_that_cannot_be_written_is_left_behind_by_the_heartbeat() -> None:
    """The others are confirmed all the same."""
    stage = Stage(unwritable="quiet")

    with pytest.raises(Unavailable):
        await stage.reconciler(Scope()).cycle()

    assert told(stage) == Heartbeat(time=NOW, newest_decision=NOW, unconfirmed=frozenset({("ns", "quiet")}))


async def test_what_engines_count_becomes_load_and_capacity_in_the_status() -> None:
    """What one replica serves follows from the step times that the status had, and its limit is named."""
    stage = Stage()

    await (await stage.watched(Scope())).cycle()

    said = stage.statuses["loud"]["decision"]
    assert said["demand"] == {
        "requestsPerSecond": "20",
        "upperRequestsPerSecond": "20",
        "startSeconds": 120,
        "backlogRequests": 0,
        "avgInputTokens": "100",
        "avgOutputTokens": "100",
    }
    assert (said["signal"], said["capacitySource"]) == ("Fresh", "LastKnown")
    assert said["capacityLimit"] == "ITL 20 ms"
    assert float(said["capacityPerReplica"]) == pytest.approx(10.23, abs=0.005)
    assert said["message"] == (
        "loud goes from 1 to 3 replicas: "
        "20 requests/s now, up to 20 in the 120 s that a replica needs to start, 65 % of 3 x 10; "
        "one serves 10 within ITL 20 ms (a batch of 64 would allow 24), by what it showed before"
    )


async def test_before_engines_have_counted_everything_stays() -> None:
    """A controller that has just begun to lead knows nothing, and scales nobody down."""
    stage = Stage()

    await stage.reconciler(Scope()).cycle()

    assert (stage.number("quiet"), stage.number("loud")) == (3, 1)
    assert stage.statuses["quiet"]["decision"]["signal"] == "Unknown"
    assert stage.statuses["quiet"]["decision"]["message"] == (
        "quiet stays at 3 replicas: the load of quiet is not known before its engines have answered twice"
    )


async def test_only_engines_that_are_ready_are_asked() -> None:
    """One that is not any longer is none that keeps silent: the others decide."""
    stage = Stage()
    reconciler = await stage.watched(Scope())
    stage.unready = "quiet-2"

    await reconciler.cycle()

    assert stage.scraped == {"quiet-0", "quiet-1", "loud-0"}
    assert stage.statuses["quiet"]["decision"]["signal"] == "Fresh"
    assert stage.number("quiet") == 1
