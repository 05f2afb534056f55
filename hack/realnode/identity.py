"""Credentials of the node: its serving certificate, and the kubeconfigs of kubelet and kube-proxy."""

from __future__ import annotations

from pathlib import Path

from hack.controlplane.certificates import Authority, KeyPair
from hack.controlplane.kubeconfig import Cluster, write_certificate_kubeconfig
from hack.realnode.layout import NODE
from hack.realnode.network import ADDRESS


def write_identity(pki: Path, *, server: str) -> None:
    """Write them next to the keys of the control plane, issued by its CA."""
    pair = KeyPair.read(pki, "ca")
    authority, cluster = Authority(pair), Cluster(server=server, authority=pair.certificate)
    authority.server(f"system:node:{NODE}", names=(ADDRESS, NODE)).write(pki, "kubelet")
    users = {
        "kubelet": authority.client(f"system:node:{NODE}", groups=("system:nodes",)),
        "kube-proxy": authority.client("system:kube-proxy"),
    }
    for name, user in users.items():
        write_certificate_kubeconfig(pki / f"{name}.kubeconfig", cluster, pair=user)
