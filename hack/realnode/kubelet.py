"""Paths, credentials, configurations and command lines of the node: containerd, kubelet and kube-proxy."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hack.controlplane.certificates import Authority, ClusterEndpoint, KeyPair, write_certificate_kubeconfig
from hack.realnode.image import SANDBOX
from hack.realnode.network import ADDRESS, PODS
from hack.realnode.prepared import NodePreparation
from hack.realnode.prerequisites import CNI_PLUGINS, PATH

NODE: Final = "real"
"""The name of the node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KubeletFiles:
    """Files of one node, and what was prepared for it."""

    prepared: NodePreparation
    directory: Path
    """The directory of all files that the node writes."""

    pki: Path
    """The keys of the control plane and of the node."""

    @property
    def socket(self) -> Path:
        """The socket of containerd."""
        return self.directory / "containerd.sock"


def write_identity(pki: Path, *, server: str) -> None:
    """Write them next to the keys of the control plane, issued by its CA."""
    pair = KeyPair.read(pki, "ca")
    authority, cluster = Authority(pair), ClusterEndpoint(server=server, authority=pair.certificate)
    authority.server(f"system:node:{NODE}", names=(ADDRESS, NODE)).write(pki, "kubelet")
    users = {
        "kubelet": authority.client(f"system:node:{NODE}", groups=("system:nodes",)),
        "kube-proxy": authority.client("system:kube-proxy"),
    }
    for name, user in users.items():
        write_certificate_kubeconfig(pki / f"{name}.kubeconfig", cluster, pair=user)


METRICS_ADDRESS: Final = "127.0.0.1:1338"

_UNUSED: Final = (
    "io.containerd.internal.v1.opt",  # would create a directory in /opt
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
)


def containerd_configuration(layout: KubeletFiles) -> str:
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


def cni_configuration(layout: KubeletFiles) -> str:
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


HEALTH = {"kubelet": "http://127.0.0.1:10248/healthz", "kube-proxy": f"http://{ADDRESS}:10256/livez"}
"""Health endpoints of both programs."""


def kubelet_configuration(layout: KubeletFiles) -> str:
    """Return a KubeletConfiguration (JSON is YAML)."""
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "podLogsDir": str(layout.directory / "logs"),
        "volumePluginDir": str(layout.directory / "volume-plugins"),
        # Pods are in a cgroup of this run, and the machine's resources are not partitioned.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.prepared.cgroup}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "protectKernelDefaults": True,
        # The machine's disk usage must not cause evictions or image deletions.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        # No names are resolved: Services are reached by cluster IP.
        "resolvConf": "",
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
    }
    return json.dumps(document, indent=2)


def kubelet_command(layout: KubeletFiles) -> list[str]:
    """Return the command line of kubelet."""
    flags = {
        "config": str(layout.directory / "kubelet.json"),
        "kubeconfig": str(layout.pki / "kubelet.kubeconfig"),
        "hostname-override": NODE,
        "node-ip": ADDRESS,
        "root-dir": str(layout.directory / "kubelet"),
        "cert-dir": str(layout.directory / "kubelet-pki"),
    }
    return _command(layout, "kubelet", flags)


def proxy_command(layout: KubeletFiles) -> list[str]:
    """Return the command line of kube-proxy; connection tracking keeps the machine's settings."""
    flags = {
        "kubeconfig": str(layout.pki / "kube-proxy.kubeconfig"),
        "hostname-override": NODE,
        "proxy-mode": "nftables",
        "healthz-bind-address": f"{ADDRESS}:10256",
        "metrics-bind-address": "127.0.0.1:10249",
        "conntrack-max-per-core": "0",
        "conntrack-min": "0",
        "conntrack-tcp-timeout-established": "0s",
        "conntrack-tcp-timeout-close-wait": "0s",
    }
    return _command(layout, "kube-proxy", flags)


def _command(layout: KubeletFiles, name: str, flags: dict[str, str]) -> list[str]:
    return [str(layout.prepared.program(name)), *(f"--{flag}={value}" for flag, value in flags.items())]
