"""The programs that packaging needs, found or built like those of the control plane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from hack.controlplane.modules import KUBERNETES, Binary, GoModule

KUBECTL: Final = replace(
    KUBERNETES,
    binaries=tuple(binary for binary in KUBERNETES.binaries if binary.name == "kubectl"),
    usual_minutes=2,
)
"""Renders kustomizations; the same build as for the control plane."""

HELM: Final = GoModule(
    folder=Path(__file__).with_name("helm"),
    binaries=(
        Binary(
            name="helm",
            package="helm.sh/helm/v4/cmd/helm",
            requirement="helm.sh/helm/v4",
            version_arguments=("version",),
        ),
    ),
    linker_flags="-s -w -X helm.sh/helm/v4/internal/version.version=v{version}",
    usual_minutes=4,
)
"""For tests of the chart; generating the chart does not need it."""

KUBECONFORM: Final = GoModule(
    folder=Path(__file__).with_name("kubeconform"),
    binaries=(
        Binary(
            name="kubeconform",
            package="github.com/yannh/kubeconform/cmd/kubeconform",
            requirement="github.com/yannh/kubeconform",
            version_arguments=("-v",),
        ),
    ),
    linker_flags="-s -w -X main.version=v{version}",
    usual_minutes=1,
)
"""For tests of the chart: validates rendered objects by JSON schemas."""
