"""Our serving processes, running next to a fleet, and the peak memory of each process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apiserver.kinds.llmd.conversion import HUB
from hack.calling import variants
from hack.calling.conversion_reviews import SERVER_NAME, converted_objects, http_request, review
from hack.calling.cores import memory_mebibytes
from hack.calling.load import ask
from hack.calling.server_process import ADDRESS, ServerProcess, new_identity
from hack.controlplane import ControlPlane
from hack.controlplane.network import free_port
from hack.controlplane.process import Probe, Process, wait_until_ready
from hack.installation.installation import process_of
from hack.scale import fleet

_PATIENCE_SECONDS: Final = 120.0
_SERVING: Final = ("webhooks", "apiserver")


def forget_peak() -> None:
    """Reset the peak memory of this process to its current use. Contract: proc(5), `clear_refs`."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


@dataclass(frozen=True, slots=True)
class Beside:
    """The serving processes by component."""

    processes: dict[str, Process]
    webhooks: ServerProcess

    def convert(self, count: int) -> None:
        """Convert `count` objects in one review, as the API server does to list a fleet of that size.

        Raises ValueError if not all of them are converted.
        """
        values = variants.mixed_objects(variants.OLD, count)
        with closing(self.webhooks.connect()) as connection:
            answer = ask(connection, http_request(review(values, HUB)))
        if len(converted_objects(answer.body)) != count:
            raise ValueError("not all objects were converted")

    def peaks_mebibytes(self) -> dict[str, float]:
        """Return the peak memory of each process in MiB."""
        return {name: memory_mebibytes("VmHWM", process.pid) for name, process in self.processes.items()}


@contextmanager
def run_servers(control_plane: ControlPlane) -> Iterator[Beside]:
    """Run webhooks and apiserver, with their watches, until the block ends."""
    directory = control_plane.directory
    context = new_identity(directory, server_name=SERVER_NAME)
    ports, processes = dict[str, int](), dict[str, Process]()
    try:
        for name in _SERVING:
            ports[name], health = free_port(ADDRESS), free_port(ADDRESS)
            document = _document(control_plane, ports[name], health)
            processes[name] = process_of(name, document, directory / f"{name}.yaml", log=name)
            processes[name].start()
            probe = Probe(url=f"http://{ADDRESS}:{health}/readyz")
            wait_until_ready(processes[name], probe, patience_seconds=_PATIENCE_SECONDS)
        pid = processes["webhooks"].pid
        webhooks = ServerProcess(port=ports["webhooks"], context=context, server_name=SERVER_NAME, pid=pid)
        yield Beside(processes, webhooks)
    finally:
        for process in processes.values():
            process.stop()


def _document(control_plane: ControlPlane, port: int, health_port: int) -> dict[str, Any]:
    serving_section = {
        "bindAddress": ADDRESS,
        "port": port,
        "metricsPort": 0,
        "healthPort": health_port,
        "certificateDirectory": str(control_plane.directory),
        "drainSeconds": 0,
    }
    return {
        "serving": serving_section,
        "cluster": {"kubeconfig": str(control_plane.kubeconfig)},
        "namespace": fleet.NAMESPACE,
    }
