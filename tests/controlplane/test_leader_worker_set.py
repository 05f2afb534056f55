"""LeaderWorkerSets are planned in whole groups and scaled through their scale subresource.

Their own controller does not run: the tests create a group's StatefulSets and status as it would.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.manifests import autoscaler, variant
from support.watching import Place, conditions_of
from support.workloads import GROUP_INDEX, SET_NAME, WORKER_INDEX, leader_worker_set, stateful_set

from hack.controlplane.foreign import Definition
from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.manifests import Manifest

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-GROUPED"
GATE = "stowplan.dev/placement"
ZONE = "topology.kubernetes.io/zone"
ZONES = {
    "pair-a1": "pair-a",
    "single-1": "single",
    "pair-b1": "pair-b",
    "pair-a2": "pair-a",
    "pair-b2": "pair-b",
}
"""Five nodes of four accelerators: two zones can hold a group of two pods, the third only one pod."""


@pytest.fixture(scope="module")
def controller_log(control_plane: ControlPlane, installation: Installation) -> Iterator[Path]:
    """Create nodes that only groups use; yield the path of the controller's log."""
    nodes = [
        KwokNode(name=name, accelerator=PRODUCT, accelerator_count=4, zone=zone)
        for name, zone in ZONES.items()
    ]
    create_nodes(control_plane, nodes)
    yield installation.processes["controller"].log
    control_plane.kubectl("delete", "node", *ZONES)


@pytest.fixture
def defined(control_plane: ControlPlane, installation: Installation, controller_log: Path) -> int:
    """Install the kind and start the controller again; return the size of its log before."""
    control_plane.define(Definition.LEADER_WORKER_SETS)
    installation.processes["controller"].stop(patience_seconds=20.0)
    begins_bytes = controller_log.stat().st_size
    installation.start_component("controller")
    return begins_bytes


class Group(Place):
    """A LeaderWorkerSet whose groups have two pods, with its variant and HPA."""

    def claim(self, *, pinned: int) -> None:
        """Apply a variant with the set as its target, and an HPA that follows the decision."""
        reference = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "chat"}
        labels = {"inference.optimization/acceleratorName": PRODUCT}
        claim = variant("chat", labels=labels, scaleTargetRef=reference)
        claim["metadata"]["annotations"] = {"stowplan.dev/replicas": str(pinned)}
        follower = autoscaler("chat", most=20)
        follower["spec"]["scaleTargetRef"] = reference
        self.apply(claim, follower)

    def start(self) -> None:
        """Apply the set, and its first group as its controller would: the worker follows a bound leader."""
        made = leader_worker_set("chat", product=PRODUCT, accelerators=4, size=2, exclusive_topology=ZONE)
        self.apply(made)
        told = {"status": {"replicas": 1, "hpaPodSelector": f"{SET_NAME}=chat,{WORKER_INDEX}=0"}}
        self.kubectl(
            "patch",
            "leaderworkerset/chat",
            "--subresource=status",
            "--type=merge",
            f"--patch={json.dumps(told)}",
        )
        for part, worker in (("chat", 0), ("chat-0", 1)):
            self.apply(_part(part, worker=worker))
            self.wait(f"sts/{part}", "jsonpath={.status.readyReplicas}=1")

    def condition(self, type_: str) -> str:
        """Return the message of a condition of the variant."""
        return str(conditions_of(self.get("va/chat"))[type_]["message"])

    def pods(self) -> dict[str, Manifest]:
        """Return the specs of all pods by name."""
        return {pod["metadata"]["name"]: pod["spec"] for pod in self.living_pods()}


def _part(name: str, *, worker: int) -> Manifest:
    """Return the StatefulSet of the leaders, or that of one group's workers."""
    labels = {SET_NAME: "chat", GROUP_INDEX: "0", WORKER_INDEX: str(worker)}
    made = stateful_set(name, product=PRODUCT, accelerators=4)
    made["spec"] |= {"selector": {"matchLabels": labels}, "ordinals": {"start": worker}}
    made["spec"]["template"]["metadata"] = {"labels": labels}
    made["spec"]["template"]["spec"]["schedulingGates"] = [{"name": GATE}]
    return made


@pytest.fixture
def group(control_plane: ControlPlane, namespace: str) -> Group:
    """Return a set that was not applied yet."""
    return Group(control_plane, namespace)


def test_planning_continues_if_the_kind_is_not_installed(controller_log: Path, group: Group) -> None:
    """A variant with such a target gets a condition; the log does not report the missing kind."""
    group.claim(pinned=9)
    group.wait("va/chat", "condition=TargetResolved=False")

    assert group.condition("TargetResolved").startswith("LeaderWorkerSet 'chat' does not exist in namespace")
    assert "without LeaderWorkerSets" not in controller_log.read_text(encoding="utf-8")


def test_whole_groups_are_planned_and_scaled(controller_log: Path, defined: int, group: Group) -> None:
    """Five nodes hold five pods and thus two groups; the gates of a group's pods open in one zone."""
    group.claim(pinned=9)
    group.start()

    group.wait("va/chat", "jsonpath={.status.decision.grantedReplicas}=2")
    group.wait("lws/chat", "jsonpath={.spec.replicas}=2")
    pods = group.pods()
    assert set(pods) == {"chat-0", "chat-0-1"}
    assert {ZONES[spec["nodeName"]] for spec in pods.values()} < {"pair-a", "pair-b"}
    for spec in pods.values():
        (term,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert term["preference"]["matchFields"][0]["values"] == [spec["nodeName"]]
    assert group.condition("TargetResolved") == "the LeaderWorkerSet exists"
    # Other errors are expected, such as events that are forbidden in a namespace that is being deleted.
    assert "forbidden: User" not in controller_log.read_bytes()[defined:].decode()
