"""The scheduler that we ship beside the cluster's own: its configuration, its rights, its effect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from support.kustomizing import kustomized
from support.manifests import deployment, listed

from hack.clusters.ways import PACKED
from hack.controlplane.binaries import provide_binaries
from hack.controlplane.network import free_port
from hack.controlplane.nodes import Node, create_nodes
from hack.controlplane.process import Process
from hack.controlplane.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-PACKED"
SYSTEM = "packing"
NODES = ("packed-a", "packed-b", "packed-c")


@pytest.fixture
def second(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Process]:
    """Run the shipped scheduler in another namespace, as the shipped account and with no right added."""
    rendered = kustomized(control_plane, tmp_path, resources=["scheduler"], namespace=SYSTEM)
    (shipped_deployment,) = (item for item in rendered if item["kind"] == "Deployment")
    objects = [item for item in rendered if item is not shipped_deployment]
    control_plane.kubectl("create", "namespace", SYSTEM)
    control_plane.kubectl("apply", "--server-side", "--filename=-", input=listed(*objects))
    (shipped,) = (item["data"]["config.yaml"] for item in objects if item["kind"] == "ConfigMap")
    kubeconfig = control_plane.service_account_kubeconfig(SYSTEM, "stowplan-scheduler")
    address = control_plane.allocate_address()
    port = free_port(address)
    configuration = tmp_path / "config.yaml"
    # In a pod the account is found by itself; nothing else is changed.
    connection = {"clientConnection": {"kubeconfig": str(kubeconfig)}}
    configuration.write_text(yaml.safe_dump(yaml.safe_load(shipped) | connection))
    binary = str(provide_binaries(ProgressLine())["kube-scheduler"])
    (container,) = shipped_deployment["spec"]["template"]["spec"]["containers"]
    flags = [flag for flag in container["command"] if "$(NAMESPACE)" in flag]
    pki = control_plane.directory / "pki"
    command = [
        binary,
        f"--config={configuration}",
        *(flag.replace("$(NAMESPACE)", SYSTEM) for flag in flags),
        f"--bind-address={address}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki / 'component.crt'}",
        f"--tls-private-key-file={pki / 'component.key'}",
    ]
    process = Process("second-scheduler", command, directory=tmp_path)
    process.start()
    yield process
    process.check()
    process.stop()
    control_plane.kubectl("delete", "namespace", SYSTEM, "--wait=false")


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    """Three alike."""
    create_nodes(
        control_plane, [Node(name=n, accelerator=PRODUCT, accelerator_count=4, cpu=8) for n in NODES]
    )
    yield
    control_plane.kubectl("delete", "node", *NODES)


def test_it_fills_one_node_before_the_next(
    control_plane: ControlPlane, second: Process, nodes: None, namespace: str
) -> None:
    """Eight pods of one accelerator fill two of three nodes, and the Lease is in the same namespace."""
    here = f"--namespace={namespace}"
    packed = deployment("packed", product=PRODUCT, accelerators=1, replicas=8)
    packed["spec"]["template"]["spec"]["schedulerName"] = PACKED
    control_plane.kubectl("apply", here, "--filename=-", input=listed(packed))
    ready = "--for=jsonpath={.status.readyReplicas}=8"
    control_plane.kubectl("wait", "deploy/packed", here, ready, "--timeout=60s")

    pods = json.loads(control_plane.kubectl("get", "pods", here, "--output=json").stdout)["items"]

    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    control_plane.kubectl("get", "lease", "stowplan-scheduler", f"--namespace={SYSTEM}")
