"""Spread constraints and anti-affinity of pods: the real scheduler can place all granted replicas.

The file also tests a StatefulSet, which an HPA scales by the decision like a Deployment.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from support.manifests import autoscaler, deployment, variant
from support.watching import Place
from support.workloads import stateful_set

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
PODS = {"matchLabels": {"app": "chat"}}

_numbers = itertools.count(1)


class Stage(Place):
    """Two zones with four accelerators and one with one, and a target with a pinned number of replicas."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        super().__init__(control_plane, namespace)
        self.product = f"NVIDIA-RULED{next(_numbers)}"
        rooms = {f"{namespace}-a": 4, f"{namespace}-b": 4, f"{namespace}-c": 1}
        self._nodes = [*rooms]
        create_nodes(
            control_plane,
            [
                KwokNode(name=name, accelerator=self.product, accelerator_count=count, zone=name)
                for name, count in rooms.items()
            ],
        )

    def start(self, target: dict[str, Any], *, pinned: int) -> None:
        """Apply a target with its variant and HPA."""
        reference = {name: target[name] for name in ("apiVersion", "kind")} | {"name": "chat"}
        follower = autoscaler("chat", most=20)
        follower["spec"]["scaleTargetRef"] = reference
        claim = variant(
            "chat",
            labels={"inference.optimization/acceleratorName": self.product},
            scaleTargetRef=reference,
        )
        claim["metadata"]["annotations"] = {"stowplan.dev/replicas": str(pinned)}
        self.apply(target, claim, follower)

    def pin(self, replicas: int) -> None:
        """Pin another number of replicas."""
        self.kubectl("annotate", "--overwrite", "va/chat", f"stowplan.dev/replicas={replicas}")

    def pods_on_nodes(self) -> Counter[str]:
        """Return the number of pods by node, without the namespace in its name; empty for pending pods."""
        pods = self.living_pods()
        return Counter(pod["spec"].get("nodeName", "").removeprefix(f"{self.namespace}-") for pod in pods)

    def close(self) -> None:
        """Delete the nodes."""
        self.control_plane.kubectl("delete", "node", *self._nodes)


@pytest.fixture
def stage(control_plane: ControlPlane, installation: Installation, namespace: str) -> Iterator[Stage]:
    """Yield nodes of a type that no other test uses."""
    made = Stage(control_plane, namespace)
    yield made
    made.close()


def _even(key: str, skew: int) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "topologyKey": key,
                "maxSkew": skew,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": PODS,
            }
        ]
    }


def _apart(key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": PODS}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param({}, {"a": 4, "b": 4, "c": 1}, id="without a rule all nine fit"),
        pytest.param(_even(ZONE, 1), {"a": 2, "b": 2, "c": 1}, id="spread over three zones"),
        pytest.param(_even(ZONE, 2), {"a": 3, "b": 3, "c": 1}, id="spread with a skew of two"),
        pytest.param(_apart(HOSTNAME), {"a": 1, "b": 1, "c": 1}, id="one on each node"),
        pytest.param(_apart(ZONE), {"a": 1, "b": 1, "c": 1}, id="one in each zone"),
    ],
)
def test_the_scheduler_places_all_granted_replicas(
    stage: Stage, rule: dict[str, Any], want: dict[str, int]
) -> None:
    """Of nine pinned replicas, as many are granted as the pods' rules allow, and none is pending."""
    target = deployment("chat", product=stage.product, accelerators=1)
    target["spec"]["template"]["spec"] |= rule
    granted = sum(want.values())

    stage.start(target, pinned=9)
    stage.wait("deployment/chat", f"jsonpath={{.spec.replicas}}={granted}")
    stage.wait("deployment/chat", f"jsonpath={{.status.readyReplicas}}={granted}")

    assert stage.pods_on_nodes() == want


def test_a_stateful_set_is_scaled_up_and_down(stage: Stage) -> None:
    """The highest ordinals are deleted, and no pod gets a deletion cost, which has no effect there."""
    stage.start(stateful_set("chat", product=stage.product, accelerators=2), pinned=6)
    stage.wait("va/chat", "jsonpath={.status.decision.grantedReplicas}=4")
    stage.wait("sts/chat", "jsonpath={.status.readyReplicas}=4")

    stage.pin(2)
    stage.wait("sts/chat", "jsonpath={.spec.replicas}=2")
    stage.wait("sts/chat", "jsonpath={.status.replicas}=2")

    assert [pod["metadata"]["name"] for pod in stage.living_pods()] == ["chat-0", "chat-1"]
    assert "pod-deletion-cost" not in stage.kubectl("get", "pods", "--output=yaml")
    condition = "--output=jsonpath={.status.conditions[?(@.type=='TargetResolved')].message}"
    assert stage.kubectl("get", "va/chat", condition) == "the StatefulSet exists"
