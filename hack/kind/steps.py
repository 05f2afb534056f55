"""The commands that create the cluster, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.controlplane.modules import Binary, GoModule
from hack.realnode.image import ROOT, shipped_reference

KIND: Final = GoModule(
    folder=Path(__file__).parent,
    binaries=(Binary(name="kind", package="sigs.k8s.io/kind", requirement="sigs.k8s.io/kind"),),
    linker_flags="-s -w",
    usual_minutes=1,
)
ENGINES: Final = ("docker", "podman")
"""In order of preference."""

CONFIGURATION: Final = Path(__file__).with_name("cluster.yaml")
CLUSTER: Final = "stowplan"

_PATIENCE: Final = "180s"
_HERE: Final = "--namespace=stowplan-system"


@dataclass(frozen=True, kw_only=True, slots=True)
class Programs:
    """The programs that the commands run."""

    kind: Path
    kubectl: Path
    engine: str
    """Name of one of the engines."""


def up(programs: Programs, archive: Path) -> Iterator[list[str]]:
    """Yield the commands that create the cluster, load the image, install, and add the demo's objects."""
    image = f"docker.io/library/{shipped_reference()}"  # the full name of an image without a registry
    yield [str(programs.kind), "create", "cluster", f"--config={CONFIGURATION}", f"--wait={_PATIENCE}"]
    yield [programs.engine, "build", f"--tag={image}", str(ROOT)]
    yield [programs.engine, "save", f"--output={archive}", image]
    yield [str(programs.kind), "load", "image-archive", str(archive), f"--name={CLUSTER}"]
    kubectl = [str(programs.kubectl), f"--context=kind-{CLUSTER}"]
    manifests = ROOT / "manifests"
    apply = [*kubectl, "apply", "--server-side", "--field-manager=stowplan"]
    yield [*apply, f"--kustomize={manifests / 'overlays/every-kind'}"]
    yield [*kubectl, "rollout", "status", "deployment", _HERE, f"--timeout={_PATIENCE}"]
    yield [*apply, f"--kustomize={manifests / 'external-metrics'}"]
    claim = "apiservice/v1beta1.external.metrics.k8s.io"
    yield [*kubectl, "wait", "--for=condition=Available", claim, f"--timeout={_PATIENCE}"]
    demo = manifests / "samples" / "demo"
    # As another manager: the manifests contain no prices, so applying them again would remove these.
    data = [*kubectl, "apply", "--server-side"]
    yield [*data, f"--filename={demo / 'settings.yaml'}"]  # contains the namespace
    yield [*data, f"--filename={demo}"]
    yield [*kubectl, "get", "variantautoscalings", "--namespace=demo"]


def down(programs: Programs) -> Iterator[list[str]]:
    """Yield the commands that delete the cluster."""
    yield [str(programs.kind), "delete", "cluster", f"--name={CLUSTER}"]
