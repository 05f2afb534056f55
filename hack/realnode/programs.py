"""Programs of the node that are built from source; Debian packages provide the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from hack.controlplane.binaries import provide_module
from hack.controlplane.modules import KUBERNETES, Binary, GoModule
from hack.controlplane.progress import ProgressLine

_CONTAINERD_MODULE: Final = "github.com/containerd/containerd/v2"

KUBERNETES_NODE: Final = replace(
    KUBERNETES,
    binaries=tuple(
        Binary(name=name, package=f"k8s.io/kubernetes/cmd/{name}", requirement="k8s.io/kubernetes")
        for name in ("kubelet", "kube-proxy")
    ),
    usual_minutes=3,
)
"""The same version as the control plane, from the same `go.mod`."""

CONTAINERD: Final = GoModule(
    folder=Path(__file__).with_name("containerd"),
    binaries=tuple(
        Binary(
            name=name,
            package=f"{_CONTAINERD_MODULE}/cmd/{name}",
            requirement=_CONTAINERD_MODULE,
            version_arguments=("-v",),
        )
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    ),
    linker_flags=f"-s -w -X {_CONTAINERD_MODULE}/version.Version=v{{version}}",
    usual_minutes=2,
)
"""Debian's containerd is too old for this kubelet."""


def provide_programs(progress: ProgressLine) -> dict[str, Path]:
    """Return the node's programs by name, building those that are missing.

    Raises ToolchainMissingError or BuildFailedError.
    """
    return provide_module(KUBERNETES_NODE, progress) | provide_module(CONTAINERD, progress)
