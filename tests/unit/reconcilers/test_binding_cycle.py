"""Whole cycles of bindings: what pods say in, statuses, events and confirmation out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from support.manifests import autoscaler

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import target_object
from apiserver.metrics.from_binding import bound_essentials, bound_metrics_of
from apiserver.metrics.series import Series
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.bound import BoundWorld
from controller.observe.endpoints import Exposures, Question
from controller.observe.targets import TargetKey, TargetKind
from controller.policies.exposed import Exposed
from controller.policies.measuring import Look
from controller.reconcilers.advisory import Scope
from controller.reconcilers.autoscalingpolicybinding import (
    AutoscalingPolicyBindingReconciler,
    BindingOutcome,
    BindingSettings,
    BindingTools,
)
from controller.reconcilers.heartbeat import Pulse
from controller.reconcilers.publishing import Published

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP = timedelta(seconds=15)
API = "registry.volcano.sh/v1alpha1"


def metadata(name: str, **more: Any) -> Json:
    """Return what an API server says of an object."""
    base = {"namespace": "ns", "name": name, "uid": f"u-{name}", "generation": 1}
    return base | {"creationTimestamp": "2026-01-01T00:00:00Z"} | more


def policy(**spec: Any) -> Json:
    """Return a policy of one metric that is followed at once upwards, and after a minute downwards."""
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
    """Return a binding of several Deployments, each dearer than the one before."""
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


def follower(target: str) -> Json:
    """Return an HPA that reads the decision."""
    made = autoscaler(target)
    made["spec"]["metrics"][0]["external"]["metric"]["name"] = "policy_desired_replicas"
    return made | {"metadata": metadata(target)}


@dataclass
class Stage:
    """Some bindings and their Deployments; what is written and told is kept."""

    bindings: dict[str, Json] = field(default_factory=lambda: {"b": binding()})
    policies: list[Json] = field(default_factory=lambda: [policy()])
    replicas: dict[str, int] = field(default_factory=lambda: {"a": 2})
    loads: dict[str, float] = field(default_factory=dict)
    """What each pod of a Deployment says of the metric; those that are not here are silent."""

    autoscalers: list[Json] = field(default_factory=lambda: [follower("a")])
    autoscalings: list[Json] = field(default_factory=list)
    settings: BindingSettings = field(default_factory=BindingSettings)
    time: datetime = NOW
    events: list[tuple[str, str]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    unwritable: str = ""
    pulse: Pulse = field(default_factory=Pulse)
    asked: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Let another process lead, which remembers nothing."""
        self.reconciler = AutoscalingPolicyBindingReconciler(
            BindingTools(
                cluster=cast("Cluster", self),
                events=cast("EventRecorder", self),
                source=self,
                world=self.world,
                now=self.now,
                steady=self.steady,
                pulse=self.pulse,
            ),
            self.settings,
        )

    def now(self) -> datetime:
        """Return what the wall clock shows."""
        return self.time

    def steady(self) -> float:
        """Return the seconds of a clock that nobody sets."""
        return self.time.timestamp()

    def world(self) -> BoundWorld:
        """Return what the caches would hold."""
        return BoundWorld(
            policies=self.policies,
            bindings=list(self.bindings.values()),
            autoscalings=self.autoscalings,
            autoscalers=self.autoscalers,
            replicas={
                TargetKey(TargetKind.DEPLOYMENT, "ns", name): count for name, count in self.replicas.items()
            },
            pods=[pod(name, number) for name, count in self.replicas.items() for number in range(count)],
        )

    async def expose(self, questions: Sequence[Question]) -> Exposures:
        """Let the pods of loaded Deployments answer."""
        self.asked = list(questions)
        loads = {item: self.loads.get(item.name.rsplit("-", 1)[0]) for item in questions}
        return Exposures(
            looks={
                item.endpoint: Look(self.time.timestamp(), {"m": Exposed(value=load)})
                for item, load in loads.items()
                if load is not None
            },
            failures={item.endpoint: "no answer" for item, load in loads.items() if load is None},
        )

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Take a status, as the API server does."""
        name = body["metadata"]["name"]
        if name == self.unwritable:
            raise Unavailable("cut off")
        assert validate(AutoscalingPolicyBinding, self.bindings[name] | {"status": body["status"]}) == []
        self.bindings[name] = self.bindings[name] | {"status": body["status"]}
        self.written.append(name)
        return self.bindings[name]

    def record(self, about: Json, **event: str) -> None:
        """Take an event."""
        self.events.append((about["metadata"]["name"], event["reason"]))

    async def cycle(self, *, times: int = 1, follow: bool = False) -> BindingOutcome:
        """Let cycles pass; with `follow`, autoscalers do at once what is decided."""
        for _ in range(times):
            outcome = await self.reconciler.cycle()
            self.time += STEP
            for item in self.bindings.values() if follow else ():
                for target in (item.get("status") or {}).get("targets") or []:
                    self.replicas[target["name"]] = target.get("replicas", self.replicas[target["name"]])
        return outcome

    def status(self, name: str = "b") -> Json:
        """Return what was written."""
        found: Json = self.bindings[name].get("status") or {}
        return found

    def reason(self, condition: str, name: str = "b") -> str:
        """Return the reason of a condition."""
        (found,) = [item for item in self.status(name)["conditions"] if item["type"] == condition]
        return str(found["reason"])

    def published(self, name: str = "b") -> dict[str, int | None]:
        """Return what the metrics API serves of a binding, by target."""
        entries = bound_metrics_of(bound_essentials(self.bindings[name]))
        return {
            item.labels["target_name"]: item.value_milli // 1000 if isinstance(item, Series) else None
            for item in entries
        }


async def test_what_pods_say_is_decided_and_published() -> None:
    """The status has the why; the same is not written twice; a change is told."""
    stage = Stage(loads={"a": 22.0})
    await stage.cycle(times=3)

    assert stage.written == ["b"]
    assert stage.published() == {"a": 5}
    status = stage.status()
    assert status["decision"]["message"] == ("5 replicas, now 2: m is 44, 10 per replica, which asks for 5")
    assert status["metrics"] == [
        {"name": "m", "targetValue": "10", "value": "44", "replicas": 5, "signal": "Fresh", "ageSeconds": 0}
    ]
    assert stage.reason("TargetsResolved") == "TargetsFound"
    assert stage.events == [("b", "Decided")]
    assert {item.port for item in stage.asked} == {8100}


async def test_a_status_is_refreshed_once_a_minute_while_figures_move() -> None:
    """Noise costs one write a minute."""
    stage = Stage(loads={"a": 10.0}, settings=BindingSettings())
    for number in range(20):
        stage.loads["a"] = 10.0 - number % 2 * 0.5
        await stage.cycle()

    assert len(stage.written) in range(4, 7)


async def test_a_restart_in_the_middle_of_a_window_loses_nothing() -> None:
    """The next leader holds as long as this one would have, and no shorter."""
    stage = Stage(loads={"a": 45.0})
    await stage.cycle(follow=True)
    assert stage.replicas["a"] == 9
    stage.loads["a"] = 1.0
    await stage.cycle(times=2, follow=True)
    stage.begin()
    await stage.cycle(times=2, follow=True)

    assert stage.replicas["a"] == 9
    await stage.cycle(times=2, follow=True)
    assert stage.replicas["a"] == 1


async def test_a_restart_in_panic_goes_on_panicking() -> None:
    """Panic since when, and until when, stand in the status."""
    panic = {"panicPolicy": {"period": "0s", "panicModeHold": "120s"}}
    rules = {"scaleUp": panic, "scaleDown": {"period": "0s", "stabilizationWindow": "0s"}}
    stage = Stage(loads={"a": 45.0}, policies=[policy(behavior=rules)])
    await stage.cycle(follow=True)
    since = stage.status()["decision"]["panicSince"]
    stage.begin()
    stage.loads["a"] = 1.0
    await stage.cycle(times=2, follow=True)

    assert stage.status()["decision"]["panicSince"] == since == "2026-01-01T12:00:00Z"
    assert stage.status()["decision"]["limitedBy"] == ["Panic"]
    await stage.cycle(times=7, follow=True)
    assert stage.replicas["a"] == 1


async def test_a_silent_pod_holds_for_a_bounded_time() -> None:
    """All silent: nothing changes, ever; the condition says who."""
    stage = Stage()
    await stage.cycle(times=100)

    assert stage.published() == {"a": 2}
    assert stage.reason("MetricsAvailable") == "MetricsUnavailable"
    assert "a-0: no answer" in str(stage.status()["conditions"])


async def test_a_policy_that_is_edited_or_deleted_is_a_condition() -> None:
    """Without a policy there is no number, and the history waits."""
    stage = Stage(loads={"a": 30.0})
    await stage.cycle()
    history = stage.status()["history"]
    stage.policies = []
    await stage.cycle()
    assert stage.published() == {"a": None}
    assert stage.reason("PolicyResolved") == "PolicyNotFound"
    assert stage.status()["history"] == history
    assert ("b", "PolicyNotFound") in stage.events

    broken = policy() | {"metadata": metadata("p", generation=2), "spec": {"metrics": []}}
    stage.policies = [broken]
    await stage.cycle()
    assert stage.reason("PolicyResolved") == "InvalidPolicy"
    stage.policies = [policy() | {"metadata": metadata("p", generation=3)}]
    await stage.cycle()
    assert stage.published() == {"a": 6}


async def test_one_writer_for_each_target() -> None:
    """The younger of two stands back and names the other; when that goes, it decides."""
    stage = Stage(loads={"a": 30.0})
    stage.bindings["late"] = binding("late", creationTimestamp="2026-01-01T01:00:00Z")
    await stage.cycle()
    assert stage.published() == {"a": 6}
    assert stage.published("late") == {"a": None}
    assert stage.reason("TargetsResolved", "late") == "TargetClaimed"
    assert "AutoscalingPolicyBinding ns/b is older" in str(stage.status("late")["conditions"])

    del stage.bindings["b"]
    await stage.cycle()
    assert stage.published("late") == {"a": 6}


async def test_an_older_variant_goes_first() -> None:
    """It decides on the target already."""
    stage = Stage(loads={"a": 30.0})
    older = metadata("v", creationTimestamp="2025-01-01T00:00:00Z")
    stage.autoscalings = [{"metadata": older, "spec": {"scaleTargetRef": reference("a"), "modelID": "m"}}]
    await stage.cycle()

    assert stage.published() == {"a": None}
    assert "VariantAutoscaling ns/v is older" in str(stage.status()["conditions"])


@pytest.mark.parametrize(
    ("created", "want", "number"),
    [
        ("2025-01-01T00:00:00Z", "TargetScaledByOther", None),
        ("2027-01-01T00:00:00Z", "TargetScaledByOther", 6),
    ],
)
async def test_an_autoscaler_by_other_metrics_is_named(created: str, want: str, number: int | None) -> None:
    """Where it is older, nothing is published beside it."""
    stage = Stage(loads={"a": 30.0})
    stage.autoscalers = [autoscaler("a") | {"metadata": metadata("hpa", creationTimestamp=created)}]
    await stage.cycle()

    assert stage.reason("TargetsResolved") == want
    assert stage.published() == {"a": number}


async def test_a_target_that_is_not_there_is_named() -> None:
    """Nobody is asked then."""
    stage = Stage(replicas={})
    await stage.cycle()

    assert stage.reason("TargetsResolved") == "TargetNotFound"
    assert "Deployment 'a': it does not exist" in stage.status()["decision"]["message"]
    assert stage.asked == []


async def test_paused_and_advised() -> None:
    """A pause publishes what runs; advice publishes nothing."""
    stage = Stage(loads={"a": 30.0})
    stage.bindings["b"] = binding(annotations={"stowplan.dev/paused": "true"})
    await stage.cycle()
    assert stage.published() == {"a": 2}

    stage.bindings["b"] = binding(annotations={"stowplan.dev/advisory": "true"})
    await stage.cycle()
    assert stage.published() == {"a": None}
    assert stage.status()["decision"]["wantedReplicas"] == 6

    stage = Stage(loads={"a": 30.0}, settings=BindingSettings(advisory=Scope(everywhere=True)))
    await stage.cycle()
    assert stage.reason("Advisory") == "ClusterAdvisory"


async def test_annotations_that_say_nothing_are_told() -> None:
    """They are not followed."""
    stage = Stage(loads={"a": 30.0})
    stage.bindings["b"] = binding(annotations={"stowplan.dev/paused": "yes", "stowplan.dev/pause": "true"})
    await stage.cycle()

    assert stage.reason("AnnotationsResolved") == "AnnotationNotUnderstood"
    assert stage.published() == {"a": 6}


async def test_several_targets_share_what_is_wanted() -> None:
    """The cheapest first, by the load of all of them together; labels choose pods."""
    stage = Stage(loads={"a": 40.0, "c": 40.0}, replicas={"a": 2, "c": 1})
    stage.bindings = {"b": optimizer("b", "a", "c")}
    stage.autoscalers = [follower("a"), follower("c")]
    await stage.cycle()

    assert stage.published() == {"a": 9, "c": 3}
    assert stage.status()["desiredReplicas"] == 12


async def test_what_could_not_be_written_is_not_confirmed() -> None:
    """The others are; the metric of that one grows old."""
    stage = Stage(loads={"a": 30.0}, unwritable="b")
    with pytest.raises(Unavailable):
        await stage.cycle()
    stage.pulse.beat([], {}, Published(), time=NOW)

    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == "ns/b"
    stage.pulse.unbound()
    stage.pulse.beat([], {}, Published(), time=NOW)
    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == "*/AutoscalingPolicyBinding"
    stage.unwritable = ""
    await stage.cycle()
    stage.pulse.beat([], {}, Published(), time=NOW)
    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == ""
    assert stage.pulse.annotations()["stowplan.dev/newest-decision"].startswith("2026-01-01T12:00:00")


def test_the_default_kind_is_a_target_by_its_scale() -> None:
    """A ModelInfer, which the reference's releases scale; it needs a scale subresource here."""
    assert target_object({"name": "llama"}).kind == "ModelInfer"
