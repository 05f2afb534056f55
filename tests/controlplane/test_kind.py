"""What `make kind` is made of, as far as it goes without a container engine: kind reads its configuration."""

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
    """Return what kind says when it is to make a cluster where no engine is to be found."""
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
    """It misses nothing but the engine; another one with a misspelt field it refuses before that."""
    wrong = tmp_path / "wrong.yaml"
    shipped = CONFIGURATION.read_text(encoding="utf-8")
    wrong.write_text(shipped.replace("role: worker", "rule: worker"), encoding="utf-8")

    assert "failed to get docker info" in created(tmp_path, CONFIGURATION)
    assert "field rule not found in type v1alpha4.Node" in created(tmp_path, wrong)
    assert yaml.safe_load(shipped)["name"] == CLUSTER


@pytest.mark.parametrize("engine", ENGINES)
def test_every_file_that_the_steps_name_is_there(engine: str) -> None:
    """Folders render, and the image that is loaded is the one that pods ask for."""
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
