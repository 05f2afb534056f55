"""The control loop: engines, controller, status, external metrics, and the real HorizontalPodAutoscaler."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from support.manifests import Manifest, autoscaler, deployment, variant
from support.stub_engine import StubEngine
from support.watching import Place, conditions_of

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

MODEL = "meta/llama-3.1-8b"
PRODUCT = "NVIDIA-RTX-PRO-6000"


@pytest.fixture(scope="module")
def _node(control_plane: ControlPlane) -> Iterator[None]:
    """Create a node with four accelerators of a type that no other test uses."""
    create_nodes(control_plane, [KwokNode(name="loop", accelerator=PRODUCT, accelerator_count=4)])
    yield
    control_plane.kubectl("delete", "node", "loop")


@pytest.fixture
def chat(control_plane: ControlPlane, installation: Installation, _node: None, namespace: str) -> Place:
    """Apply a Deployment with one engine, its variant and its HPA; return the namespace."""
    made = Place(control_plane, namespace)
    made.apply(
        deployment("chat", product=PRODUCT, accelerators=1),
        variant("chat", labels={"inference.optimization/acceleratorName": PRODUCT}),
        autoscaler("chat"),
    )
    made.wait("deployment/chat", "jsonpath={.status.readyReplicas}=1")
    return made


def wait_for_metrics_message(chat: Place, part: str) -> Manifest:
    """Return the variant once the message about its metrics contains a text."""

    def is_said(item: Manifest) -> bool:
        return part in conditions_of(item).get("MetricsAvailable", {}).get("message", "")

    return chat.watched("va/chat", is_said)


def engines(chat: Place, *, requests_per_second: float) -> ExitStack:
    """Return engines on the address of every Running pod, all with the same load."""
    stack = ExitStack()
    for pod in chat.living_pods():
        if pod["status"].get("podIP"):
            address = pod["status"]["podIP"]
            engine = StubEngine(address, model=MODEL, usage=0.5, requests_per_second=requests_per_second)
            stack.enter_context(engine)
    return stack


def test_load_makes_the_hpa_scale_up_to_the_number_of_accelerators(chat: Place) -> None:
    """A load for ten replicas meets four accelerators: four are granted, and status and events say why."""
    with engines(chat, requests_per_second=40.0):
        chat.wait("va/chat", "jsonpath={.status.decision.reason}=Shortage")
        chat.wait("deployment/chat", "jsonpath={.spec.replicas}=4")

    decision = chat.get("va/chat")["status"]["decision"]
    assert decision["boundBy"] == "Accelerators"
    assert "RTX-PRO-6000" in decision["message"]
    assert "Shortage" in chat.kubectl("events", "--for=va/chat")


def test_replicas_stay_if_engines_stop_reporting(chat: Place) -> None:
    """Missing data is never a zero; the condition says that no replica reports."""
    told = wait_for_metrics_message(chat, "0 of 1 ready replicas report; chat-")

    assert told["status"]["desiredOptimizedAlloc"]["numReplicas"] == 1
    assert chat.get("deployment/chat")["spec"]["replicas"] == 1


def test_an_engine_that_serves_another_model_is_named(chat: Place) -> None:
    """A variant with a wrong modelID would otherwise look healthy and never scale."""
    edit = json.dumps({"spec": {"modelID": "meta/another"}})
    chat.kubectl("patch", "va", "chat", "--type=merge", f"--patch={edit}")

    with engines(chat, requests_per_second=1.0):
        want = "the engine serves model 'meta/llama-3.1-8b' and not 'meta/another'"
        wait_for_metrics_message(chat, want)
