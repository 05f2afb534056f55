"""Configuration and command lines of kubelet and kube-proxy."""

from __future__ import annotations

import json

from hack.realnode.layout import NODE, NodeLayout
from hack.realnode.network import ADDRESS

HEALTH = {"kubelet": "http://127.0.0.1:10248/healthz", "kube-proxy": f"http://{ADDRESS}:10256/livez"}
"""Health endpoints of both programs."""


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


def kubelet_command(layout: NodeLayout) -> list[str]:
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


def proxy_command(layout: NodeLayout) -> list[str]:
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


def _command(layout: NodeLayout, name: str, flags: dict[str, str]) -> list[str]:
    return [str(layout.prepared.program(name)), *(f"--{flag}={value}" for flag, value in flags.items())]
