"""The shipped scheduler as a process for the duration of a block, with its configuration and permissions."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hack.controlplane.binaries import provide_binaries
from hack.controlplane.network import free_port
from hack.controlplane.process import Process
from hack.controlplane.progress import ProgressLine
from support.kustomizing import kustomized
from support.manifests import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane


@contextlib.contextmanager
def shipped_scheduler(control_plane: ControlPlane, folder: Path, *, namespace: str) -> Iterator[Process]:
    """Run it in an existing namespace, with the shipped service account and no other permissions.

    Files are written to `folder`.
    """
    rendered = kustomized(control_plane, folder, resources=["scheduler"], namespace=namespace)
    (shipped_deployment,) = (item for item in rendered if item["kind"] == "Deployment")
    objects = [item for item in rendered if item is not shipped_deployment]
    control_plane.kubectl("apply", "--server-side", "--filename=-", input=listed(*objects))
    (shipped,) = (item["data"]["config.yaml"] for item in objects if item["kind"] == "ConfigMap")
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "stowplan-scheduler")
    address = control_plane.allocate_address()
    port = free_port(address)
    configuration = folder / "config.yaml"
    # In a pod the credentials are found automatically; nothing else is changed.
    connection = {"clientConnection": {"kubeconfig": str(kubeconfig)}}
    configuration.write_text(yaml.safe_dump(yaml.safe_load(shipped) | connection))
    binary = str(provide_binaries(ProgressLine())["kube-scheduler"])
    (container,) = shipped_deployment["spec"]["template"]["spec"]["containers"]
    flags = [flag for flag in container["command"] if "$(NAMESPACE)" in flag]
    pki = control_plane.directory / "pki"
    command = [
        binary,
        f"--config={configuration}",
        *(flag.replace("$(NAMESPACE)", namespace) for flag in flags),
        f"--bind-address={address}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki / 'component.crt'}",
        f"--tls-private-key-file={pki / 'component.key'}",
    ]
    process = Process("second-scheduler", command, directory=folder)
    process.start()
    try:
        yield process
        process.check()
    finally:
        process.stop()
