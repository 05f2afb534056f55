"""Whether autoscalers follow a decision as it is meant: one check for variants and bindings."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from support.manifests import autoscaler

from apiserver.kinds.autoscalers import KEDA_LABEL, autoscaler_of
from apiserver.kinds.following import FollowingProblem, following_problems, target_subject, variant_subject
from apiserver.kinds.metric_labels import variant_labels
from apiserver.schema.json import Json

VARIANT: Json = {
    "metadata": {"namespace": "ns", "name": "chat", "labels": {"wva.llmd.ai/controller-instance": "team-a"}},
    "spec": {"modelID": "m"},
}
OTHER: Json = {"metadata": {"namespace": "ns", "name": "ok"}, "spec": {"modelID": "m"}}
BINDING: Json = {"metadata": {"namespace": "ns", "name": "b"}, "spec": {"policyRef": {"name": "p"}}}
SUBJECT = variant_subject(variant_labels(VARIANT), [variant_labels(VARIANT), variant_labels(OTHER)])


def scaler(*, selector: Json | None = None, most: int = 10, **metric: Any) -> Json:
    """Return the right HorizontalPodAutoscaler, with changes of its metric."""
    made: Json = copy.deepcopy(autoscaler("chat", most=most))
    external = made["spec"]["metrics"][0]["external"]
    external["metric"]["name"] = metric.get("name", "wva_desired_replicas")
    external["metric"]["selector"] = selector or {"matchLabels": {"variant_name": "chat"}}
    external["target"] = metric.get("target", {"type": "AverageValue", "averageValue": "1"})
    return made


def by_labels(**labels: str) -> Json:
    """Return a selector by labels."""
    return {"matchLabels": labels}


def with_metric(made: Json, *metrics: Json) -> Json:
    """Return an autoscaler with more metrics, or only with these if it is to have no external one."""
    made["spec"]["metrics"] = [*made["spec"]["metrics"], *metrics]
    return made


def by_cpu() -> Json:
    """Return an autoscaler that scales by CPU."""
    made: Json = copy.deepcopy(autoscaler("chat"))
    made["spec"]["metrics"] = [CPU]
    return made


def of_keda(**target: str) -> Json:
    """Return the HorizontalPodAutoscaler that KEDA creates for a ScaledObject `so`."""
    made = scaler(
        name="s0-prometheus", selector=by_labels(**{KEDA_LABEL: "so"}), target=target or AVERAGE | {}
    )
    made["metadata"]["labels"] = {KEDA_LABEL: "so"}
    return made


def scaled_object(query: str, kind: str = "prometheus") -> Json:
    """Return a ScaledObject with one trigger."""
    name = "query" if kind == "prometheus" else "valueLocation"
    return {"so": {"spec": {"triggers": [{"type": kind, "metadata": {name: query, "threshold": "1"}}]}}}


CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
AVERAGE = {"type": "AverageValue", "averageValue": "1"}
RATIO: Json = {"name": "wva_desired_ratio", "target": {"type": "Value", "value": "1"}}
INSTANCE = {"variant_name": "chat", "exported_namespace": "ns", "controller_instance": "team-a"}
PROBLEM = FollowingProblem
CASES: dict[str, tuple[Json, set[FollowingProblem]]] = {
    "the usual one follows": (scaler(), set()),
    "1000m is 1": (scaler(target=AVERAGE | {"averageValue": "1000m"}), set()),
    "the name of the oldest releases follows": (scaler(name="inferno_desired_replicas"), set()),
    "the ratio follows with a Value of 1": (scaler(**RATIO), set()),
    "charts of release 0.5 select the instance of a controller": (
        scaler(selector=by_labels(**INSTANCE)),
        set(),
    ),
    "labels that depend on the status may appear": (
        scaler(selector=by_labels(variant_name="chat", accelerator_type="H100")),
        set(),
    ),
    "matchExpressions follow as well": (
        scaler(
            selector={"matchExpressions": [{"key": "variant_name", "operator": "In", "values": ["chat"]}]}
        ),
        set(),
    ),
    "a queue metric is another one": (scaler(name="queue_length"), {PROBLEM.SCALED_BY_OTHER}),
    "a misspelt name is another one": (scaler(name="wva_desired_replica"), {PROBLEM.SCALED_BY_OTHER}),
    "the metric of bindings is another one": (
        scaler(name="policy_desired_replicas"),
        {PROBLEM.SCALED_BY_OTHER},
    ),
    "CPU is another one": (by_cpu(), {PROBLEM.SCALED_BY_OTHER}),
    "a second metric can overrule the decision": (with_metric(scaler(), CPU), {PROBLEM.MORE_METRICS}),
    "the number of another variant is wrong": (
        scaler(selector=by_labels(variant_name="ok")),
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "another namespace never matches": (
        scaler(selector=by_labels(variant_name="chat", exported_namespace="elsewhere")),
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "an unknown label never matches": (
        scaler(selector=by_labels(variant_name="chat", app="chat")),
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "matchExpressions that exclude it": (
        scaler(
            selector={"matchExpressions": [{"key": "variant_name", "operator": "NotIn", "values": ["chat"]}]}
        ),
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "a selector that matches two variants adds them up": (
        scaler(selector=by_labels(model_id="m")),
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "a Value multiplies": (scaler(target={"type": "Value", "value": "1"}), {PROBLEM.TARGET_DIFFERS}),
    "an AverageValue of 2 halves": (scaler(target=AVERAGE | {"averageValue": "2"}), {PROBLEM.TARGET_DIFFERS}),
    "an AverageValue of the ratio is wrong": (scaler(name="wva_desired_ratio"), {PROBLEM.TARGET_DIFFERS}),
    "a maximum of 0 never scales": (scaler(most=0), {PROBLEM.NEVER_SCALES}),
    "that of KEDA has names of its own": (of_keda(), set()),
    "that of KEDA with metricType Value multiplies": (
        of_keda(type="Value", value="1"),
        {PROBLEM.TARGET_DIFFERS},
    ),
    "that of KEDA with another threshold divides": (
        of_keda(type="AverageValue", averageValue="5"),
        {PROBLEM.TARGET_DIFFERS},
    ),
    "everything at once": (
        scaler(most=0, selector=by_labels(variant_name="ok"), target={"type": "Value", "value": "1"}),
        {PROBLEM.NEVER_SCALES, PROBLEM.SELECTOR_DIFFERS, PROBLEM.TARGET_DIFFERS},
    ),
}


@pytest.mark.parametrize(("made", "reasons"), CASES.values(), ids=CASES)
def test_an_autoscaler_that_does_not_follow_a_variant_has_a_reason(
    made: Json, reasons: set[FollowingProblem]
) -> None:
    """Each sentence names the autoscaler."""
    found = following_problems([autoscaler_of(made)], SUBJECT)

    assert {problem.reason for problem in found} == reasons
    assert all("'chat'" in problem.message or "'so'" in problem.message for problem in found)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("wva_desired_replica", ": is wva_desired_replicas meant?"),
        ("wva-desired-replicas", ": is wva_desired_replicas meant?"),
        ("queue_length", ", and not by wva_desired_replicas: let it read wva_desired_replicas, or delete it"),
    ],
)
def test_a_misspelt_metric_is_told_from_another_one(name: str, advice: str) -> None:
    """Two names that differ by a letter look alike."""
    (problem,) = following_problems([autoscaler_of(scaler(name=name))], SUBJECT)

    assert problem.message == (
        f"HorizontalPodAutoscaler 'chat' scales it by external metric {name!r}{advice}"
    )


QUERIES: dict[str, tuple[str, set[FollowingProblem]]] = {
    "the documented query": (
        'max(stowplan_desired_replicas{exported_namespace="x", variant_name="chat"})',
        set(),
    ),
    "a query with labels of a job": ('stowplan_desired_replicas{job="j", variant_name="chat"}', set()),
    "the number of another variant": (
        'stowplan_desired_replicas{variant_name="ok"}',
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "a queue": ("sum(vllm:num_requests_waiting)", {PROBLEM.SCALED_BY_OTHER}),
    "the metric of bindings": ("stowplan_policy_desired_replicas", {PROBLEM.SCALED_BY_OTHER}),
}


@pytest.mark.parametrize(("query", "reasons"), QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("kind", ["prometheus", "metrics-api"])
def test_a_scaledobject_shows_which_number_keda_reads(
    kind: str, query: str, reasons: set[FollowingProblem]
) -> None:
    """Both triggers have it in their metadata."""
    record = autoscaler_of(of_keda(), scaled_object(query, kind))

    assert {problem.reason for problem in following_problems([record], SUBJECT)} == reasons


BASE = "https://stowplan-apiserver.stowplan-system.svc:9443/apis/external.metrics.k8s.io/v1beta1/namespaces"
URLS: dict[str, tuple[str, set[FollowingProblem]]] = {
    "the documented URL": (f"{BASE}/ns/wva_desired_replicas?labelSelector=variant_name%3Dchat", set()),
    "a selector that is not encoded": (
        f"{BASE}/ns/wva_desired_replicas?labelSelector=variant_name=chat",
        set(),
    ),
    "the number of another variant": (
        f"{BASE}/ns/wva_desired_replicas?labelSelector=variant_name%3Dok",
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "another namespace": (
        f"{BASE}/y/wva_desired_replicas?labelSelector=variant_name%3Dchat",
        {PROBLEM.SELECTOR_DIFFERS},
    ),
    "no selector": (f"{BASE}/ns/wva_desired_replicas", {PROBLEM.SELECTOR_DIFFERS}),
    "a misspelt metric": (
        f"{BASE}/ns/wva_desired_replica?labelSelector=variant_name%3Dchat",
        {PROBLEM.SCALED_BY_OTHER},
    ),
    "the controller's own metrics": ("http://stowplan-controller:8080/metrics", {PROBLEM.SCALED_BY_OTHER}),
    "no URL": ("https://[", {PROBLEM.SCALED_BY_OTHER}),
}


@pytest.mark.parametrize(("url", "reasons"), URLS.values(), ids=URLS)
def test_a_direct_request_of_keda_shows_which_number_it_reads(
    url: str, reasons: set[FollowingProblem]
) -> None:
    """It names metric and namespace in its path, and the variant in its query."""
    declared = scaled_object("items.0.value", "metrics-api")
    declared["so"]["spec"]["triggers"][0]["metadata"] |= {"url": url, "valueLocation": "items.0.value"}
    record = autoscaler_of(of_keda(), declared)

    assert {problem.reason for problem in following_problems([record], SUBJECT)} == reasons


def test_the_bounds_of_keda_are_those_of_the_scaledobject() -> None:
    """Its HorizontalPodAutoscaler has at least 1, because KEDA itself scales to 0."""
    declared: Json = {"so": {"spec": {"minReplicaCount": 0, "maxReplicaCount": 7}}}

    silent: Json = {"so": {"spec": {"triggers": []}}}

    bounds = [autoscaler_of(of_keda(), known) for known in (None, declared, silent)]

    assert [(item.min_replicas, item.max_replicas) for item in bounds] == [(1, 10), (0, 7), (0, 100)]


def test_two_autoscalers_of_one_target_are_reported_together() -> None:
    """Kubernetes lets neither act, even if both follow."""
    found = following_problems([autoscaler_of(scaler()), autoscaler_of(by_cpu())], SUBJECT)

    assert [problem.reason for problem in found] == [PROBLEM.SCALED_TWICE, PROBLEM.SCALED_BY_OTHER]


@pytest.mark.parametrize(
    ("labels", "reasons"),
    [
        ({"target_kind": "Deployment", "target_name": "chat"}, set()),
        ({"binding_name": "b", "target_name": "chat"}, set()),
        ({"target_id": "b/Deployment/chat"}, set()),
        ({"target_name": "other"}, {PROBLEM.SELECTOR_DIFFERS}),
        ({"variant_name": "chat"}, {PROBLEM.SELECTOR_DIFFERS}),
    ],
)
def test_a_target_of_a_binding_is_checked_in_the_same_way(
    labels: dict[str, str], reasons: set[FollowingProblem]
) -> None:
    """Its metric has labels of its own."""
    record = autoscaler_of(scaler(name="policy_desired_replicas", selector=by_labels(**labels)))

    found = following_problems([record], target_subject(BINDING, "Deployment", "chat"))

    assert {problem.reason for problem in found} == reasons


@pytest.mark.parametrize("spec", [{}, {"metrics": [None, 3, {"type": "External"}]}, {"metrics": "x"}, None])
def test_an_unusual_autoscaler_never_raises(spec: Json | None) -> None:
    """Files may contain anything."""
    record = autoscaler_of({"metadata": {"name": "chat"}, "spec": spec})

    assert following_problems([record], SUBJECT)
