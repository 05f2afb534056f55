"""Objects that Models expand to: accepted by a real API server, running, and written safely."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.manifests import listed
from support.models import POLICY, backend, model, split, worker
from support.samples import SAMPLES

from apiserver import cli
from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.status_writer import StatusWriter
from controller.expansion.expansion import expand
from controller.expansion.steps import ChildKey, Steps
from controller.models.caches import RESOURCES
from controller.models.child_writer import ChildWriter
from controller.models.model import FIELD_MANAGER
from hack.controlplane.foreign import Definition
from hack.controlplane.nodes import Node, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apiserver.schema.json import Json
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
    create_nodes(control_plane, [Node(name=NODE, accelerator="NVIDIA-L4", accelerator_count=8)])
    yield
    control_plane.kubectl("delete", "node", NODE)


def apply(control_plane: ControlPlane, namespace: str, objects: tuple[Json, ...], *options: str) -> str:
    """Apply objects; return the output of kubectl."""
    return control_plane.kubectl(
        "apply",
        "--server-side",
        f"--namespace={namespace}",
        "--filename=-",
        *options,
        input=listed(*objects),
    ).stdout


@pytest.mark.parametrize("path", sorted((SAMPLES / "model").glob("*.yaml")), ids=lambda path: str(path.stem))
def test_the_expansion_of_a_sample_is_accepted(
    control_plane: ControlPlane, namespace: str, path: Path
) -> None:
    """`stowplan expand` and `kubectl apply` are used as in the documentation."""
    with redirect_stdout(StringIO()) as printed:
        assert cli.main(["expand", "-f", str(path)]) == 0
    manifests = printed.getvalue()

    said = control_plane.kubectl(
        "apply", "--server-side", f"--namespace={namespace}", "--filename=-", input=manifests
    ).stdout
    assert said.count("serverside-applied") == manifests.count("\nkind: ") > 0


def test_workloads_that_span_nodes_are_accepted(control_plane: ControlPlane, namespace: str) -> None:
    """They are leaders and workers, and prefill and decode."""
    wide = worker(pods=2, config={"max-model-len": 8192})
    workers = [worker(type="prefill", pods=2), worker(type="decode")]
    objects = expand(model(backend("wide", workers=[wide]), split(workers=workers))).objects

    assert "leaderworkerset.leaderworkerset.x-k8s.io/qwen-wide" in apply(control_plane, namespace, objects)


@pytest.mark.usefixtures("_node")
def test_a_scaled_model_runs_and_its_binding_and_hpa_find_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Its pods are Ready, and the controller and the HPA resolve their target."""
    value = model(backend(maxReplicas=4, autoscalingPolicy=POLICY))
    apply(control_plane, namespace, expand(value).objects)
    place = f"--namespace={namespace}"

    control_plane.kubectl("wait", place, "--for=condition=Available", "deployment/qwen-l4", "--timeout=60s")
    control_plane.kubectl("wait", place, "--for=condition=TargetsResolved", "aspb/qwen-l4", "--timeout=60s")
    control_plane.kubectl("wait", place, "--for=condition=AbleToScale", "hpa/qwen-l4", "--timeout=60s")


async def test_only_objects_in_the_observed_state_are_written(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Existing and replaced objects are not taken over; a deleted one is not created without a new read."""
    place = f"--namespace={namespace}"
    labels = {"stowplan.dev/model": "qwen", "stowplan.dev/backend": "l4"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "qwen-l4", "namespace": namespace, "labels": labels},
        "spec": {"selector": {"app": "ours"}, "ports": [{"port": 80}]},
    }
    key, wanted = ChildKey("Service", "qwen-l4"), Steps(apply=(service,), delete=(), awaited=())
    async with await Cluster.connect(control_plane.kubeconfig) as cluster:
        writer = StatusWriter(
            cluster=cluster,
            events=EventRecorder(cluster, controller="tests", instance="one"),
            field_manager=FIELD_MANAGER,
        )
        children = ChildWriter(writer, RESOURCES)
        made = await children.act(wanted, {}, {})
        again = await children.act(wanted, {}, {})
        control_plane.kubectl("delete", "service/qwen-l4", place)
        gone = await children.act(wanted, made.children, {})
        control_plane.kubectl("create", "service", "clusterip", "qwen-l4", "--tcp=81:81", place)
        before = await children.complete({}, namespace, [key])
        replaced = await children.act(wanted, made.children, {})
        new = await children.act(wanted, {}, {})
        after = await children.complete({}, namespace, [key])

    assert made.is_over
    assert [(item.is_over, item.refused) for item in (again, gone, replaced, new)] == [(False, "")] * 4
    assert before == after
