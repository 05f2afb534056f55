"""The control loop: engines, controller, status, external metrics, and the real HorizontalPodAutoscaler."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from support.manifests import autoscaler, deployment, listed, variant
from support.polling import wait_for
from support.stub_engine import StubEngine

from hack.controlplane.nodes import Node, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

MODEL = "meta/llama-3.1-8b"
PRODUCT = "NVIDIA-RTX-PRO-6000"
METRICS_MESSAGE = "{.status.conditions[?(@.type=='MetricsAvailable')].message}"


@pytest.fixture(scope="module")
def _node(control_plane: ControlPlane) -> Iterator[None]:
    """Create a node with four accelerators of a type that no other test uses."""
    create_nodes(control_plane, [Node(name="loop", accelerator=PRODUCT, accelerator_count=4)])
    yield
    control_plane.kubectl("delete", "node", "loop")


@pytest.fixture
def chat(control_plane: ControlPlane, installation: Installation, _node: None, namespace: str) -> str:
    """Apply a Deployment with one engine, its variant and its HPA; return the namespace."""
    manifests = [
        deployment("chat", product=PRODUCT, accelerators=1),
        variant("chat", labels={"inference.optimization/acceleratorName": PRODUCT}),
        autoscaler("chat"),
    ]
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(*manifests))
    wait(control_plane, namespace, "deploy/chat", "{.status.readyReplicas}=1")
    return namespace


def wait(control_plane: ControlPlane, namespace: str, what: str, path: str) -> None:
    """Wait until a JSON path has a value."""
    control_plane.kubectl("wait", what, f"--namespace={namespace}", f"--for=jsonpath={path}", "--timeout=60s")


def read(control_plane: ControlPlane, namespace: str, what: str, path: str) -> str:
    """Return the value at a JSON path."""
    return control_plane.kubectl("get", what, f"--namespace={namespace}", f"--output=jsonpath={path}").stdout


def read_until(control_plane: ControlPlane, namespace: str, path: str, part: str) -> None:
    """Wait until the value at a JSON path of the variant contains a text."""

    def text() -> str:
        return read(control_plane, namespace, "va/chat", path)

    wait_for(lambda: part in text(), lambda: f"{part!r} in {text()!r}")


def engines(control_plane: ControlPlane, namespace: str, *, requests_per_second: float) -> ExitStack:
    """Return engines on the address of every Running pod, all with the same load."""
    stack = ExitStack()
    pods = json.loads(
        control_plane.kubectl("get", "pods", f"--namespace={namespace}", "--output=json").stdout
    )
    for pod in pods["items"]:
        if pod["status"].get("podIP"):
            address = pod["status"]["podIP"]
            engine = StubEngine(address, model=MODEL, usage=0.5, requests_per_second=requests_per_second)
            stack.enter_context(engine)
    return stack


def test_load_makes_the_hpa_scale_up_to_the_number_of_accelerators(
    control_plane: ControlPlane, chat: str
) -> None:
    """A load for ten replicas meets four accelerators: four are granted, and status and events say why."""
    with engines(control_plane, chat, requests_per_second=40.0):
        wait(control_plane, chat, "va/chat", "{.status.decision.reason}=Shortage")
        wait(control_plane, chat, "deploy/chat", "{.spec.replicas}=4")

    message = read(control_plane, chat, "va/chat", "{.status.decision.message}")
    assert read(control_plane, chat, "va/chat", "{.status.decision.boundBy}") == "Accelerators"
    assert "RTX-PRO-6000" in message
    events = control_plane.kubectl("events", "--for=va/chat", f"--namespace={chat}").stdout
    assert "Shortage" in events


def test_replicas_stay_if_engines_stop_reporting(control_plane: ControlPlane, chat: str) -> None:
    """Missing data is never a zero; the condition says that no replica reports."""
    read_until(control_plane, chat, METRICS_MESSAGE, "0 of 1 ready replicas report; chat-")

    assert read(control_plane, chat, "va/chat", "{.status.desiredOptimizedAlloc.numReplicas}") == "1"
    assert read(control_plane, chat, "deploy/chat", "{.spec.replicas}") == "1"


def test_an_engine_that_serves_another_model_is_named(control_plane: ControlPlane, chat: str) -> None:
    """A variant with a wrong modelID would otherwise look healthy and never scale."""
    edit = json.dumps({"spec": {"modelID": "meta/another"}})
    control_plane.kubectl("patch", "va", "chat", f"--namespace={chat}", "--type=merge", f"--patch={edit}")

    with engines(control_plane, chat, requests_per_second=1.0):
        want = "the engine serves model 'meta/llama-3.1-8b' and not 'meta/another'"
        read_until(control_plane, chat, METRICS_MESSAGE, want)
