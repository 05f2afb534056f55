"""What the node's programs are told, and what the image is built from."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from hack.realnode.containerd import cni_configuration, containerd_configuration
from hack.realnode.image import ROOT, SANDBOX, base_reference, shipped_reference
from hack.realnode.kubelet import kubelet_command, kubelet_configuration, proxy_command
from hack.realnode.layout import NodeLayout
from hack.realnode.prepared import Prepared
from hack.realnode.prerequisites import SUITE
from hack.realnode.programs import CONTAINERD, KUBERNETES_NODE

PROGRAMS = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr")


@pytest.fixture
def layout(tmp_path: Path) -> NodeLayout:
    """Lay out a node that nobody starts."""
    programs = {name: f"/programs/{name}" for name in PROGRAMS}
    prepared = Prepared(programs=programs, images=(), cgroup="stowplan-7")
    return NodeLayout(prepared=prepared, directory=tmp_path, pki=tmp_path / "pki")


def test_containerd_reads_what_is_written(layout: NodeLayout) -> None:
    """TOML that a parser takes, with tables in tables and names that have dots."""
    document = tomllib.loads(containerd_configuration(layout))

    plugins = document["plugins"]
    runtime = plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]["runc"]
    assert document["version"] == 3
    assert plugins["io.containerd.cri.v1.images"]["pinned_images"] == {"sandbox": SANDBOX}
    assert runtime["runtime_path"] == "/programs/containerd-shim-runc-v2"
    assert runtime["options"]["SystemdCgroup"] is False


def test_everything_that_is_written_is_in_the_nodes_folder(layout: NodeLayout) -> None:
    """A kubelet's and a runtime's usual places are the machine's own."""
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


def test_the_node_leaves_the_machines_kernel_settings_alone(layout: NodeLayout) -> None:
    """Neither connection tracking nor memory is set for everybody."""
    assert json.loads(kubelet_configuration(layout))["protectKernelDefaults"] is True
    assert {"--conntrack-max-per-core=0", "--conntrack-min=0"} <= set(proxy_command(layout))


def test_what_is_prepared_is_handed_over_whole(monkeypatch: pytest.MonkeyPatch, layout: NodeLayout) -> None:
    """Through the environment of a process."""
    for name, value in layout.prepared.environment().items():
        monkeypatch.setenv(name, value)

    assert Prepared.handed_over() == layout.prepared


def test_the_dockerfile_and_the_base_are_of_one_release() -> None:
    """The base of both stages has the Debian that the packages are from."""
    assert base_reference().endswith(SUITE)
    assert shipped_reference().startswith("stowplan:")


def test_only_locked_packages_get_into_the_image() -> None:
    """Every installation checks hashes, or takes what was just built."""
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    installations = re.findall(r"pip (?:--python \S+ )?install [^&\n]*", steps)

    assert len(installations) == 3
    assert [
        line for line in installations if "--require-hashes" not in line and "--no-index" not in line
    ] == []


@pytest.mark.parametrize("module", [KUBERNETES_NODE, CONTAINERD], ids=lambda module: module.folder.name)
def test_every_program_is_pinned(module: object) -> None:
    """With a version that go.mod requires."""
    assert module in (KUBERNETES_NODE, CONTAINERD)
    assert isinstance(module, type(CONTAINERD))
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", module.version(binary)) for binary in module.binaries)
