"""Self-contained kubeconfig files, which can be copied."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from hack.controlplane.certificates import KeyPair, write_secret


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """The URL of a cluster's API server and the CA that authenticates it."""

    server: str
    """Such as `https://127.64.128.2:6443`."""

    authority: bytes
    """Certificate of the CA that issued the server's certificate, as PEM."""


def write_certificate_kubeconfig(path: Path, cluster: Cluster, *, pair: KeyPair) -> None:
    """Write a kubeconfig (JSON is YAML) for a client with a certificate."""
    user = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    write_secret(path, _document(cluster, user=user, namespace="default"))


def write_token_kubeconfig(path: Path, cluster: Cluster, *, token: str, namespace: str) -> None:
    """Write a kubeconfig for a client with a bearer token and a default namespace."""
    write_secret(path, _document(cluster, user={"token": token}, namespace=namespace))


def _document(cluster: Cluster, *, user: dict[str, str], namespace: str) -> bytes:
    name = "stowplan"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": cluster.server,
                    "certificate-authority-data": _base64(cluster.authority),
                },
            }
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
    }
    return json.dumps(document, indent=2).encode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
