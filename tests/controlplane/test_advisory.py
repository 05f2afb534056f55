"""Advisory mode, quotas and pinned replicas, with the real HorizontalPodAutoscaler and ResourceQuota."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from support.manifests import Manifest, autoscaler, deployment, variant
from support.stub_engine import StubEngine
from support.watching import Place

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-RTX-A6000"
ADVISORY = {"stowplan.dev/advisory": "true"}


@pytest.fixture(scope="module")
def _node(control_plane: ControlPlane) -> Iterator[None]:
    """Create a node with twelve accelerators of a type that no other test uses."""
    create_nodes(control_plane, [KwokNode(name="advice", accelerator=PRODUCT, accelerator_count=12)])
    yield
    control_plane.kubectl("delete", "node", "advice")


class Stage(Place):
    """A namespace in which tests apply variants, put load on them, and wait for conditions."""

    def start(self, name: str, annotations: dict[str, str] | None = None) -> None:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for the first replica."""
        value = variant(name, modelID=name, labels={"inference.optimization/acceleratorName": PRODUCT})
        value["metadata"]["annotations"] = annotations or {}
        self.apply(deployment(name, product=PRODUCT, accelerators=1), value, autoscaler(name, most=3))
        self.wait(f"deployment/{name}", "jsonpath={.status.readyReplicas}=1")

    def read(self, what: str, path: str) -> str:
        """Return the value at a JSON path of an object."""
        return self.kubectl("get", what, f"--output=jsonpath={path}")

    def loaded(self) -> ExitStack:
        """Return engines on the addresses of all pods, each with a load for more than three replicas."""
        stack = ExitStack()
        for pod in self.living_pods():
            model = pod["metadata"]["labels"]["app"]
            address = pod["status"]["podIP"]
            stack.enter_context(StubEngine(address, model=model, usage=0.8, requests_per_second=40.0))
        return stack


def desired_of(item: Manifest) -> Manifest:
    """Return the published allocation of a variant."""
    found: Manifest = item["status"]["desiredOptimizedAlloc"]
    return found


@pytest.fixture
def stage(control_plane: ControlPlane, installation: Installation, _node: None, namespace: str) -> Stage:
    """Return a fresh namespace on a control plane with a node of twelve accelerators."""
    return Stage(control_plane, namespace)


def test_an_advisory_variant_gets_a_decision_but_no_metric_and_others_are_scaled(stage: Stage) -> None:
    """Replicas that were set by hand stay until the annotation is removed; then the metric is published."""
    stage.start("told", ADVISORY)
    stage.start("acted")

    with stage.loaded():
        stage.wait("deployment/acted", "jsonpath={.spec.replicas}=3")
        stage.wait("va/told", "jsonpath={.status.decision.grantedReplicas}=3")
        stage.wait("hpa/told", "condition=ScalingActive=False")
        assert stage.read("deploy/told", "{.spec.replicas}") == "1"

        stage.kubectl("scale", "deploy/told", "--replicas=2")
        stage.wait("hpa/told", "jsonpath={.status.currentReplicas}=2")
        assert stage.read("deploy/told", "{.spec.replicas}") == "2"
        said = stage.read("va/told", "{.status.conditions[?(@.type=='Advisory')].message}")

    assert said.startswith("stowplan.dev/advisory is true: nothing is scaled, following it would cost")
    assert stage.read("va/told", "{.status.desiredOptimizedAlloc.numReplicas}") == ""
    assert stage.read("va/acted", "{.status.conditions[?(@.type=='Advisory')].status}") == ""

    stage.kubectl("annotate", "va/told", "stowplan.dev/advisory-")
    stage.wait("hpa/told", "condition=ScalingActive=True")


def test_a_replica_number_of_an_earlier_controller_is_removed_from_the_status(stage: Stage) -> None:
    """The HPA does not follow the number, although server-side apply alone would keep its field."""
    stage.start("migrated", ADVISORY)
    stage.wait("va/migrated", "condition=Advisory")
    earlier = {"desiredOptimizedAlloc": {"numReplicas": 7}, "currentAlloc": {"numReplicas": 7}}
    patch = json.dumps({"status": earlier})
    stage.kubectl(
        "patch",
        "va/migrated",
        "--subresource=status",
        "--type=merge",
        "--field-manager=manager",
        f"-p={patch}",
    )

    found = stage.watched("va/migrated", lambda item: "numReplicas" not in desired_of(item))
    assert found["status"]["currentAlloc"]["numReplicas"] == 1
    stage.wait("hpa/migrated", "condition=ScalingActive=False")
    assert stage.read("deploy/migrated", "{.spec.replicas}") == "1"


def test_a_quota_bounds_the_plan_and_a_pinned_number_is_followed(stage: Stage) -> None:
    """No more replicas are planned than the quota admits, and an invalid annotation changes nothing."""
    stage.kubectl("create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=2")
    stage.start("chat")

    with stage.loaded():
        stage.wait("va/chat", "jsonpath={.status.decision.boundBy}=Quota")
        stage.wait("deployment/chat", "jsonpath={.status.readyReplicas}=2")
    with stage.loaded():
        stage.kubectl("annotate", "va/chat", "stowplan.dev/replicas=many")
        stage.wait("va/chat", "condition=AnnotationsResolved=False")
        assert stage.read("deploy/chat", "{.spec.replicas}") == "2"

        stage.kubectl("annotate", "va/chat", "stowplan.dev/replicas=1", "--overwrite")
        stage.wait("deployment/chat", "jsonpath={.spec.replicas}=1")

    assert stage.read("va/chat", "{.status.decision.boundBy}") == "Ordered"
