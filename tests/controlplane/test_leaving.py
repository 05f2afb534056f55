"""Pods that the real ReplicaSet controller deletes after a smaller number was published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.manifests import autoscaler, deployment, variant
from support.watching import Place

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-GH200"
COST = "controller.kubernetes.io/pod-deletion-cost"
SHOWN = "jsonpath={.metadata.annotations.controller\\.kubernetes\\.io/pod-deletion-cost}"


@pytest.fixture(scope="module")
def _nodes(control_plane: ControlPlane) -> Iterator[None]:
    """Create nodes for two pods and for one, of a type that no other test uses."""
    sizes = {"leaving-two": 2, "leaving-one": 1}
    nodes = [KwokNode(name=name, accelerator=PRODUCT, accelerator_count=n) for name, n in sizes.items()]
    create_nodes(control_plane, nodes)
    yield
    control_plane.kubectl("delete", "node", *sizes)


class Stage(Place):
    """A Deployment whose replicas fill both nodes, and its variant."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        super().__init__(control_plane, namespace)
        value = variant("chat", labels={"inference.optimization/acceleratorName": PRODUCT})
        self.apply(deployment("chat", product=PRODUCT, accelerators=1, replicas=3), value)
        self.wait("deployment/chat", "jsonpath={.status.readyReplicas}=3")

    def pods(self) -> dict[str, str]:
        """Return the node of each pod."""
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.living_pods()}

    def pin(self, replicas: int) -> None:
        """Pin the number of replicas."""
        self.kubectl("annotate", "va/chat", f"stowplan.dev/replicas={replicas}", "--overwrite")
        self.wait("va/chat", f"jsonpath={{.status.decision.grantedReplicas}}={replicas}")

    def follow(self) -> None:
        """Create the HorizontalPodAutoscaler, and wait until two replicas are left."""
        self.apply(autoscaler("chat"))
        self.wait("deployment/chat", "jsonpath={.status.replicas}=2")


@pytest.fixture
def stage(control_plane: ControlPlane, installation: Installation, _nodes: None, namespace: str) -> Stage:
    """Return three replicas that nothing scales yet."""
    return Stage(control_plane, namespace)


def test_the_pod_whose_deletion_empties_a_node_is_deleted(stage: Stage) -> None:
    """By default the ReplicaSet controller would delete one of the two pods on the same node."""
    alone = next(pod for pod, node in stage.pods().items() if node == "leaving-one")

    stage.pin(2)
    assert stage.kubectl("get", "pod", alone, f"--output={SHOWN}") == "-1"
    stage.pin(3)
    assert stage.kubectl("get", "pod", alone, f"--output={SHOWN}") == ""
    stage.pin(2)
    stage.follow()

    assert set(stage.pods().values()) == {"leaving-two"}
    annotations = "--output=jsonpath={.items[*].metadata.annotations}"
    assert COST not in stage.kubectl("get", "pods", annotations)


def test_a_deletion_cost_that_a_user_has_set_is_kept(stage: Stage) -> None:
    """The same pod stays, with the value that the user set."""
    alone = next(pod for pod, node in stage.pods().items() if node == "leaving-one")
    stage.kubectl("annotate", "pod", alone, f"{COST}=10")

    stage.pin(2)
    stage.follow()

    assert alone in stage.pods()
    assert stage.kubectl("get", "pod", alone, f"--output={SHOWN}") == "10"
