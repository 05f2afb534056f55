"""Whether autoscalers act on a decision, as far as the cluster shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.manifests import autoscaler

from apiserver.kinds.autoscalers import KEDA_LABEL, Autoscaler, autoscaler_of
from apiserver.schema.json import Json
from controller.observe.decision_following import (
    ActingReason,
    ExternalMetrics,
    ReplicaWatch,
    Situation,
    acting_finding,
    external_metrics_of,
)


def scaler(status: str = "", reason: str = "", *, is_keda: bool = False, tolerance: str = "0") -> Autoscaler:
    """Return an autoscaler with a condition ScalingActive."""
    made: Json = autoscaler("chat")
    condition = {"type": "ScalingActive", "status": status, "reason": reason, "message": "why"}
    if is_keda:
        made["metadata"]["labels"] = {KEDA_LABEL: "so"}
    made["spec"]["behavior"] = {"scaleUp": {"tolerance": tolerance}}
    return autoscaler_of(made | ({"status": {"conditions": [condition]}} if status else {}))


ACTIVE = scaler("True", "ValidMetricFound")
FAILING = scaler("False", "FailedGetExternalMetric")
DISABLED = scaler("False", "ScalingDisabled")
KEDA_AT_REST = scaler("False", "ScalingDisabled", is_keda=True)
NOT_CREATED = replace(scaler(is_keda=True), is_created=False)
OTHER = ExternalMetrics(other_service="keda/adapter")
DOWN = ExternalMetrics(unavailable="APIService v1beta1.external.metrics.k8s.io is not available")


def seen(
    decided: int,
    requested: int,
    scalers: tuple[Autoscaler, ...] = (ACTIVE,),
    *,
    existing: int | None = None,
    waited: float = 0.0,
    external: ExternalMetrics | None = None,
    is_published: bool = True,
) -> Situation:
    """Return a situation, with a start that takes 120 s."""
    return Situation(
        decided=decided,
        requested=requested,
        existing=requested if existing is None else existing,
        autoscalers=scalers,
        external=external or ExternalMetrics(),
        waited_seconds=waited,
        start_seconds=120,
        is_published=is_published,
    )


REASON = ActingReason
CASES: dict[str, tuple[Situation, ActingReason]] = {
    "as decided": (seen(3, 3), REASON.FOLLOWED),
    "more than decided: windows keep them": (seen(1, 3, waited=900), REASON.FOLLOWED),
    "below for a moment": (seen(3, 1, waited=30), REASON.EXPECTED),
    "below for longer than a start": (seen(3, 1, waited=121), REASON.BELOW),
    "below, and nothing scales it": (seen(3, 1, (), waited=121), REASON.BELOW),
    "below within the tolerance": (
        seen(21, 20, (scaler("True", tolerance="100m"),), waited=900),
        REASON.FOLLOWED,
    ),
    "below by more than no tolerance": (seen(21, 20, waited=900), REASON.BELOW),
    "pods are not created": (seen(3, 3, existing=1, waited=121), REASON.PODS_MISSING),
    "the autoscaler has an error": (seen(3, 3, (FAILING,)), REASON.NOT_ACTIVE),
    "the autoscaler has not had a number yet": (seen(3, 3, (FAILING,), is_published=False), REASON.FOLLOWED),
    "the autoscaler is switched off": (seen(3, 0, (DISABLED,)), REASON.NOT_ACTIVE),
    "KEDA rests at 0": (seen(0, 0, (KEDA_AT_REST,)), REASON.FOLLOWED),
    "KEDA starts it from 0": (seen(1, 0, (KEDA_AT_REST,), waited=20), REASON.EXPECTED),
    "KEDA does not start it": (seen(1, 0, (KEDA_AT_REST,), waited=200), REASON.BELOW),
    "KEDA has not created its autoscaler": (seen(3, 3, (NOT_CREATED,)), REASON.NOT_ACTIVE),
    "KEDA has had no time to create it": (seen(3, 3, (NOT_CREATED,), is_published=False), REASON.FOLLOWED),
    "the API is down": (seen(3, 3, external=DOWN), REASON.METRICS_UNAVAILABLE),
    "the API is down, and nothing reads it": (seen(3, 3, (), external=DOWN), REASON.FOLLOWED),
    "another adapter answers": (seen(3, 3, (FAILING,), external=OTHER), REASON.METRICS_TAKEN_OVER),
    "another adapter serves the same number": (seen(3, 3, external=OTHER), REASON.FOLLOWED),
}


@pytest.mark.parametrize(("situation", "reason"), CASES.values(), ids=CASES)
def test_a_decision_without_effect_has_a_reason(situation: Situation, reason: ActingReason) -> None:
    """Only two reasons mean that it is followed."""
    is_followed, found, text = acting_finding(situation)

    assert (found, is_followed) == (reason, reason in (REASON.FOLLOWED, REASON.EXPECTED))
    assert text


def test_an_autoscaler_without_a_number_is_told_where_the_responses_are_explained() -> None:
    """Those of the API server say little to someone who sees them first."""
    _, _, failing = acting_finding(seen(3, 3, (FAILING,)))
    _, _, invalid = acting_finding(seen(1, 1, (scaler("False", "InvalidSelector"),)))

    assert "see 'The HPA does not follow' in docs/troubleshooting.md: FailedGetExternalMetric: why" in failing
    assert invalid.endswith("'chat' does not scale: InvalidSelector: why")


def test_the_wait_counts_from_the_last_step_towards_the_decision() -> None:
    """A decision that changes does not restart it, and replicas that were reached end it."""
    watch, found = ReplicaWatch(), []
    steps = [
        (0, 3, 1),
        (100, 4, 1),
        (121, 3, 1),
        (130, 3, 2),
        (240, 3, 2),
        (260, 3, 2),
        (300, 3, 3),
        (400, 4, 3),
    ]
    for seconds, decided, requested in steps:
        findings = watch.findings({"v": seen(decided, requested)}, ExternalMetrics(), now_seconds=seconds)
        found.append(findings["v"][1])

    below, expected = REASON.BELOW, REASON.EXPECTED
    assert found == [expected, expected, below, expected, expected, below, REASON.FOLLOWED, expected]


def api_service(name: str = "stowplan-apiserver", **condition: str) -> Json:
    """Return an APIService of a Service."""
    conditions = [{"type": "Available"} | condition] if condition else []
    return {"spec": {"service": {"namespace": "x", "name": name}}, "status": {"conditions": conditions}}


def test_the_apiservice_shows_who_answers_and_whether_it_can_be_reached() -> None:
    """An APIService of another adapter may be unavailable, too."""
    refused = {"status": "False", "reason": "FailedDiscoveryCheck", "message": "no such host"}

    ours, other, down, own_down = (
        external_metrics_of([item])
        for item in (
            api_service(status="True"),
            api_service("keda"),
            api_service("keda", **refused),
            api_service(**refused),
        )
    )

    assert ours == ExternalMetrics()
    assert other == ExternalMetrics(other_service="x/keda")
    assert "x/keda" in down.unavailable
    assert "see 'Clusters with KEDA' in docs/installing.md: FailedDiscoveryCheck: no such" in down.unavailable
    assert "check the pods of stowplan-apiserver: FailedDiscoveryCheck: no such" in own_down.unavailable
    assert replace(down, unavailable="") == other
    assert "does not exist" in external_metrics_of([]).unavailable
