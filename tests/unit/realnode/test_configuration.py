"""Configuration of the programs of a real node, and the contents of the image."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from hack.controlplane.modules import GoModule
from hack.realnode.image import ROOT, SANDBOX, base_reference, shipped_reference
from hack.realnode.kubelet import (
    KubeletFiles,
    cni_configuration,
    containerd_configuration,
    kubelet_command,
    kubelet_configuration,
    proxy_command,
)
from hack.realnode.prepared import CONTAINERD, KUBERNETES_NODE, NodePreparation
from hack.realnode.prerequisites import SUITE

PROGRAMS = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr")


@pytest.fixture
def layout(tmp_path: Path) -> KubeletFiles:
    """Return the layout of a node that is not started."""
    programs = {name: f"/programs/{name}" for name in PROGRAMS}
    prepared = NodePreparation(programs=programs, images=(), cgroup="stowplan-7")
    return KubeletFiles(prepared=prepared, directory=tmp_path, pki=tmp_path / "pki")


def test_the_configuration_of_containerd_is_valid_toml(layout: KubeletFiles) -> None:
    """It has nested tables and keys that contain dots."""
    document = tomllib.loads(containerd_configuration(layout))

    plugins = document["plugins"]
    runtime = plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]["runc"]
    assert document["version"] == 3
    assert plugins["io.containerd.cri.v1.images"]["pinned_images"] == {"sandbox": SANDBOX}
    assert runtime["runtime_path"] == "/programs/containerd-shim-runc-v2"
    assert runtime["options"]["SystemdCgroup"] is False


def test_the_nodes_programs_write_only_to_its_folder(layout: KubeletFiles) -> None:
    """The default folders of kubelet and containerd belong to the machine."""
    kubelet = json.loads(kubelet_configuration(layout))
    network = json.loads(cni_configuration(layout))["plugins"][0]["ipam"]["dataDir"]
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in kubelet_command(layout)[1:])

    written = [
        network,
        kubelet["podLogsDir"],
        kubelet["volumePluginDir"],
        flags["root-dir"],
        flags["cert-dir"],
    ]

    assert [path for path in written if not path.startswith(str(layout.directory))] == []
    assert kubelet["cgroupRoot"] == "/stowplan-7"


def test_the_node_does_not_change_the_machines_kernel_settings(layout: KubeletFiles) -> None:
    """Connection tracking and memory settings would affect the whole machine."""
    assert json.loads(kubelet_configuration(layout))["protectKernelDefaults"] is True
    assert {"--conntrack-max-per-core=0", "--conntrack-min=0"} <= set(proxy_command(layout))


def test_the_preparation_is_passed_to_a_child_process(
    monkeypatch: pytest.MonkeyPatch, layout: KubeletFiles
) -> None:
    """It is passed through an environment variable."""
    for name, value in layout.prepared.environment().items():
        monkeypatch.setenv(name, value)

    assert NodePreparation.handed_over() == layout.prepared


def test_the_dockerfile_and_the_packages_have_the_same_debian_release() -> None:
    """The base image of both stages is of the release from which packages are installed."""
    assert base_reference().endswith(SUITE)
    assert shipped_reference().startswith("stowplan:")


def test_only_locked_packages_are_installed_in_the_image() -> None:
    """Every installation checks hashes or installs the wheel that was just built."""
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    installations = re.findall(r"pip (?:--python \S+ )?install [^&\n]*", steps)

    assert len(installations) == 3
    assert [
        line for line in installations if "--require-hashes" not in line and "--no-index" not in line
    ] == []


@pytest.mark.parametrize("module", [KUBERNETES_NODE, CONTAINERD], ids=lambda module: module.folder.name)
def test_every_program_has_a_pinned_version(module: GoModule) -> None:
    """It is the version that go.mod requires."""
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", module.version(binary)) for binary in module.binaries)
