"""Objects that Models expand to: accepted by a real API server, running, and written safely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.command_line import stowplan
from support.models import POLICY, backend, model, split, worker
from support.samples import SAMPLES

from hack.controlplane.foreign import Definition
from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

NODE = "modelled-1"


@pytest.fixture(scope="module", autouse=True)
def _installed(control_plane: ControlPlane, installation: Installation) -> None:
    """Run the webhooks, and install the kind of workloads that span nodes."""
    control_plane.define(Definition.LEADER_WORKER_SETS)


@pytest.fixture
def _node(control_plane: ControlPlane) -> Iterator[None]:
    """Make a node with accelerators."""
    create_nodes(control_plane, [KwokNode(name=NODE, accelerator="NVIDIA-L4", accelerator_count=8)])
    yield
    control_plane.kubectl("delete", "node", NODE)


def expanded(path: Path) -> str:
    """Return the objects that `stowplan expand` prints for the Models in a file."""
    ended = stowplan("expand", "-f", str(path))
    assert ended.code == 0, ended.err
    return ended.out


def apply(control_plane: ControlPlane, namespace: str, manifests: str) -> str:
    """Apply manifests; return the output of kubectl."""
    command = ("apply", "--server-side", f"--namespace={namespace}", "--filename=-")
    return control_plane.kubectl(*command, input=manifests).stdout


@pytest.mark.parametrize("path", sorted((SAMPLES / "model").glob("*.yaml")), ids=lambda path: str(path.stem))
def test_the_expansion_of_a_sample_is_accepted(
    control_plane: ControlPlane, namespace: str, path: Path
) -> None:
    """`stowplan expand` and `kubectl apply` are used as in the documentation."""
    manifests = expanded(path)

    assert apply(control_plane, namespace, manifests).count("applied") == manifests.count("\nkind: ") > 0


def test_workloads_that_span_nodes_are_accepted(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """They are leaders and workers, and prefill and decode."""
    wide = worker(pods=2, config={"max-model-len": 8192})
    workers = [worker(type="prefill", pods=2), worker(type="decode")]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model(backend("wide", workers=[wide]), split(workers=workers))))

    applied = apply(control_plane, namespace, expanded(path))

    assert "leaderworkerset.leaderworkerset.x-k8s.io/qwen-wide" in applied


@pytest.mark.usefixtures("_node")
def test_a_scaled_model_runs_and_its_binding_and_hpa_find_it(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Its pods are Ready, and the controller and the HPA resolve their target."""
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model(backend(maxReplicas=4, autoscalingPolicy=POLICY))))
    apply(control_plane, namespace, expanded(path))
    place = f"--namespace={namespace}"

    control_plane.kubectl("wait", place, "--for=condition=Available", "deployment/qwen-l4", "--timeout=60s")
    control_plane.kubectl("wait", place, "--for=condition=TargetsResolved", "aspb/qwen-l4", "--timeout=60s")
    control_plane.kubectl("wait", place, "--for=condition=AbleToScale", "hpa/qwen-l4", "--timeout=60s")
