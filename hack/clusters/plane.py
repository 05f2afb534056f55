"""A control plane for generated clusters: API server and scheduler, without kubelets and controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hack.clusters.generated import NAMESPACE
from hack.controlplane import ControlPlane

MANIFESTS: Final = Path(__file__).parents[2] / "manifests" / "scheduler"


@contextmanager
def cluster_plane() -> Iterator[ControlPlane]:
    """Run a control plane whose scheduler has the shipped profile in addition to the default one."""
    with ControlPlane(
        controller_manager=False, kwok=False, scheduler_profiles=MANIFESTS / "packed.yaml"
    ) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        started.kubectl("create", "serviceaccount", "default", f"--namespace={NAMESPACE}")
        started.kubectl("apply", f"--filename={MANIFESTS / 'priority-classes.yaml'}")
        yield started
