"""The shipped second scheduler: its configuration, permissions and placement."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.manifests import deployment, listed
from support.shipped_scheduler import shipped_scheduler

from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.controlplane import ControlPlane
    from hack.controlplane.process import Process

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-PACKED"
SYSTEM = "packing"
NODES = ("packed-a", "packed-b", "packed-c")


@pytest.fixture
def second(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Process]:
    """Run the shipped scheduler in another namespace, with the shipped permissions only."""
    control_plane.kubectl("create", "namespace", SYSTEM)
    with shipped_scheduler(control_plane, tmp_path, namespace=SYSTEM) as process:
        yield process
    control_plane.kubectl("delete", "namespace", SYSTEM, "--wait=false")


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    """Create three equal nodes."""
    create_nodes(
        control_plane, [KwokNode(name=n, accelerator=PRODUCT, accelerator_count=4, cpu=8) for n in NODES]
    )
    yield
    control_plane.kubectl("delete", "node", *NODES)


def test_the_shipped_scheduler_fills_one_node_before_the_next(
    control_plane: ControlPlane, second: Process, nodes: None, namespace: str
) -> None:
    """Eight pods of one accelerator fill two of three nodes; the Lease is in the scheduler's namespace."""
    here = f"--namespace={namespace}"
    packed = deployment("packed", product=PRODUCT, accelerators=1, replicas=8)
    packed["spec"]["template"]["spec"]["schedulerName"] = "stowplan-packed"
    control_plane.kubectl("apply", here, "--filename=-", input=listed(packed))
    ready = "--for=jsonpath={.status.readyReplicas}=8"
    control_plane.kubectl("wait", "deploy/packed", here, ready, "--timeout=60s")

    pods = json.loads(control_plane.kubectl("get", "pods", here, "--output=json").stdout)["items"]

    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    control_plane.kubectl("get", "lease", "stowplan-scheduler", f"--namespace={SYSTEM}")
