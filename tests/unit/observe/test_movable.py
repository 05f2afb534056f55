"""Pods that may be evicted, and the disruption budgets that limit this."""

from __future__ import annotations

from typing import Any

import pytest
from support.workloads import WORKER_INDEX, group_pod

from apiserver.schema.json import Json
from controller.observe.movable import MOVABLE, Disruptions, lowest_priority, movable_pods
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
    """Return a ready pod with two accelerators, annotated as movable by default."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {
            "namespace": "jobs",
            "name": "train-0",
            "annotations": {MOVABLE: "true"} if annotations is None else annotations,
            "ownerReferences": [OWNED_BY_SET if owner is None else owner],
            "labels": labels or {},
        },
        "spec": {"nodeName": "n1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]} | spec,
        "status": ready if status is None else status,
    }


def found(item: Json, *, highest_priority: int = 0) -> list[MovablePod]:
    """Return the movable pods in a list of this one."""
    planned = frozenset({TargetKey(TargetKind.DEPLOYMENT, "jobs", "ours")})
    listed = movable_pods([item], planned, Disruptions(()), highest_priority=highest_priority)
    return [*listed.get("n1", ())]


def _required(kind: str) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


STAYS = {
    "a pod without the annotation": pod(annotations={}),
    "a pod with the annotation false": pod(annotations={MOVABLE: "false"}),
    "a pod that node autoscalers must not evict": pod(
        annotations={MOVABLE: "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    ),
    "a pod without a controller": pod(owner={"kind": "Deployment", "name": "x"}),
    "a pod of a DaemonSet": pod(owner={"kind": "DaemonSet", "name": "x", "controller": True}),
    "a pod of a Job": pod(owner={"kind": "Job", "name": "x", "controller": True}),
    "a mirror pod of a static pod": pod(owner={"kind": "Node", "name": "n1", "controller": True}),
    "a pod of a planned Deployment": pod(
        owner={"kind": "ReplicaSet", "name": "ours-abc", "controller": True},
        labels={"pod-template-hash": "abc"},
    ),
    "a pod with a hostPath volume": pod(volumes=[{"name": "d", "hostPath": {"path": "/d"}}]),
    "a pod with an emptyDir volume on disk": pod(volumes=[{"name": "d", "emptyDir": {}}]),
    "a pod with a PersistentVolumeClaim": pod(
        volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
    ),
    "a pod with required pod affinity": pod(affinity=_required("podAffinity")),
    "a pod with required pod anti-affinity": pod(affinity=_required("podAntiAffinity")),
    "a pod with a required topology spread": pod(
        topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}]
    ),
    "a pod with a resource claim": pod(resourceClaims=[{"name": "gpu"}]),
    "a pod of a higher priority": pod(priority=1),
    "a pod without accelerators": pod(containers=[{}]),
    "a pod that is not ready": pod(status={"phase": "Running"}),
    "a pod without a node": pod(nodeName=""),
    "a finished pod": pod(status={"phase": "Succeeded"}),
}


@pytest.mark.parametrize("sentence", STAYS)
def test_these_pods_are_not_movable(sentence: str) -> None:
    """A pod is moved only if its annotation allows it and it can start on another node."""
    assert found(STAYS[sentence]) == []


MOVES = {
    "an emptyDir volume in memory": pod(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]),
    "a ConfigMap volume": pod(volumes=[{"name": "c", "configMap": {"name": "c"}}]),
    "a preferred topology spread": pod(topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}]),
}


@pytest.mark.parametrize("sentence", MOVES)
def test_these_pods_are_movable(sentence: str) -> None:
    """These properties do not prevent a pod from starting on another node."""
    assert found(MOVES[sentence]) == [MovablePod(namespace="jobs", name="train-0", accelerators=2)]


def test_a_movable_pod_has_its_price_class_and_node_selector() -> None:
    """The sign of the pod's priority gives the price class."""
    assert [found(pod(priority=value), highest_priority=9)[0].price_class for value in (-5, 0, 9)] == [
        1,
        2,
        3,
    ]
    assert found(pod(nodeSelector={"zone": "a"}))[0].node_selector == {("zone", "a")}


def test_no_pod_is_moved_for_a_variant_of_lower_priority() -> None:
    """The lowest priority among planned pods is the highest that a movable pod may have."""
    planned = [[pod(priority=5)], [pod(priority=-3), pod(priority=7)]]

    assert lowest_priority(planned) == -3
    assert found(pod(), highest_priority=lowest_priority(planned)) == []


def budget(name: str, selector: Json | None, allowed: int = 1, **metadata: Any) -> Json:
    """Return a PodDisruptionBudget of namespace `ns`."""
    return {
        "metadata": {"namespace": "ns", "name": name} | metadata,
        "spec": {} if selector is None else {"selector": selector},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": 2},
    }


def labelled_pod(name: str = "p", **labels: str) -> Json:
    """Return a pod of namespace `ns`."""
    return {"metadata": {"namespace": "ns", "name": name, "labels": labels}}


def _asks(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


WEB, DB = labelled_pod(app="web"), labelled_pod("d", app="db")
GROUPS = [group_pod("big", group, worker) for group in (0, 1) for worker in (0, 1, 2)]
FOUND: dict[str, tuple[list[Json], list[Json], tuple[str, int | None]]] = {
    "without budgets there is no limit": ([], [WEB], ("", None)),
    "the status gives the number of allowed evictions": (
        [budget("b", {"matchLabels": {"app": "web"}}, 3)],
        [WEB, labelled_pod("q", app="web")],
        ("b", 3),
    ),
    "a group counts as all of its pods": ([budget("b", {}, 6)], GROUPS, ("b", 2)),
    "a group is evicted if one of its pods may be": ([budget("b", {}, 1)], GROUPS, ("b", 1)),
    "a group stays if none of its pods may be evicted": ([budget("b", {}, 0)], GROUPS, ("b", 0)),
    "a group counts as one pod if the budget selects leaders only": (
        [budget("b", {"matchLabels": {WORKER_INDEX: "0"}}, 2)],
        GROUPS,
        ("b", 2),
    ),
    "a group with separate budgets for leaders and workers stays": (
        [budget("a", _asks(WORKER_INDEX, "In", "0"), 9), budget("b", _asks(WORKER_INDEX, "NotIn", "0"), 9)],
        GROUPS,
        ("", 0),
    ),
    "a budget that selects other pods does not apply": (
        [budget("b", {"matchLabels": {"app": "db"}})],
        [WEB],
        ("", None),
    ),
    "a budget of another namespace does not apply": (
        [budget("b", {}) | {"metadata": {"namespace": "other", "name": "b"}}],
        [WEB],
        ("", None),
    ),
    "a negative number allows nothing": ([budget("b", {}, -1)], [WEB], ("b", 0)),
    "more than a plan can contain": ([budget("b", {}, 2**31 - 1)], [WEB], ("b", 10**6)),
    "an empty selector selects everything": ([budget("b", {})], [WEB], ("b", 1)),
    "no selector selects nothing": ([budget("b", None)], [WEB], ("", None)),
    "a pod under two budgets is never evicted": ([budget("a", {}), budget("b", {})], [WEB], ("", 0)),
    "pods under different budgets are not evicted": (
        [budget("b", {"matchLabels": {"app": "db"}})],
        [WEB, DB],
        ("", 0),
    ),
    "a status of an older generation allows nothing": ([budget("b", {}, generation=3)], [WEB], ("b", 0)),
    "In": ([budget("b", _asks("app", "In", "web", "db"))], [WEB], ("b", 1)),
    "In, without a matching value": ([budget("b", _asks("app", "In", "db"))], [WEB], ("", None)),
    "NotIn": ([budget("b", _asks("tier", "NotIn", "low"))], [WEB], ("b", 1)),
    "Exists": ([budget("b", _asks("app", "Exists"))], [WEB], ("b", 1)),
    "DoesNotExist": ([budget("b", _asks("app", "DoesNotExist"))], [WEB], ("", None)),
    "an unknown operator is taken to select": ([budget("b", _asks("app", "Like"))], [WEB], ("b", 1)),
    "without pods no budget applies": ([budget("b", {})], [], ("", None)),
}


@pytest.mark.parametrize("sentence", FOUND)
def test_the_applicable_budget_and_its_allowed_evictions_are_found(sentence: str) -> None:
    """The result is the budget's name and a number; None means no limit."""
    budgets, pods, expected = FOUND[sentence]

    assert Disruptions(budgets).of(pods) == expected
