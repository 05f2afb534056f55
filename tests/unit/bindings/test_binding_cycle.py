"""Whole cycles of bindings: from metrics of pods to statuses, events and confirmations."""

from __future__ import annotations

import pytest
from support.binding_stage import NOW, Stage, binding, follower, metadata, optimizer, policy, reference
from support.manifests import autoscaler

from apiserver.cluster.errors import Unavailable
from apiserver.schema.json import Json
from controller.bindings.autoscalingpolicybinding import BindingSettings
from controller.policies.history import History
from controller.variants.advisory import Scope
from controller.variants.publishing import PublishResult


async def test_a_decision_from_pod_metrics_is_published_with_its_reason() -> None:
    """An unchanged status is not written again, and a changed decision causes one event."""
    stage = Stage(loads={"a": 22.0})
    await stage.cycle(times=3)

    assert stage.written == ["b"]
    assert stage.published() == {"a": 5}
    status = stage.status()
    assert status["decision"]["message"] == (
        "from 2 to 5 replicas: m is 44, 10 per replica, which asks for 5"
    )
    assert status["metrics"] == [
        {"name": "m", "targetValue": "10", "value": "44", "replicas": 5, "signal": "Fresh", "ageSeconds": 0}
    ]
    assert "limitedBy" not in status["decision"], "kubectl would print an empty list"
    assert stage.reason("TargetsResolved") == "TargetsFound"
    assert stage.events == [("b", "Decided")]
    assert {item.endpoint.port for item in stage.asked} == {8100}


async def test_a_status_is_refreshed_once_a_minute_while_only_figures_change() -> None:
    """Noise of the metrics costs one write per minute."""
    stage = Stage(loads={"a": 10.0}, settings=BindingSettings())
    for number in range(20):
        stage.loads["a"] = 10.0 - number % 2 * 0.5
        await stage.cycle()

    assert len(stage.written) in range(4, 7)


async def test_one_silent_pod_of_eight_prevents_scaling_down_only_for_a_limited_time() -> None:
    """Then the other pods decide, and the share of the silent pod is kept; scaling up is always possible."""
    stage = Stage(loads={"a": 9.0}, replicas={"a": 8})
    await stage.cycle(follow=True)
    stage.silent_pods, stage.loads["a"] = {"a-7"}, 2.0
    reasons = []
    for _ in range(40):
        await stage.cycle(follow=True)
        reasons.append(stage.reason("MetricsAvailable"))
        if stage.replicas["a"] < 8:
            break

    assert list(dict.fromkeys(reasons)) == ["MetricsAvailable", "MetricsHeld", "MetricsByQuorum"]
    assert stage.replicas == {"a": 3}

    stage.silent_pods, stage.loads["a"] = {"a-0"}, 20.0
    await stage.cycle(times=2, follow=True)
    assert stage.replicas["a"] > 3


async def test_a_decision_without_a_pod_that_never_answered_does_not_mention_old_values() -> None:
    """Such a pod holds the decision, although the values of the others are fresh."""
    stage = Stage(loads={"a": 9.0}, silent_pods={"a-1"})
    await stage.cycle()

    assert stage.reason("MetricsAvailable") == "MetricsHeld"
    assert (
        "m is 9, 10 per replica, which asks for 2 (1 of 2 ready pods" in stage.status()["decision"]["message"]
    )


async def test_nothing_changes_while_all_pods_are_silent() -> None:
    """This has no time limit; a condition names the pods."""
    stage = Stage()
    await stage.cycle(times=100)

    assert stage.published() == {"a": 2}
    assert stage.reason("MetricsAvailable") == "MetricsUnavailable"
    assert "a-0: no answer" in str(stage.status()["conditions"])


async def test_a_missing_or_invalid_policy_sets_a_condition() -> None:
    """Without a policy no number is published, and the history is kept."""
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


async def test_only_the_oldest_binding_of_a_target_decides() -> None:
    """The younger one names the other in a condition, and decides after that one is deleted."""
    stage = Stage(loads={"a": 30.0})
    stage.bindings["late"] = binding("late", creationTimestamp="2026-01-01T01:00:00Z")
    await stage.cycle()
    assert stage.published() == {"a": 6}
    assert stage.published("late") == {}, "the metrics API would tell of the target twice"
    assert stage.reason("TargetsResolved", "late") == "TargetClaimed"
    assert "AutoscalingPolicyBinding ns/b is older" in str(stage.status("late")["conditions"])

    del stage.bindings["b"]
    await stage.cycle()
    assert stage.published("late") == {"a": 6}


async def test_an_older_variantautoscaling_of_the_target_takes_precedence() -> None:
    """The binding publishes nothing, because that object already decides on the target."""
    stage = Stage(loads={"a": 30.0})
    older = metadata("v", creationTimestamp="2025-01-01T00:00:00Z")
    stage.autoscalings = [{"metadata": older, "spec": {"scaleTargetRef": reference("a"), "modelID": "m"}}]
    await stage.cycle()

    assert stage.published() == {}
    assert "VariantAutoscaling ns/v is older" in str(stage.status()["conditions"])


@pytest.mark.parametrize(
    ("created", "want", "number"),
    [
        ("2025-01-01T00:00:00Z", "TargetScaledByOther", None),
        ("2027-01-01T00:00:00Z", "TargetScaledByOther", 6),
    ],
)
async def test_an_autoscaler_with_other_metrics_on_the_target_sets_a_condition(
    created: str, want: str, number: int | None
) -> None:
    """If it is older than the binding, the binding publishes nothing."""
    stage = Stage(loads={"a": 30.0})
    stage.autoscalers = [autoscaler("a") | {"metadata": metadata("hpa", creationTimestamp=created)}]
    await stage.cycle()

    assert stage.reason("TargetsResolved") == want
    assert stage.published().get("a") == number
    says_why = "nothing is decided, as an older autoscaler scales a target" in str(
        stage.status()["conditions"]
    )
    assert says_why == (number is None)


async def test_a_decision_that_is_read_otherwise_is_not_followed() -> None:
    """This holds although the replicas are as decided, as for VariantAutoscalings."""
    stage = Stage(loads={"a": 30.0})
    (external,) = stage.autoscalers[0]["spec"]["metrics"]
    external["external"]["target"] = {"type": "Value", "value": "1"}
    await stage.cycle(follow=True)

    assert stage.reason("TargetsResolved") == stage.reason("DecisionFollowed") == "MetricTargetDiffers"


async def test_an_autoscaler_of_keda_counts_as_one_that_reads_the_decision() -> None:
    """KEDA generates its metric names, and only the ScaledObject contains the real ones."""
    stage = Stage(loads={"a": 30.0})
    labels = {"scaledobject.keda.sh/name": "a"}
    stage.autoscalers = [
        autoscaler("a")
        | {"metadata": metadata("hpa", labels=labels, creationTimestamp="2025-01-01T00:00:00Z")}
    ]
    await stage.cycle()

    assert stage.reason("TargetsResolved") == "TargetsFound"
    assert stage.published() == {"a": 6}


async def test_an_error_in_one_binding_does_not_affect_others() -> None:
    """That binding publishes nothing, and its status reports the error."""
    stage = Stage(loads={"a": 30.0, "c": 30.0}, replicas={"a": 2, "c": 2})
    broken = binding("bad", "c")
    broken["status"] = {"history": History(panic_since_seconds=-1e18, panic_until_seconds=4e9).document()}
    stage.bindings["bad"] = broken
    stage.policies = [
        policy(behavior={"scaleUp": {"panicPolicy": {"period": "15s", "panicModeHold": "60s"}}})
    ]
    stage.autoscalers = [follower("a"), follower("c")]
    await stage.cycle()

    assert stage.published() == {"a": 6}
    assert "please report it" in stage.status("bad")["decision"]["message"]


async def test_a_missing_target_is_named_in_the_status() -> None:
    """No pod is scraped then."""
    stage = Stage(replicas={})
    await stage.cycle()

    assert stage.reason("TargetsResolved") == "TargetNotFound"
    assert "Deployment 'a': it does not exist" in stage.status()["decision"]["message"]
    assert stage.asked == []


async def test_a_paused_binding_publishes_the_running_replicas_and_an_advisory_one_nothing() -> None:
    """The decision is in the status of the advisory one, whether it or the cluster is advisory."""
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


async def test_invalid_annotations_set_a_condition() -> None:
    """They have no effect."""
    stage = Stage(loads={"a": 30.0})
    stage.bindings["b"] = binding(annotations={"stowplan.dev/paused": "yes", "stowplan.dev/pause": "true"})
    await stage.cycle()

    assert stage.reason("AnnotationsResolved") == "AnnotationNotUnderstood"
    assert stage.published() == {"a": 6}


async def test_several_targets_share_the_wanted_replicas() -> None:
    """The cheapest target comes first; their loads are added, and labels select their pods."""
    stage = Stage(loads={"a": 40.0, "c": 40.0}, replicas={"a": 2, "c": 1})
    stage.bindings = {"b": optimizer("b", "a", "c")}
    stage.autoscalers = [follower("a"), follower("c")]
    await stage.cycle()

    assert stage.published() == {"a": 9, "c": 3}
    assert stage.status()["desiredReplicas"] == 12


async def test_a_binding_whose_status_was_not_written_is_not_confirmed() -> None:
    """The others are confirmed, so only the metric of that one becomes outdated."""
    stage = Stage(loads={"a": 30.0}, unwritable="b")
    outcome = await stage.cycle()
    stage.pulse.beat([], {}, PublishResult(), time=NOW)

    assert [(key, type(error)) for key, error in outcome.unwritten.items()] == [(("ns", "b"), Unavailable)]
    assert [item.decision is not None for item in outcome.results] == [True]

    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == "ns/b"
    stage.pulse.unbound()
    stage.pulse.beat([], {}, PublishResult(), time=NOW)
    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == "*/AutoscalingPolicyBinding"
    stage.unwritable = ""
    await stage.cycle()
    stage.pulse.beat([], {}, PublishResult(), time=NOW)
    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == ""
    assert stage.pulse.annotations()["stowplan.dev/newest-decision"].startswith("2026-01-01T12:00:15")


@pytest.mark.parametrize("targets", [[], [{"kind": "Deployment", "name": "a", "replicas": 1}]])
async def test_a_forged_time_in_a_binding_is_not_the_newest_decision(targets: list[Json]) -> None:
    """Readers that wait for it would confirm no other decision. This one cannot be written."""
    stage = Stage(loads={"a": 30.0}, unwritable="b")
    stage.bindings["b"]["status"] = {
        "desiredReplicas": 1,
        "targets": targets,
        "lastDecisionTime": "2036-01-01T00:00:00Z",
    }
    await stage.cycle()
    stage.pulse.beat([], {}, PublishResult(), time=NOW)

    assert stage.pulse.annotations()["stowplan.dev/newest-decision"] == ""


async def test_a_binding_with_advice_only_is_not_the_newest_decision() -> None:
    """It has no number for a target, so no reader ever receives its time, whatever `desiredReplicas` says."""
    stage = Stage(loads={"a": 30.0}, settings=BindingSettings(advisory=Scope(everywhere=True)))
    await stage.cycle()
    stage.bindings["b"]["status"]["desiredReplicas"] = 7
    await stage.cycle()
    stage.pulse.beat([], {}, PublishResult(), time=NOW)

    assert stage.pulse.annotations()["stowplan.dev/newest-decision"] == ""


@pytest.mark.parametrize(
    ("setting_seconds", "own"), [(60.0, {}), (0.0, {"stowplan.dev/scale-to-zero-grace-period": "1m"})]
)
async def test_router_metrics_scale_a_target_from_zero_and_back(
    setting_seconds: float, own: dict[str, str]
) -> None:
    """One request is enough; the grace period before zero is that of the binding, or else the default."""
    router = {"stowplan.dev/activity": 'app=router:9090/metrics queue{model="a"}'}
    sleeper = binding(annotations={**router, **own})
    sleeper["spec"]["scalingConfiguration"]["minReplicas"] = 0
    stage = Stage(
        bindings={"b": sleeper},
        policies=[policy(behavior={"scaleDown": {"period": "0s", "stabilizationWindow": "0s"}})],
        replicas={"a": 0},
        settings=BindingSettings(grace_seconds=setting_seconds),
        router_says=0.0,
    )
    await stage.cycle(times=2, follow=True)
    assert (stage.published(), stage.asked[0].endpoint[2:]) == ({"a": 0}, (9090, "/metrics"))

    stage.router_says = 2.0
    await stage.cycle(follow=True)
    assert stage.published() == {"a": 1}
    assert "requests arrive or wait" in stage.status()["decision"]["message"]

    stage.loads, stage.router_says = {"a": 0.0}, 0.0
    await stage.cycle(times=3, follow=True)
    assert stage.published() == {"a": 1}
    assert stage.status()["decision"]["limitedBy"] == ["ScaleToZeroGracePeriod"]
    await stage.cycle(times=3, follow=True)
    assert stage.published() == {"a": 0}


async def test_a_router_series_that_appears_with_the_first_request_scales_from_zero() -> None:
    """A page without the series means that there were no requests yet; the counter begins at 0."""
    sleeper = binding(annotations={"stowplan.dev/activity": "app=router:9090/metrics requests_total"})
    sleeper["spec"]["scalingConfiguration"]["minReplicas"] = 0
    stage = Stage(
        bindings={"b": sleeper},
        replicas={"a": 0},
        router_says=0.0,
        router_counts=True,
        silent_names={"requests_total"},
    )
    await stage.cycle(times=3, follow=True)
    assert "at 0 replicas, without activity" in stage.status()["decision"]["message"]

    stage.silent_names, stage.router_says = set(), 1.0
    await stage.cycle(follow=True)
    assert stage.published() == {"a": 1}
