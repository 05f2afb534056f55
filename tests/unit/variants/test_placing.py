"""Pods with our scheduling gate: which are released, for which node, and by which patch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest
from support.decisions import decision, plan_of
from support.logs import capture_logs
from support.manifests import deployment
from support.observations import observed
from support.planning_builders import node
from support.workloads import leader_worker_set

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.schema.json import Json, JsonValue
from controller.observe.observed import ObservedVariant
from controller.observe.targets import GROUP_INDEX, GROUP_REVISION, TargetKey, TargetKind, target_of
from controller.planning.decision import NodePlacement, Plan
from controller.variants.placing import GATE, GateKeeper, ReleasedPod, let_in, strays

KEY = ("ns", "chat")
KEY_OF_TARGET = TargetKey(TargetKind.DEPLOYMENT, *KEY)


def pod(name: str, *, gates: tuple[str, ...] = (GATE,), accelerators: int = 1, **spec: JsonValue) -> Json:
    """Return a pod; a higher number means a later creation."""
    container = {"resources": {"limits": {"nvidia.com/gpu": accelerators}}}
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "resourceVersion": "7",
            "creationTimestamp": f"2026-01-01T00:00:0{name[-1]}Z",
        },
        "spec": {"schedulingGates": [{"name": gate} for gate in gates], "containers": [container], **spec},
    }


def seen(pods: Sequence[Json], **fields: object) -> ObservedVariant:
    """Return what was found about the only variant."""
    return observed("chat", pods=tuple(pods), **fields)


def planned(replicas: int, **places: int) -> Plan:
    """Return a plan that grants replicas of the only variant, some of them with nodes."""
    placements = tuple(
        NodePlacement(namespace="ns", name="chat", node=node, pods=count) for node, count in places.items()
    )
    return plan_of(decision("chat", replicas=replicas), placements=placements)


@dataclass(frozen=True, kw_only=True)
class Case:
    """The pods of the variant, the plan, and the node of each released pod."""

    pods: tuple[Json, ...]
    plan: Plan
    expected: dict[str, str | None]
    is_acted_on: bool = True


TWO = (pod("chat-1"), pod("chat-2"))
UNBOUND = pod(
    "chat-0", gates=(), affinity=ReleasedPod(pod=pod("chat-0"), node="a").patch()["spec"]["affinity"]
)
UNBOUND_IN_B = pod(
    "chat-0", gates=(), affinity=ReleasedPod(pod=pod("chat-0"), node="bx").patch()["spec"]["affinity"]
)["spec"]
CASES = {
    "each pod gets a place of the plan, oldest first": Case(
        pods=(TWO[1], TWO[0]), plan=planned(2, b=1, a=1), expected={"chat-1": "a", "chat-2": "b"}
    ),
    "places of replicas that do not exist yet are kept free": Case(
        pods=TWO[:1], plan=planned(3, a=3), expected={"chat-1": "a"}
    ),
    "the youngest pods are held if there are more than granted": Case(
        pods=TWO, plan=planned(1, a=1), expected={"chat-1": "a"}
    ),
    "a running pod counts as one of the granted replicas": Case(
        pods=(pod("chat-0", gates=(), nodeName="a"), *TWO), plan=planned(2, a=1), expected={"chat-1": "a"}
    ),
    "the place of a pod that was released and is not bound yet is reserved": Case(
        pods=(UNBOUND, TWO[0]), plan=planned(2, a=1, b=1), expected={"chat-1": "b"}
    ),
    "a pod that is not bound yet uses only one of several places on its node": Case(
        pods=(UNBOUND, *TWO), plan=planned(3, a=2, b=1), expected={"chat-1": "a", "chat-2": "b"}
    ),
    "a bound pod uses none of the places": Case(
        pods=(UNBOUND | {"spec": UNBOUND["spec"] | {"nodeName": "a"}}, TWO[0]),
        plan=planned(2, a=1),
        expected={"chat-1": "a"},
    ),
    "a pod planned on a node to be added is released, for the node autoscaler": Case(
        pods=TWO, plan=planned(2, a=1), expected={"chat-1": "a", "chat-2": None}
    ),
    "pods are released if the plan is not applied": Case(
        pods=TWO, plan=planned(0, a=2), expected={"chat-1": None, "chat-2": None}, is_acted_on=False
    ),
    "gates of other projects are kept": Case(
        pods=(pod("chat-1", gates=("example.com/quota",)),), plan=planned(1, a=1), expected={}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gated_pods_are_released_as_the_plan_has_places(case: Case) -> None:
    """The id of each case describes the situation."""
    found = let_in({KEY: seen(case.pods)}, case.plan, acted_on=lambda _: case.is_acted_on)

    assert {item.pod["metadata"]["name"]: item.node for item in found} == case.expected


def of_group(name: str, group: str, *, accelerators: int = 1, revision: str = "a", **spec: JsonValue) -> Json:
    """Return a pod of a group, gated unless it has a node."""
    found = pod(name, gates=() if spec else (GATE,), accelerators=accelerators, **spec)
    labels = {GROUP_INDEX: group, GROUP_REVISION: revision}
    return found | {"metadata": found["metadata"] | {"labels": labels}}


def test_a_pod_of_a_group_that_has_no_accelerators_uses_no_place() -> None:
    """Each group has two pods, of which one has accelerators."""
    pods = (
        of_group("0-1", "0", accelerators=0),
        of_group("0-2", "0"),
        of_group("1-3", "1", accelerators=0),
        of_group("1-4", "1"),
    )

    found = let_in({KEY: seen(pods)}, planned(1, a=1))

    assert {item.pod["metadata"]["name"]: item.node for item in found} == {"0-1": None, "0-2": "a"}


@dataclass(frozen=True, kw_only=True)
class GroupCase:
    """Pods of groups of two, places whose first letter is the zone, and the node of each released pod."""

    pods: tuple[Json, ...]
    plan: Plan
    expected: dict[str, str | None]


A1, A2, B3, B4 = (of_group(f"{group}-{n}", group) for n, group in ((1, "0"), (2, "0"), (3, "1"), (4, "1")))
GROUP_CASES = {
    "all pods of a group get places in one zone": GroupCase(
        pods=(A1, B3, B4, A2),
        plan=planned(2, ax=1, bx=1, ay=1, by=1),
        expected={"0-1": "ax", "0-2": "ay", "1-3": "bx", "1-4": "by"},
    ),
    "a zone with a place for one pod only is kept for a group that has a pod there": GroupCase(
        pods=(of_group("1-3", "1", nodeName="ax"), A1, A2, B4),
        plan=planned(2, ay=1, bx=1, by=1),
        expected={"0-1": "bx", "0-2": "by", "1-4": "ay"},
    ),
    "places for pods that are not created yet are reserved": GroupCase(
        pods=(A1, B3), plan=planned(2, ax=1, bx=1, ay=1, by=1), expected={"0-1": "ax", "1-3": "bx"}
    ),
    "a pod follows one that was released and is not bound yet": GroupCase(
        pods=(A1 | {"spec": UNBOUND_IN_B}, A2),
        plan=planned(2, ax=1, bx=1, ay=1, by=1),
        expected={"0-2": "by"},
    ),
    "a second group waits if one is granted, although both together have as many pods as one has": GroupCase(
        pods=(B3, A1), plan=planned(1, ax=1, ay=1), expected={"0-1": "ax"}
    ),
    "the groups with the lowest numbers are released, because they are deleted last": GroupCase(
        pods=(of_group("10-1", "10"), of_group("9-2", "9")),
        plan=planned(1, ax=1, ay=1),
        expected={"9-2": "ax"},
    ),
    "one of two groups is completed if both were released in part": GroupCase(
        pods=(of_group("1-3", "1", nodeName="ay"), B4, of_group("0-1", "0", nodeName="ax"), A2),
        plan=planned(1, az=1),
        expected={"0-2": "az"},
    ),
    "a group whose other place is on a node to be added still prefers an existing node": GroupCase(
        pods=(A1, A2), plan=planned(1, bx=1), expected={"0-1": "bx", "0-2": None}
    ),
}


@pytest.mark.parametrize("case", GROUP_CASES.values(), ids=GROUP_CASES)
def test_gated_pods_of_groups_get_places_in_one_zone(case: GroupCase) -> None:
    """The id of each case describes the situation."""
    nodes = [node(zone + end, 8, labels=frozenset({("zone", zone)})) for zone in "ab" for end in "xyz"]
    made = leader_worker_set("chat", product="A100", accelerators=1, size=2, exclusive_topology="zone")
    target = target_of(TargetKey(TargetKind.LEADER_WORKER_SET, *KEY), made)

    found = let_in({KEY: seen(case.pods, target=target)}, case.plan, nodes)

    assert {item.pod["metadata"]["name"]: item.node for item in found} == case.expected


def of_template(name: str, template: str, **spec: JsonValue) -> Json:
    """Return a pod of one template of a rollout, gated unless it has a spec, and ready otherwise."""
    found = pod(name, gates=() if spec else (GATE,), **spec)
    conditions = [{"type": "Ready", "status": "True"}] if spec else []
    return found | {
        "metadata": found["metadata"] | {"labels": {"pod-template-hash": template}},
        "status": {"conditions": conditions},
    }


OLD = tuple(of_template(f"old-{number}", "a", nodeName="n") for number in range(3))
NEW = (of_template("new-3", "b"), of_template("new-4", "b"))
REPLACED = of_template("old-9", "a", nodeName="n")
ROLLOUTS = {
    "a surge pod of one replica": (OLD[:1], NEW[:1], 1, 1, ["new-3"]),
    "as many as maxSurge allows": (OLD, NEW, 3, 3, ["new-3", "new-4"]),
    "one in place of a deleted old one, and one surge pod": (OLD[:2], NEW, 3, 3, ["new-3", "new-4"]),
    "a granted number that the HPA has not applied yet": (OLD, NEW[:1], 3, 1, ["new-3"]),
    "pods of the old template beyond the granted number wait": (
        OLD[:2],
        (of_template("old-2", "a"), of_template("old-3", "a"), of_template("new-4", "b")),
        4,
        2,
        ["new-4"],
    ),
    "a surge pod, although an evicted pod of the old template was replaced": (
        (*OLD[:2], REPLACED),
        NEW[:1],
        3,
        3,
        ["new-3"],
    ),
    "no surge without a rollout": (
        (),
        (of_template("old-1", "a"), of_template("old-2", "a")),
        1,
        1,
        ["old-1"],
    ),
}


@pytest.mark.parametrize(
    ("running", "gated", "requested", "granted", "want"), ROLLOUTS.values(), ids=ROLLOUTS.keys()
)
def test_surge_pods_of_a_rollout_are_released(
    running: tuple[Json, ...], gated: tuple[Json, ...], requested: int, granted: int, want: list[str]
) -> None:
    """The Deployment deletes an old pod only when a new one is Ready, so the new one must not wait for it."""
    target = target_of(KEY_OF_TARGET, deployment("chat", product="A100", accelerators=1, replicas=requested))
    pods = (*running, *gated)

    found = let_in({KEY: seen(pods, target=target)}, planned(granted))

    assert [item.pod["metadata"]["name"] for item in found] == want


def test_all_pods_of_a_group_that_a_rollout_adds_are_released() -> None:
    """With `maxUnavailable` of 0, no old group is deleted before it is ready. Old groups are incomplete."""
    made = leader_worker_set("chat", product="A100", accelerators=1, size=3, replicas=2)
    target = target_of(TargetKey(TargetKind.LEADER_WORKER_SET, *KEY), made)
    old = [of_group(f"{group}-{group}", str(group), nodeName="n") for group in (1, 0)]
    added = [of_group("2-7", "2", revision="b"), of_group("2-8", "2", revision="b")]

    def released(*pods: Json) -> list[str]:
        found = let_in({KEY: seen(pods, target=target)}, planned(2))
        return [item.pod["metadata"]["name"] for item in found]

    assert released(*added[:1], *old) == ["2-7"]
    assert released(of_group("2-7", "2", revision="b", nodeName="n"), added[1], *old) == ["2-8"]
    assert released(of_group("2-7", "2"), *old) == []


def test_a_gated_pod_without_a_planned_variant_is_released() -> None:
    """Otherwise it would wait forever, because no plan contains it."""
    assert [item.pod["metadata"]["name"] for item in strays((*TWO, pod("other-3")), [seen(TWO)])] == [
        "other-3"
    ]


def test_the_planned_node_is_added_to_the_pod_s_preferences() -> None:
    """The merge patch keeps the affinity of the pod template, and other gates."""
    old = {"weight": 5, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
    affinity: Json = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [old]}}
    gated = pod("chat-1", gates=("example.com/quota", GATE), affinity=affinity)
    by_name = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    new = {"weight": 100, "preference": {"matchFields": [by_name]}}

    assert ReleasedPod(pod=gated, node="a").patch() == {
        "metadata": {"resourceVersion": "7"},
        "spec": {
            "schedulingGates": [{"name": "example.com/quota"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [old, new]}},
        },
    }
    assert "affinity" not in ReleasedPod(pod=gated, node=None).patch()["spec"]


class Server:
    """Accepts patches, or rejects them with an error."""

    def __init__(self, error: ClusterError | None) -> None:
        self.error = error

    async def patch_merge(self, *_call: object, **_options: object) -> Json:
        """Accept or reject a patch."""
        if self.error:
            raise self.error
        return {}


async def test_a_missing_permission_is_logged_once_and_a_deleted_pod_never() -> None:
    """The next cycle retries in any case."""
    server = Server(Forbidden("pods is forbidden"))
    keeper = GateKeeper(cast("Cluster", server))
    due = [ReleasedPod(pod=item, node="a") for item in TWO]

    with capture_logs() as lines:
        await keeper.open_for(due)
        await keeper.open_for(due)
        server.error = NotFound("gone")
        await keeper.open_for(due)

    assert [line["why"] for line in lines] == ["pods is forbidden"]
