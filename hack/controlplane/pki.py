"""All keys, certificates and kubeconfigs of one instance's components."""

from __future__ import annotations

from pathlib import Path

from hack.controlplane.certificates import Authority, signing_key, write_secret
from hack.controlplane.kubeconfig import Cluster, write_certificate_kubeconfig

MASTERS = "system:masters"
"""The group with all permissions."""

PROXY_CLIENT = "front-proxy-client"
"""The common name with which kube-apiserver calls aggregated API servers."""

_SERVER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "localhost",
    "127.0.0.1",
    "10.96.0.1",  # the Service `kubernetes`
)


def write_pki(directory: Path, *, server: str, address: str) -> Cluster:
    """Write all files; `address` is that of the components, `server` the URL of kube-apiserver."""
    authority, proxy_authority = Authority.create("kubernetes"), Authority.create("front-proxy")
    authority.pair.write(directory, "ca")
    proxy_authority.pair.write(directory, "front-proxy-ca")
    authority.server("kube-apiserver", names=(*_SERVER_NAMES, address)).write(directory, "apiserver")
    authority.server("localhost", names=(address,)).write(directory, "component")
    proxy_authority.client(PROXY_CLIENT).write(directory, "front-proxy-client")
    authority.client("kube-apiserver", groups=(MASTERS,)).write(directory, "kubelet-client")
    private, public = signing_key()
    write_secret(directory / "service-account.key", private)
    (directory / "service-account.pub").write_bytes(public)
    cluster = Cluster(server=server, authority=authority.pair.certificate)
    _write_users(directory, authority, cluster)
    return cluster


def _write_users(directory: Path, authority: Authority, cluster: Cluster) -> None:
    users = {
        "admin": (MASTERS,),
        "kwok": (MASTERS,),  # simulates the kubelet of every node, which no default role allows
        "system:kube-controller-manager": (),
        "system:kube-scheduler": (),
    }
    for user, groups in users.items():
        name = user.removeprefix("system:")
        pair = authority.client(user, groups=groups)
        write_certificate_kubeconfig(directory / f"{name}.kubeconfig", cluster, pair=pair)
        if user == "admin":
            pair.write(directory, "admin")  # for the readiness probe
