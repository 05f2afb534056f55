"""Which pods of others may be moved, and what planning learns of them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.disruptions import Disruptions
from controller.observe.movable import MOVABLE, lowest_priority, movable_pods
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.cluster import MovablePod

OWNED_BY_SET = {"kind": "StatefulSet", "name": "train", "controller": True}


def pod(
    *,
    annotations: dict[str, str] | None = None,
    owner: Json | None = None,
    status: Json | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Json:
    """Return a ready pod with two accelerators that says it may be moved."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {
            "namespace": "jobs",
            "name": "train-0",
            "annotations": {MOVABLE: "true"} if annotations is None else annotations,
            "ownerReferences": [OWNED_BY_SET if owner is None else owner],
            "labels": labels or {},
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}],
        }
        | spec,
        "status": ready if status is None else status,
    }


def found(item: Json, *, highest_priority: int = 0) -> list[MovablePod]:
    """Return what of one pod may be moved."""
    planned = frozenset({TargetKey(TargetKind.DEPLOYMENT, "jobs", "ours")})
    listed = movable_pods([item], planned, Disruptions(()), highest_priority=highest_priority)
    return [*listed.get("n1", ())]


def _required(kind: str) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


STAYS = {
    "one that does not say so": pod(annotations={}),
    "one that says no": pod(annotations={MOVABLE: "false"}),
    "one that node autoscalers must not evict": pod(
        annotations={MOVABLE: "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    ),
    "one that nobody makes anew": pod(owner={"kind": "Deployment", "name": "x"}),
    "one of a DaemonSet": pod(owner={"kind": "DaemonSet", "name": "x", "controller": True}),
    "one of a Job": pod(owner={"kind": "Job", "name": "x", "controller": True}),
    "a mirror of a static pod": pod(owner={"kind": "Node", "name": "n1", "controller": True}),
    "one of a planned Deployment": pod(
        owner={"kind": "ReplicaSet", "name": "ours-abc", "controller": True},
        labels={"pod-template-hash": "abc"},
    ),
    "one with a directory on the node": pod(volumes=[{"name": "d", "hostPath": {"path": "/d"}}]),
    "one with a scratch disk": pod(volumes=[{"name": "d", "emptyDir": {}}]),
    "one with a claim": pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]),
    "one that needs others near": pod(affinity=_required("podAffinity")),
    "one that needs others away": pod(affinity=_required("podAntiAffinity")),
    "one that must be spread": pod(topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}]),
    "one with claimed devices": pod(resourceClaims=[{"name": "gpu"}]),
    "one of a higher priority class": pod(priority=1),
    "one without accelerators": pod(containers=[{}]),
    "one that is not ready": pod(status={"phase": "Running"}),
    "one that waits for a node": pod(nodeName=""),
    "one that is done": pod(status={"phase": "Succeeded"}),
}


@pytest.mark.parametrize("sentence", STAYS)
def test_what_stays(sentence: str) -> None:
    """Nothing is evicted without its owner's consent, or that could not start elsewhere."""
    assert found(STAYS[sentence]) == []


MOVES = {
    "with memory for a disk": pod(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]),
    "with what the API server holds": pod(volumes=[{"name": "c", "configMap": {"name": "c"}}]),
    "with a preferred spread": pod(topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}]),
}


@pytest.mark.parametrize("sentence", MOVES)
def test_what_moves(sentence: str) -> None:
    """One that may."""
    assert found(MOVES[sentence]) == [MovablePod(namespace="jobs", name="train-0", accelerators=2)]


def test_a_price_class_and_where_it_could_go_are_told() -> None:
    """By the sign of the priority; selectors as they stand."""
    assert [found(pod(priority=value), highest_priority=9)[0].price_class for value in (-5, 0, 9)] == [
        1,
        2,
        3,
    ]
    assert found(pod(nodeSelector={"zone": "a"}))[0].node_selector == {("zone", "a")}


def test_nobody_is_moved_for_one_of_a_lower_class() -> None:
    """The lowest class among the planned is the highest that may be moved."""
    planned = [[pod(priority=5)], [pod(priority=-3), pod(priority=7)]]

    assert lowest_priority(planned) == -3
    assert found(pod(), highest_priority=lowest_priority(planned)) == []
