"""Preparations that need the machine's network, made before the namespaces and passed on to the command.

Some programs of the node are built from source; Debian packages provide the others.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import msgspec

from hack.controlplane.binaries import provide_module
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.modules import KUBERNETES, Binary, GoModule
from hack.controlplane.progress import ProgressLine
from hack.realnode.image import ArchiveImage, provide_images
from hack.realnode.prerequisites import require

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


_VARIABLE: Final = "STOWPLAN_REAL_NODE"


class NodePreparation(msgspec.Struct, frozen=True, kw_only=True):
    """Programs, images and the cgroup of a node."""

    programs: dict[str, str]
    images: tuple[ArchiveImage, ...]
    cgroup: str
    """Name of a cgroup in every hierarchy, the parent of the pods' cgroups."""

    @classmethod
    def make(cls, progress: ProgressLine, *, cgroup: str) -> Self:
        """Install, build and download what is missing. Raises ControlPlaneError if that is impossible."""
        require(progress)
        programs = {name: str(path) for name, path in provide_programs(progress).items()}
        return cls(programs=programs, images=provide_images(progress), cgroup=cgroup)

    @classmethod
    def handed_over(cls) -> Self:
        """Return what was prepared for this process. Raises ControlPlaneError if nothing was."""
        text = os.environ.get(_VARIABLE)
        if text is None:
            raise ControlPlaneError("a real node needs namespaces of its own: run `make e2e`")
        return msgspec.json.decode(text, type=cls)

    def environment(self) -> dict[str, str]:
        """Return the environment variable that passes this on to a child process."""
        return {_VARIABLE: msgspec.json.encode(self).decode()}

    def program(self, name: str) -> Path:
        """Return the path of a program."""
        return Path(self.programs[name])


def is_handed_over() -> bool:
    """Tell whether this process runs in namespaces where a node can run."""
    return _VARIABLE in os.environ
