"""Runs the controller of Models, with the permissions in its manifests."""

from __future__ import annotations

from typing import Any, Final

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.process import Probe, Process, wait_until_ready
from hack.installation.installation import NAMESPACE, process_of
from hack.installation.manifests import ROOT, documents

_ACCOUNT: Final = "stowplan-models"
_HEALTH_PORT: Final = 8081
_PATIENCE_SECONDS: Final = 60.0


def start_models(control_plane: ControlPlane, *folders: str, **settings: Any) -> Process:
    """Apply `manifests/models` without its Deployment, and other folders of `manifests`; start the process.

    `settings` are added to its configuration. Raises ControlPlaneError with the tail of the log if it does
    not become ready.
    """
    for folder in ("models", *folders):
        rendered = control_plane.kubectl("kustomize", str(ROOT / "manifests" / folder)).stdout
        kept = [
            item for item in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if item["kind"] != "Deployment"
        ]
        apply = ("apply", "--server-side", "--field-manager=stowplan", "--filename=-")
        control_plane.kubectl(*apply, input=documents(kept))
    address = control_plane.allocate_address()
    document = {
        "podNetworks": [control_plane.pod_cidr],
        "serving": {"bindAddress": address, "logFormat": "json", "drainSeconds": 1},
        "cluster": {"kubeconfig": str(control_plane.service_account_kubeconfig(NAMESPACE, _ACCOUNT))},
        **settings,
    }
    path = control_plane.directory / "models.yaml"
    started = process_of("models", document, path, log="stowplan-models")
    started.start()
    probe = Probe(url=f"http://{address}:{_HEALTH_PORT}/readyz")
    wait_until_ready(started, probe, patience_seconds=_PATIENCE_SECONDS)
    return started
