"""Planned nodes and the default profile of the real scheduler, with a scheduling gate and without.

Of two nodes with four accelerators, one has a small replica. The plan puts another small one beside it and a
large one on the other node, but the default profile spreads pods.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from support.manifests import deployment, variant
from support.watching import Place, conditions_of

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

GATE = "stowplan.dev/placement"
HOLD = "example.com/hold"
"""A foreign scheduling gate, which keeps its pod pending during the test."""

_numbers = itertools.count(1)


class Stage(Place):
    """Two nodes, two variants with pinned replicas, and the pods of both."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        super().__init__(control_plane, namespace)
        self._product = f"NVIDIA-FOLLOWED{next(_numbers)}"
        self._nodes = [f"{namespace}-{letter}" for letter in "ab"]
        nodes = [KwokNode(name=n, accelerator=self._product, accelerator_count=4, cpu=4) for n in self._nodes]
        create_nodes(control_plane, nodes)

    def set_up(self, *gates: str) -> None:
        """Start one small replica, with gates in its template, and a large one that stays gated."""
        small = self._deployment("small", 1, *gates)
        large = self._deployment("large", 4, HOLD)
        claims = [self._variant("small", 2), self._variant("large", 1)]
        self.apply(small, large, *claims)
        self.wait("deployment/small", "jsonpath={.status.readyReplicas}=1")
        for name, number in (("small", 2), ("large", 1)):
            self.wait(f"va/{name}", f"jsonpath={{.status.decision.grantedReplicas}}={number}")

    def small_nodes(self) -> list[str]:
        """Return the nodes of both small replicas, once they are ready."""
        self.wait("deployment/small", "jsonpath={.status.readyReplicas}=2")
        listed_pods = self.kubectl("get", "pods", "--selector=app=small", "--output=json")
        return [pod["spec"]["nodeName"] for pod in json.loads(listed_pods)["items"]]

    def condition(self) -> str:
        """Return the message of the condition `PlacementFollowed` of the large variant, once it exists."""
        found = self.watched("va/large", lambda item: "PlacementFollowed" in conditions_of(item))
        return str(conditions_of(found)["PlacementFollowed"]["message"])

    def close(self) -> None:
        """Delete the nodes."""
        self.control_plane.kubectl("delete", "node", *self._nodes)

    def _deployment(self, name: str, accelerators: int, *gates: str) -> dict[str, Any]:
        made = deployment(name, product=self._product, accelerators=accelerators)
        made["spec"]["template"]["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
        return made

    def _variant(self, name: str, replicas: int) -> dict[str, Any]:
        labels = {"inference.optimization/acceleratorName": self._product}
        made = variant(name, labels=labels, modelID=f"model/{name}")
        made["metadata"]["annotations"] = {"stowplan.dev/replicas": str(replicas)}
        return made


@pytest.fixture
def stage(control_plane: ControlPlane, installation: Installation, namespace: str) -> Iterator[Stage]:
    """Yield two nodes of a type that no other test uses."""
    made = Stage(control_plane, namespace)
    yield made
    made.close()


def test_without_a_gate_the_condition_names_the_pod_that_took_the_planned_node(stage: Stage) -> None:
    """The scheduler spreads the small replicas over both nodes, so that the large one does not fit."""
    stage.set_up()

    stage.kubectl("scale", "deploy/small", "--replicas=2")

    assert len(set(stage.small_nodes())) == 2
    message = stage.condition()
    assert message.startswith("1 replica planned on ")
    assert "waits: the scheduler assigned small-" in message
    assert message in stage.get("va/large")["status"]["decision"]["message"]
    assert "PlacedElsewhere" in stage.kubectl("events", "--for=va/large")


def test_with_the_gate_the_default_profile_follows_the_plan(stage: Stage) -> None:
    """The controller removes its gate and adds affinity to the planned node; foreign gates stay."""
    stage.set_up(GATE)

    stage.kubectl("scale", "deploy/small", "--replicas=2")

    assert len(set(stage.small_nodes())) == 1
    held = stage.kubectl("get", "pods", "--selector=app=large", "--output=jsonpath={.items[*].spec}")
    assert HOLD in held
    assert "nodeName" not in held


def test_a_rolling_update_of_pods_with_the_gate_ends(stage: Stage) -> None:
    """The Deployment adds a pod to the granted ones, and deletes an old one when the new one is ready."""
    stage.set_up(GATE)
    stage.kubectl("scale", "deploy/small", "--replicas=2")
    stage.small_nodes()

    stage.kubectl("rollout", "restart", "deploy/small")

    assert "successfully rolled out" in stage.kubectl("rollout", "status", "deploy/small", "--timeout=60s")
