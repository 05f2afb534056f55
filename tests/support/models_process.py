"""The controller of Models as a process, with the rights that its manifests give."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.process import Process
from hack.controlplane.readiness import Probe, wait_until_ready
from hack.installation.manifests import ROOT

NAMESPACE = "stowplan-system"
ACCOUNT = "stowplan-models"
_PATIENCE_SECONDS = 60.0


@contextlib.contextmanager
def models_process(control_plane: ControlPlane, *folders: str, **settings: Any) -> Iterator[Process]:
    """Run it from now to the end of the block, with folders of `manifests` beside its own."""
    for folder in ("models", *folders):
        rendered = control_plane.kubectl("kustomize", str(ROOT / "manifests" / folder)).stdout
        kept = [item for item in yaml.safe_load_all(rendered) if item["kind"] != "Deployment"]
        control_plane.kubectl("apply", "--server-side", "--filename=-", input=yaml.safe_dump_all(kept))
    address = control_plane.allocate_address()
    document = {
        "serving": {"bindAddress": address, "logFormat": "json", "drainSeconds": 1},
        "cluster": {"kubeconfig": str(control_plane.service_account_kubeconfig(NAMESPACE, ACCOUNT))},
        **settings,
    }
    path = control_plane.directory / "models.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [sys.executable, "-m", "apiserver.cli", "models", "--config", str(path)]
    process = Process(ACCOUNT, command, directory=control_plane.directory)
    process.start()
    try:
        wait_until_ready(
            process, Probe(url=f"http://{address}:8081/readyz"), patience_seconds=_PATIENCE_SECONDS
        )
        yield process
    finally:
        process.stop(patience_seconds=20.0)
