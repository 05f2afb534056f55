"""Custom resource definitions of other projects, from the Go modules that `definitions/go.mod` pins."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

from hack.controlplane.build import find_go
from hack.controlplane.cache import cache_directory, hold_lock
from hack.controlplane.errors import BuildFailedError
from hack.controlplane.modules import GoModule

_PINS: Final = GoModule(
    folder=Path(__file__).parent / "definitions", binaries=(), linker_flags="", usual_minutes=1
)


class Definition(Enum):
    """A kind of another project, by its Go module and the file in it."""

    LEADER_WORKER_SETS = (
        "sigs.k8s.io/lws",
        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
    )
    HTTP_ROUTES = (
        "sigs.k8s.io/gateway-api",
        "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
    )
    EXPERIMENTAL_HTTP_ROUTES = (
        "sigs.k8s.io/gateway-api",
        "config/crd/experimental/gateway.networking.k8s.io_httproutes.yaml",
    )
    """With fields that the standard channel lacks so far, such as `retry`."""

    INFERENCE_POOLS = (
        "sigs.k8s.io/gateway-api-inference-extension",
        "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
    )
    INFERENCE_OBJECTIVES = (
        "sigs.k8s.io/gateway-api-inference-extension",
        "config/crd/bases/inference.networking.x-k8s.io_inferenceobjectives.yaml",
    )
    MODEL_REWRITES = (
        "sigs.k8s.io/gateway-api-inference-extension",
        "config/crd/bases/inference.networking.x-k8s.io_inferencemodelrewrites.yaml",
    )
    KTHENA_MODEL_ROUTES = (
        "github.com/volcano-sh/kthena",
        "charts/kthena/charts/networking/crds/networking.serving.volcano.sh_modelroutes.yaml",
    )
    KTHENA_MODEL_SERVERS = (
        "github.com/volcano-sh/kthena",
        "charts/kthena/charts/networking/crds/networking.serving.volcano.sh_modelservers.yaml",
    )
    KTHENA_AUTOSCALING_POLICIES = (
        "github.com/volcano-sh/kthena",
        "charts/kthena/charts/workload/crds/workload.serving.volcano.sh_autoscalingpolicies.yaml",
    )
    KTHENA_MODEL_BOOSTERS = (
        "github.com/volcano-sh/kthena",
        "charts/kthena/charts/workload/crds/workload.serving.volcano.sh_modelboosters.yaml",
    )
    POD_MONITORS = (
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
    )
    PROMETHEUS_RULES = (
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    )
    CERTIFICATES = (
        "github.com/cert-manager/cert-manager",
        "deploy/crds/cert-manager.io_certificates.yaml",
    )
    ISSUERS = (
        "github.com/cert-manager/cert-manager",
        "deploy/crds/cert-manager.io_issuers.yaml",
    )


def definition_file(definition: Definition) -> Path:
    """Return the manifest of a definition, downloading it if it is not on this machine.

    Raises ToolchainMissingError or BuildFailedError.
    """
    digest = hashlib.sha256((_PINS.folder / "go.sum").read_bytes())
    digest.update(repr([definition.value for definition in Definition]).encode())
    directory = cache_directory() / "definitions" / digest.hexdigest()[:12]
    with hold_lock(directory.with_name(f"{directory.name}.lock")):
        if not directory.exists():
            _download(directory)
    return _place(directory, definition)


def module_folders(pins: GoModule, modules: Sequence[str]) -> Mapping[str, Path]:
    """Return the folders with the sources of Go modules, downloading those that are not on this machine.

    Raises ToolchainMissingError or BuildFailedError.
    """
    finished = subprocess.run(
        [find_go(pins), "mod", "download", "-json", *modules],
        cwd=pins.folder,
        env=os.environ | {"GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise BuildFailedError(
            f"the modules of {pins.folder} could not be loaded; a first run needs the Go module proxy:\n"
            f"{finished.stdout}{finished.stderr}"
        )
    documents = finished.stdout.replace("}\n{", "},{")  # a sequence of documents becomes a list
    return {module["Path"]: Path(module["Dir"]) for module in json.loads(f"[{documents}]")}


def _place(directory: Path, definition: Definition) -> Path:
    return directory / f"{definition.name.lower()}.yaml"


def _download(directory: Path) -> None:
    """Create a directory with all definitions, atomically."""
    modules = sorted({definition.value[0] for definition in Definition})
    folders = module_folders(_PINS, modules)
    with tempfile.TemporaryDirectory(dir=directory.parent) as partial:
        whole = Path(partial, "whole")
        whole.mkdir()
        for definition in Definition:
            module, file = definition.value
            shutil.copyfile(folders[module] / file, _place(whole, definition))
        whole.replace(directory)
