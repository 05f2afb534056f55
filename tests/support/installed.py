"""Stowplan on a real node, for tests that observe and disturb it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

    from hack.realnode import RealNode

SYSTEM = "stowplan-system"
HERE = f"--namespace={SYSTEM}"
COMPONENTS = ("webhooks", "apiserver", "controller")
PATIENCE_SECONDS = 90.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """The node and the installation on it."""

    node: RealNode
    first_pods: list[dict[str, Any]]
    """The pods when every Deployment was rolled out."""

    ready_seconds: float
    """Time from `kubectl apply` of the base until then."""

    available_seconds: float
    """Time from creating the APIService until external metrics were available."""

    def kubectl(
        self, *arguments: str, check: bool = True, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator."""
        return self.node.control_plane.kubectl(*arguments, check=check, input=text)

    def read(self, *arguments: str) -> dict[str, Any]:
        """Read one object, or a list, from our namespace."""
        value: dict[str, Any] = json.loads(self.kubectl("get", HERE, "--output=json", *arguments).stdout)
        return value

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Read the pods of one component that are not being deleted."""
        items = self.read("pods", f"--selector=app.kubernetes.io/component={component}")["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def names(self, component: str) -> list[str]:
        """Return the names of one component's pods."""
        return [pod["metadata"]["name"] for pod in self.pods(component)]

    def leader(self) -> str:
        """Return the name of the pod that holds the Lease, or an empty string."""
        holder: str = self.read("lease", "stowplan-controller")["spec"].get("holderIdentity") or ""
        return holder.rpartition("_")[0]

    def inside(self, pod: str, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the container of a pod."""
        return self.kubectl("exec", HERE, pod, "--", *command, check=check)

    def kill(self, pod: str) -> None:
        """Kill the first process of a pod's container, from outside."""
        container = self.read("pod", pod)["status"]["containerStatuses"][0]["containerID"]
        identity = container.removeprefix("containerd://")
        (task,) = (line for line in self.node.ctr("tasks", "list").splitlines() if line.startswith(identity))
        os.kill(int(task.split()[1]), signal.SIGKILL)

    def wait_until_rolled_out(self) -> None:
        """Wait until every Deployment has all its pods Ready."""
        self.kubectl("rollout", "status", "deployment", HERE, f"--timeout={PATIENCE_SECONDS:.0f}s")
