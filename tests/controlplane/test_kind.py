"""The configuration and steps of `make kind`, as far as they can be tested without a container engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from hack.controlplane.binaries import provide_module
from hack.controlplane.progress import ProgressLine
from hack.kind.steps import CLUSTER, CONFIGURATION, ENGINES, KIND, Programs, up
from hack.packaging.programs import KUBECTL
from hack.packaging.rendering import render

pytestmark = pytest.mark.controlplane


def created(folder: Path, configuration: Path) -> str:
    """Return the error of kind when it creates a cluster without a container engine."""
    kind = provide_module(KIND, ProgressLine())["kind"]
    finished = subprocess.run(
        [kind, "create", "cluster", f"--config={configuration}"],
        env={"HOME": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode != 0
    return finished.stderr


def test_kind_reads_the_configuration(tmp_path: Path) -> None:
    """Only the engine is missing; a configuration with a misspelled field is rejected before that."""
    wrong = tmp_path / "wrong.yaml"
    shipped = CONFIGURATION.read_text(encoding="utf-8")
    wrong.write_text(shipped.replace("role: worker", "rule: worker"), encoding="utf-8")

    assert "failed to get docker info" in created(tmp_path, CONFIGURATION)
    assert "field rule not found in type v1alpha4.Node" in created(tmp_path, wrong)
    assert yaml.safe_load(shipped)["name"] == CLUSTER


@pytest.mark.parametrize("engine", ENGINES)
def test_every_file_that_the_steps_use_exists(engine: str) -> None:
    """The directories can be rendered, and the loaded image is the one that the pods use."""
    kubectl = provide_module(KUBECTL, ProgressLine())["kubectl"]
    steps = list(up(Programs(kind=Path("kind"), kubectl=kubectl, engine=engine), Path("image.tar")))
    options = [argument.partition("=") for command in steps for argument in command]
    folders = [Path(value) for option, _, value in options if option == "--kustomize"]
    files = [Path(value) for option, _, value in options if option == "--filename"]
    (saved,) = (command[-1] for command in steps if command[:2] == [engine, "save"])
    containers = [
        container
        for folder in folders
        for item in yaml.safe_load_all(render(kubectl, folder))
        if item["kind"] == "Deployment"
        for container in item["spec"]["template"]["spec"]["containers"]
    ]

    assert {f"docker.io/library/{container['image']}" for container in containers} == {saved}
    assert files
    assert all(path.exists() for path in files)
