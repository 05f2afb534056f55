"""A Service of type ExternalName instead of a cluster IP: the API server dials its loopback address."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from hack.controlplane.certificates import Authority
from hack.installation.manifests import registration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

PORT = 9443


class Endpoint(BaseHTTPRequestHandler):
    """A server that rejects every admission request, and answers discovery with the client's identity."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Reject an admission request."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refusal = {
            "uid": review["request"]["uid"],
            "allowed": False,
            "status": {"message": "refused over loopback"},
        }
        self._answer({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": refusal})

    def do_GET(self) -> None:
        """Answer with the common name of the client certificate and the user in the request headers."""
        assert isinstance(self.connection, ssl.SSLSocket)
        certificate = self.connection.getpeercert() or {}
        subject = {pair[0][0]: pair[0][1] for pair in certificate.get("subject", ())}
        self._answer({"client": subject.get("commonName"), "user": self.headers["X-Remote-User"]})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as in the base class)
        """Write no access log."""

    def _answer(self, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def authority_certificate(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[bytes]:
    """Run an endpoint behind Service `rig` with a certificate for that name; yield its CA in PEM."""
    authority, address = Authority.create("rig"), control_plane.allocate_address()
    authority.server("rig", names=(f"rig.{namespace}.svc",)).write(tmp_path, "server")
    callers = control_plane.directory / "pki" / "front-proxy-ca.crt"
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(callers))
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    with ThreadingHTTPServer((address, PORT), Endpoint) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        control_plane.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "rig", "namespace": namespace},
                "spec": {"type": "ExternalName", "externalName": address},
            }
        )
        yield authority.pair.certificate
        server.shutdown()


def test_the_api_server_calls_a_webhook_through_an_external_name(
    control_plane: ControlPlane, namespace: str, authority_certificate: bytes
) -> None:
    """The rejection by a webhook behind the Service reaches the user, so TLS verified the Service's name."""
    service = {"name": "rig", "namespace": namespace, "port": PORT, "path": "/validate"}
    webhook = {
        "name": "rig.stowplan.dev",
        "clientConfig": {"service": service, "caBundle": base64.b64encode(authority_certificate).decode()},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [webhook],
    }
    control_plane.apply(configuration)
    create = ("create", "secret", "generic", "s", f"--namespace={namespace}", "--dry-run=server")
    answers = (control_plane.kubectl(*create, check=False).stderr for _ in range(50))
    refusal = next(filter(None, answers))  # the API server sees the webhook after a moment

    assert 'admission webhook "rig.stowplan.dev" denied the request: refused over loopback' in refusal
    control_plane.kubectl("delete", "validatingwebhookconfiguration", namespace)


def test_the_front_proxy_calls_an_aggregated_api_through_an_external_name(
    control_plane: ControlPlane, namespace: str, authority_certificate: bytes
) -> None:
    """The API server proxies a user's request with the front proxy's certificate and the user's name."""
    group = f"{namespace}.rig.stowplan.dev"
    service = {"name": "rig", "namespace": namespace, "port": PORT}
    control_plane.apply(registration(group, "v1", service, authorities=authority_certificate))
    control_plane.kubectl("wait", "--for=condition=Available", f"apiservice/v1.{group}", "--timeout=60s")
    caller = json.loads(control_plane.kubectl("get", "--raw", f"/apis/{group}/v1/anything").stdout)
    control_plane.kubectl("delete", "apiservice", f"v1.{group}")

    assert caller == {"client": "front-proxy-client", "user": "admin"}
