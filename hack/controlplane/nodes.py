"""Nodes with accelerators, labelled as by the NVIDIA device plugin and GPU feature discovery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hack.controlplane.controlplane import ControlPlane

_NODES = "/api/v1/nodes"
_READY_SECONDS = 30.0
_MAX_PODS = "110"

SIMULATED = "type=kwok"
"""The label selector of these nodes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KwokNode:
    """A simulated node that kwok keeps Ready."""

    name: str
    accelerator: str
    """Product in the label `nvidia.com/gpu.product`, such as `NVIDIA-A100-SXM4-80GB`."""

    accelerator_count: int
    accelerator_memory_gib: int = 80
    """Memory of one accelerator in GiB; the label has MiB."""

    cpu: int = 96
    zone: str = "zone-a"

    def manifest(self) -> dict[str, Any]:
        """Return the Node object; kwok adds conditions and addresses."""
        resources = {
            "cpu": str(self.cpu),
            "memory": "1024Gi",
            "pods": _MAX_PODS,
            "nvidia.com/gpu": str(self.accelerator_count),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": self._labels()},
            "status": {"capacity": resources, "allocatable": resources},
        }

    def _labels(self) -> dict[str, str]:
        return {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "type": "kwok",
            "topology.kubernetes.io/zone": self.zone,
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": self.accelerator,
            "nvidia.com/gpu.count": str(self.accelerator_count),
            "nvidia.com/gpu.memory": str(self.accelerator_memory_gib * 1024),
        }


def create_nodes(control_plane: ControlPlane, nodes: Iterable[KwokNode]) -> None:
    """Create the nodes and wait until they are Ready; kwok must be running.

    Raises RefusedError, and NotReadyError after half a minute.
    """
    made = list(nodes)
    with control_plane.client() as client:
        for node in made:
            client.call("POST", _NODES, node.manifest())
        for node in made:
            client.wait_until_true("Ready", _NODES, node.name, seconds=_READY_SECONDS)
