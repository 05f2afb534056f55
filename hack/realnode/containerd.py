"""Configuration of containerd and of its pod network."""

from __future__ import annotations

import json
import shutil
from typing import Any, Final

from hack.realnode.image import SANDBOX
from hack.realnode.layout import NodeLayout
from hack.realnode.network import PODS
from hack.realnode.prerequisites import CNI_PLUGINS, PATH

METRICS_ADDRESS: Final = "127.0.0.1:1338"

_UNUSED: Final = (
    "io.containerd.internal.v1.opt",  # would create a directory in /opt
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
)


def containerd_configuration(layout: NodeLayout) -> str:
    """Return containerd's configuration, version 3: runc, data in the node's directory, our sandbox image."""
    runtime = {
        "runtime_type": "io.containerd.runc.v2",
        "runtime_path": str(layout.prepared.program("containerd-shim-runc-v2")),
        "options": {"BinaryName": shutil.which("runc", path=PATH) or "runc", "SystemdCgroup": False},
    }
    document = {
        "version": 3,
        "root": str(layout.directory / "containerd"),
        "state": "/run/containerd",
        "disabled_plugins": list(_UNUSED),
        "metrics": {"address": METRICS_ADDRESS},
        "grpc": {"address": str(layout.socket)},
        "plugins": {
            "io.containerd.cri.v1.images": {"pinned_images": {"sandbox": SANDBOX}},
            "io.containerd.cri.v1.runtime": {
                # A process that may not lower its own OOM score cannot lower that of a container.
                "restrict_oom_score_adj": True,
                "containerd": {"default_runtime_name": "runc", "runtimes": {"runc": runtime}},
                "cni": {"bin_dirs": [str(CNI_PLUGINS)], "conf_dir": str(layout.directory / "cni")},
            },
        },
    }
    return _toml(document)


def cni_configuration(layout: NodeLayout) -> str:
    """Return the pod network: an interface pair and a route for each pod."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(layout.directory / "addresses"),
    }
    plugins = [{"type": "ptp", "ipam": addresses}]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}, indent=2)


def _toml(document: dict[str, Any], path: tuple[str, ...] = ()) -> str:
    """Return a document as TOML; JSON's strings, numbers, booleans and lists of strings are valid TOML."""
    own = [f"{key} = {json.dumps(value)}" for key, value in document.items() if not isinstance(value, dict)]
    head = [f"[{'.'.join(json.dumps(part) for part in path)}]"] if path else []
    inner = [_toml(value, (*path, key)) for key, value in document.items() if isinstance(value, dict)]
    return "\n".join([*head, *own, *inner])
