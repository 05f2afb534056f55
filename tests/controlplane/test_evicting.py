"""Defragmentation of accelerators through the Eviction API, so that a large replica fits on a node."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
import yaml
from support.manifests import autoscaler, deployment, variant
from support.stub_engine import StubEngine
from support.watching import Place, path_of

from hack.controlplane.client import RefusedError
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.manifests import Manifest

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-B200"
NODES = ("apart-1", "apart-2", "apart-3")
SIZES = {"left": 1, "right": 1, "large": 2}
"""Accelerators per replica; every node has two."""

BUDGET: Manifest = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "small"},
    "spec": {
        "minAvailable": 2,
        "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["left", "right"]}]},
    },
}


@pytest.fixture(scope="module")
def _evicting(control_plane: ControlPlane, installation: Installation) -> Iterator[None]:
    """Enable evictions in the controller, and create nodes of a type that no other test uses."""
    create_nodes(
        control_plane, [KwokNode(name=name, accelerator=PRODUCT, accelerator_count=2) for name in NODES]
    )
    control_plane.kubectl("apply", "--server-side", f"--kustomize={ROOT / 'manifests' / 'evictions'}")
    path = control_plane.directory / "controller.yaml"
    before = path.read_text(encoding="utf-8")
    document = yaml.safe_load(before)
    document["planning"]["evictions"] = {"enabled": True, "intervalSeconds": 2}
    _restart(installation, control_plane, yaml.safe_dump(document))
    yield
    _restart(installation, control_plane, before)
    control_plane.kubectl("delete", "node", *NODES)


def _restart(installation: Installation, control_plane: ControlPlane, document: str) -> None:
    installation.processes["controller"].stop(patience_seconds=20.0)
    (control_plane.directory / "controller.yaml").write_text(document, encoding="utf-8")
    installation.start_component("controller")


class Stage(Place):
    """Two small replicas and a large one, each on its own node, although two nodes would be sufficient."""

    def fill(self, *, is_left_planned: bool) -> None:
        """Start one replica of each Deployment; those that Stowplan plans get a variant."""
        for node, (name, size) in zip(NODES, SIZES.items(), strict=True):
            self.control_plane.kubectl("cordon", *(other for other in NODES if other != node))
            made = [_workload(name, size, consents=not is_left_planned)]
            if is_left_planned or name != "left":
                made += _planned(name, is_movable=is_left_planned)
            self.apply(*made)
            self.wait(f"deployment/{name}", "jsonpath={.status.readyReplicas}=1")
            self.control_plane.kubectl("uncordon", *NODES)

    def nodes(self) -> dict[str, list[str]]:
        """Return the nodes on which the pods of each Deployment run."""
        found: dict[str, list[str]] = {name: [] for name in SIZES}
        for pod in self.living_pods():
            found[pod["metadata"]["labels"]["app"]].append(pod["spec"]["nodeName"])
        return found

    def loaded(self) -> ExitStack:
        """Return engines on the addresses of all pods; only the load of `large` needs one more replica."""
        stack = ExitStack()
        for pod in self.living_pods():
            model = pod["metadata"]["labels"]["app"]
            rate = 40.0 if model == "large" else 1.0
            engine = StubEngine(pod["status"]["podIP"], model=model, usage=0.5, requests_per_second=rate)
            stack.enter_context(engine)
        return stack


def _workload(name: str, size: int, *, consents: bool) -> Manifest:
    annotations = {"stowplan.dev/movable": "true"} if consents else {}
    return deployment(name, product=PRODUCT, accelerators=size, annotations=annotations)


def _planned(name: str, *, is_movable: bool) -> list[Manifest]:
    value = variant(name, modelID=name, labels={"inference.optimization/acceleratorName": PRODUCT})
    value["metadata"]["annotations"] = {} if is_movable else {"stowplan.dev/preemption": "Never"}
    return [value, autoscaler(name, most=2 if name == "large" else 1)]


@pytest.fixture
def stage(control_plane: ControlPlane, _evicting: None, namespace: str) -> Stage:
    """Return a fresh namespace for a workload whose free accelerators are on different nodes."""
    return Stage(control_plane, namespace)


def test_one_replica_is_evicted_once_its_disruption_budget_allows_it(
    control_plane: ControlPlane, installation: Installation, stage: Stage
) -> None:
    """Before that the API server rejects evictions and no pod moves; then the large replica gets a node."""
    stage.fill(is_left_planned=True)
    stage.apply(BUDGET)
    stage.wait("pdb/small", "jsonpath={.status.currentHealthy}=2")
    with stage.loaded():
        stage.wait("va/large", "jsonpath={.status.decision.boundBy}=NodeSize")
        small = next(pod for pod in stage.living_pods() if pod["metadata"]["labels"]["app"] == "left")
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": small["metadata"]["name"]},
        }
        path = f"{path_of(stage.namespace, 'pod')}/{small['metadata']['name']}/eviction"
        with control_plane.client() as client, pytest.raises(RefusedError, match="disruption budget"):
            client.call("POST", path, eviction)
        assert stage.nodes() == {"left": ["apart-1"], "right": ["apart-2"], "large": ["apart-3"]}

        stage.kubectl("delete", "pdb", "small")
        stage.wait("deployment/large", "jsonpath={.status.readyReplicas}=2")

    found = stage.nodes()
    assert found["left"] == found["right"]
    assert sorted([*found["left"], *found["large"]]) == [*NODES]
    assert "to make room for large" in stage.kubectl("events")
    assert "to make room" in stage.kubectl("events", "--for=va/large")
    with urlopen(installation.metrics_url("controller"), timeout=30) as answer:  # noqa: S310 (loopback)
        assert 'stowplan_evictions_total{outcome="evicted"} 1.0' in answer.read().decode()
    taints = control_plane.kubectl("get", "nodes", "--output=jsonpath={.items[*].spec.taints}").stdout
    assert "stowplan.dev/moving" not in taints
    annotation = r"--output=jsonpath={.metadata.annotations.stowplan\.dev/evictions}"
    lease = ("lease", "stowplan-controller", "--namespace=stowplan-system")
    assert control_plane.kubectl("get", *lease, annotation).stdout.endswith("Z x1")


def test_a_pod_that_is_not_planned_is_evicted_if_its_owner_allows_it(stage: Stage) -> None:
    """The planned replica on the other node must not be evicted, because its variant forbids preemption."""
    stage.fill(is_left_planned=False)

    with stage.loaded():
        stage.wait("deployment/large", "jsonpath={.status.readyReplicas}=2")

    found = stage.nodes()
    assert found["left"] == found["right"] == ["apart-2"]
    assert "to make room" in stage.kubectl("events", "--for=va/large")
