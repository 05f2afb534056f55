"""The real node, from `start` to `stop`, with a control plane in the same namespaces."""

from __future__ import annotations

import subprocess
from types import TracebackType
from typing import Final, Self

from hack.controlplane import ControlPlane
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.nodes import SIMULATED
from hack.controlplane.process import Probe, Process, wait_until_ready
from hack.realnode.image import ArchiveImage
from hack.realnode.kubelet import (
    HEALTH,
    METRICS_ADDRESS,
    NODE,
    KubeletFiles,
    cni_configuration,
    containerd_configuration,
    kubelet_command,
    kubelet_configuration,
    proxy_command,
    write_identity,
)
from hack.realnode.namespaces import shield, uncover
from hack.realnode.network import NodeNetwork
from hack.realnode.prepared import NodePreparation
from hack.realnode.prerequisites import PATH

_READY_SECONDS: Final = 60.0


class RealNode:
    """Kubelet, containerd and kube-proxy with a control plane, and with the images of this tree loaded.

    Works only under `python -m hack.realnode`, whose namespaces clean up what is left.
    """

    def __init__(self) -> None:
        self._prepared = NodePreparation.handed_over()
        self._processes: dict[str, Process] = {}
        self.control_plane = ControlPlane(network=NodeNetwork, simulated_nodes=SIMULATED)
        """The node's control plane, which also has kwok's nodes; pods can reach it."""

    @property
    def images(self) -> tuple[ArchiveImage, ...]:
        """The images on the node."""
        return self._prepared.images

    def start(self) -> None:
        """Start everything and wait until the node is Ready. Raises ControlPlaneError with a log's tail."""
        self.control_plane.start()
        directory = self.control_plane.directory / "node"
        directory.mkdir()
        pki = self.control_plane.directory / "pki"
        self._layout = KubeletFiles(prepared=self._prepared, directory=directory, pki=pki)
        shield(directory)
        write_identity(pki, server=self.control_plane.server)
        self._start_runtime()
        self._start_kubelet()
        kubectl = self.control_plane.kubectl
        for condition in ("create", "condition=Ready"):
            kubectl("wait", f"--for={condition}", f"node/{NODE}", "--timeout=60s")

    def stop(self, *, keep_directory: bool = False) -> None:
        """Stop the programs; containers end with the namespace."""
        for process in reversed(self._processes.values()):
            process.stop()
        uncover(self.control_plane.directory)
        self.control_plane.stop(keep_directory=keep_directory)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop(keep_directory=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep_directory=isinstance(error, Exception))

    def ctr(self, *arguments: str) -> str:
        """Run containerd's client on the containers of pods, and return its output."""
        command = [
            str(self._prepared.program("ctr")),
            f"--address={self._layout.socket}",
            "--namespace=k8s.io",
        ]
        finished = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise ControlPlaneError(f"ctr {' '.join(arguments)}: {finished.stderr.strip()}")
        return finished.stdout

    def _start_runtime(self) -> None:
        layout = self._layout
        (layout.directory / "cni").mkdir()
        (layout.directory / "cni" / "pods.conflist").write_text(cni_configuration(layout), encoding="ascii")
        configuration = layout.directory / "containerd.toml"
        configuration.write_text(containerd_configuration(layout), encoding="ascii")
        command = [str(self._prepared.program("containerd")), f"--config={configuration}"]
        self._start("containerd", command, Probe(url=f"http://{METRICS_ADDRESS}/v1/metrics"))
        for image in self.images:
            self.ctr("images", "import", image.archive)

    def _start_kubelet(self) -> None:
        layout = self._layout
        (layout.directory / "kubelet.json").write_text(kubelet_configuration(layout), encoding="ascii")
        for name, command in (("kubelet", kubelet_command(layout)), ("kube-proxy", proxy_command(layout))):
            self._start(name, command, Probe(url=HEALTH[name]))

    def _start(self, name: str, command: list[str], probe: Probe) -> None:
        process = Process(name, command, directory=self._layout.directory, path=PATH)
        self._processes[name] = process
        process.start()
        wait_until_ready(process, probe, patience_seconds=_READY_SECONDS)
