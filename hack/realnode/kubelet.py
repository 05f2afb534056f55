"""The configuration and the command lines of kubelet and kube-proxy."""

from __future__ import annotations

import json

from hack.realnode.layout import NODE, NodeLayout
from hack.realnode.network import ADDRESS

HEALTH = {"kubelet": "http://127.0.0.1:10248/healthz", "kube-proxy": f"http://{ADDRESS}:10256/livez"}
"""Where each says whether it works."""


def kubelet_configuration(layout: NodeLayout) -> str:
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
        # Pods are counted below a cgroup of this run's own, and the machine is not divided up.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.prepared.cgroup}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "protectKernelDefaults": True,
        # How full the machine's disk is says nothing about the node: it evicts nobody and deletes no image.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        # Nothing here is called by a name: Services are reached by cluster address.
        "resolvConf": "",
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
    }
    return json.dumps(document, indent=2)


def kubelet_command(layout: NodeLayout) -> list[str]:
    """Return how kubelet is started."""
    flags = {
        "config": str(layout.directory / "kubelet.json"),
        "kubeconfig": str(layout.pki / "kubelet.kubeconfig"),
        "hostname-override": NODE,
        "node-ip": ADDRESS,
        "root-dir": str(layout.directory / "kubelet"),
        "cert-dir": str(layout.directory / "kubelet-pki"),
    }
    return _command(layout, "kubelet", flags)


def proxy_command(layout: NodeLayout) -> list[str]:
    """Return how kube-proxy is started; connection tracking keeps the machine's own settings."""
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


def _command(layout: NodeLayout, name: str, flags: dict[str, str]) -> list[str]:
    return [str(layout.prepared.program(name)), *(f"--{flag}={value}" for flag, value in flags.items())]
