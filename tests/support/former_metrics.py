"""A previous owner of external.metrics.k8s.io: an adapter that answers discovery but has no metrics."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hack.controlplane import ControlPlane
from hack.installation.manifests import documents
from support.certified import issued

API = "external.metrics.k8s.io/v1beta1"
CLAIM = "v1beta1.external.metrics.k8s.io"
PORT = 6443
_PLACE = {"namespace": "former", "name": "former-adapter"}


class _Answer(BaseHTTPRequestHandler):
    """Serves the empty list of resources."""

    def do_GET(self) -> None:
        """Answer discovery and nothing else."""
        found = self.path.split("?")[0] == f"/apis/{API}"
        kind = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API, "resources": []}
        body = json.dumps(kind if found else {}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def manifests(address: str) -> list[dict[str, Any]]:
    """Return the manifests of its installation; its Service refers to a loopback address."""
    service = {"type": "ExternalName", "externalName": address, "ports": [{"port": PORT}]}
    spec = {
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 200,
        "versionPriority": 50,
        "insecureSkipTLSVerify": True,
        "service": _PLACE | {"port": PORT},
    }
    labels = {"app.kubernetes.io/part-of": "former", "app.kubernetes.io/name": "adapter"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _PLACE["namespace"]}},
        {"apiVersion": "v1", "kind": "Service", "metadata": _PLACE, "spec": service},
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": CLAIM, "labels": labels},
            "spec": spec,
        },
    ]


@contextmanager
def former_adapter(plane: ControlPlane) -> Iterator[None]:
    """Install it, and serve until the block ends."""
    address = plane.allocate_address()
    server = ThreadingHTTPServer((address, PORT), _Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*issued("former").write(plane.directory / "former"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name="former-adapter", daemon=True)
    thread.start()
    try:
        applied = documents(manifests(address))
        plane.kubectl("apply", "--server-side", "--field-manager=helm", "--filename=-", input=applied)
        plane.kubectl("wait", "--for=condition=Available", f"apiservice/{CLAIM}", "--timeout=60s")
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
