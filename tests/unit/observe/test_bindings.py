"""What bindings depend on: their targets, policies and annotations."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.binding_conditions import BindingCondition, annotations_finding, grace_seconds
from controller.observe.binding_targets import (
    BoundReader,
    BoundWorld,
    bound_references,
    bound_targets,
    keys_of,
)
from controller.observe.scales import scaled_targets
from controller.observe.targets import SET_NAME, WORKER_INDEX, TargetKey, TargetKind

API = "registry.volcano.sh/v1alpha1"
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
GROUPS = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "large"}
SERVING = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing", "name": "llama"}


def metadata(name: str, **more: Any) -> Json:
    """Return the metadata of an object as the API server returns it."""
    base = {"namespace": "ns", "name": name, "uid": name, "generation": 1}
    return base | {"creationTimestamp": "2026-01-01T00:00:00Z"} | more


def binding(name: str, reference: Json, *, target: Json | None = None, **more: Any) -> Json:
    """Return a binding to the referenced object."""
    scaling = {"minReplicas": 1, "maxReplicas": 9, "target": {"targetRef": reference} | (target or {})}
    spec = {"policyRef": {"name": "p"}, "scalingConfiguration": scaling}
    kind = "AutoscalingPolicyBinding"
    return {"apiVersion": API, "kind": kind, "metadata": metadata(name, **more), "spec": spec}


POLICY = {
    "apiVersion": API,
    "kind": "AutoscalingPolicy",
    "metadata": metadata("p"),
    "spec": {"metrics": [{"metricName": "m", "targetValue": 1}]},
}


def pod(name: str, owner: Json, labels: dict[str, str], *, ready: bool = True) -> Json:
    """Return a pod with a controller owner."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    owners = [owner | {"controller": True}]
    return {
        "metadata": metadata(name, ownerReferences=owners, labels=labels),
        "spec": {"nodeName": "n"},
        "status": status,
    }


def test_bindings_map_to_the_targets_that_the_reference_page_documents() -> None:
    """Known kinds map to their own target kind, others to a scaled target; the default kind is ModelInfer."""
    bindings = [
        binding("a", DEPLOYMENT),
        binding("b", GROUPS),
        binding("c", SERVING),
        binding("d", {"name": "x"}),
        binding("e", {"kind": "Server", "name": "y"}),
    ]
    serving = TargetKey(TargetKind.SCALED, "ns", "llama", "workload.serving.volcano.sh", "ModelServing")
    infer = TargetKey(TargetKind.SCALED, "ns", "x", "workload.volcano.sh", "ModelInfer")

    assert [key for item in bindings for key in keys_of(item)] == [
        TargetKey(TargetKind.DEPLOYMENT, "ns", "chat"),
        TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "large"),
        serving,
        infer,
    ]
    assert scaled_targets(bound_references(bindings[:4])) == {
        serving: "workload.serving.volcano.sh/v1alpha1",
        infer: "workload.volcano.sh/v1alpha1",
    }


def test_bound_targets_returns_the_oldest_binding_of_each_target() -> None:
    """Planning of variants compares its age."""
    old = binding("z", DEPLOYMENT, creationTimestamp="2025-01-01T00:00:00Z")
    found = bound_targets([binding("a", DEPLOYMENT), old])

    assert found == {TargetKey(TargetKind.DEPLOYMENT, "ns", "chat"): ("2025-01-01T00:00:00Z", ("ns", "z"))}


def test_only_ready_leader_pods_with_matching_labels_are_scraped() -> None:
    """Workers have no engine and non-matching pods no relevant metrics, but both count as ready replicas."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "large"}
    group = {SET_NAME: "large", WORKER_INDEX: "0", "tier": "gold"}
    pods = [
        pod("large-0", owner, group),
        pod("large-0-1", owner, group | {WORKER_INDEX: "1"}),
        pod("large-1", owner, group | {"tier": "iron"}),
        pod("large-2", owner, group, ready=False),
    ]
    world = BoundWorld(
        policies=[POLICY],
        bindings=[binding("b", GROUPS, target={"additionalMatchLabels": {"tier": "gold"}})],
        replicas={TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "large"): 3},
        pods=pods,
    )
    (case,) = BoundReader().cases(world)

    (state,) = case.targets
    assert (state.current_replicas, state.ready_replicas) == (3, 2)
    assert [item["metadata"]["name"] for item in state.pods] == ["large-0"]


def test_an_invalid_object_that_bypassed_admission_is_reported_in_a_condition() -> None:
    """An invalid binding does not affect other bindings."""
    broken = binding("a", DEPLOYMENT) | {"spec": {"scalingConfiguration": {}}}
    world = BoundWorld(policies=[POLICY], bindings=[broken, binding("b", DEPLOYMENT)])
    first, second = BoundReader(lambda namespace: namespace == "ns").cases(world)

    assert "spec.policyRef: Required value" in first.findings[BindingCondition.POLICY_RESOLVED][2]
    assert second.policy is not None
    assert (first.is_direct, second.is_direct) == (True, True)


ANNOTATION = "stowplan.dev/scale-to-zero-grace-period"


def with_grace(text: str | None) -> Json:
    """Return a binding, with the annotation if a text is given."""
    return {"metadata": {"annotations": {} if text is None else {ANNOTATION: text}}}


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 60.0), ("0s", 0.0), ("90s", 90.0), ("30m", 1800.0), ("1m30s", 90.0)]
)
def test_the_annotation_takes_precedence_over_the_setting(text: str | None, seconds: float) -> None:
    """Without the annotation, the setting applies."""
    assert grace_seconds(with_grace(text), 60.0) == seconds
    assert annotations_finding(with_grace(text))[0]


@pytest.mark.parametrize("text", ["31m", "-1s", "soon", "", "60"])
def test_an_invalid_annotation_is_ignored_and_reported(text: str) -> None:
    """The setting applies, and the condition gives the allowed values."""
    holds, reason, message = annotations_finding(with_grace(text))

    assert grace_seconds(with_grace(text), 60.0) == 60.0
    assert (holds, reason) == (False, "AnnotationNotUnderstood")
    assert message == f"metadata.annotations[{ANNOTATION}]: must be a duration from 0s to 30m, such as 30s"
