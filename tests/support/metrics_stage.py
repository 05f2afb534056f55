"""A control plane with the metrics API, where decisions are what a test writes."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

from hack.installation.manifests import EXTERNAL_METRICS, registration
from support.polling import wait_for

if TYPE_CHECKING:
    import subprocess

    from hack.controlplane import ControlPlane
    from hack.controlplane.certificates import Authority, KeyPair
    from hack.installation import Installation

SYSTEM = "stowplan-system"
SERVICE = f"stowplan-apiserver.{SYSTEM}.svc"
API = "/apis/external.metrics.k8s.io/v1beta1"
HERE = "--namespace=default"
PATIENCE = "--timeout=60s"


class MetricsStage:
    """A control plane with the metrics API, and methods that write decisions."""

    def __init__(self, control_plane: ControlPlane, installation: Installation, authority: bytes) -> None:
        self.kubectl = control_plane.kubectl
        self.apply = control_plane.apply
        self.installation = installation
        self.authority = authority

    def decide(self, name: str, replicas: int, *, age_seconds: float = 0) -> None:
        """Write a decision to the status, as the controller does."""
        time = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age_seconds)
        decided = {
            "numReplicas": replicas,
            "lastRunTime": f"{time:%Y-%m-%dT%H:%M:%SZ}",
            "accelerator": "A100",
        }
        patch = json.dumps({"status": {"desiredOptimizedAlloc": decided}})
        command = (
            "patch",
            "variantautoscaling",
            name,
            "--subresource=status",
            "--type=merge",
            "--patch",
            patch,
        )
        self.kubectl(*command, HERE)

    def variant(self, name: str) -> None:
        """Create a VariantAutoscaling."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        self.apply(
            {
                "apiVersion": "llmd.ai/v1alpha2",
                "kind": "VariantAutoscaling",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"scaleTargetRef": target, "modelID": "meta/llama"},
            }
        )

    def autoscaled(self, name: str) -> None:
        """Create a Deployment of one replica and an HPA that follows the decision."""
        self.kubectl("create", "deployment", name, "--image=engine", HERE)
        metric = {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": name}}}
        external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}
        any_step = {"type": "Pods", "value": 100, "periodSeconds": 1}
        at_once = {"tolerance": "0", "stabilizationWindowSeconds": 0, "policies": [any_step]}
        self.apply(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                    "minReplicas": 0,
                    "maxReplicas": 50,
                    "behavior": {"scaleUp": at_once, "scaleDown": at_once},
                    "metrics": [{"type": "External", "external": external}],
                },
            }
        )

    def wait_for_replicas(self, name: str, replicas: int) -> None:
        """Wait until the HPA has set this number of replicas."""
        want = f"--for=jsonpath={{.spec.replicas}}={replicas}"
        self.kubectl("wait", want, f"deployment/{name}", HERE, PATIENCE)

    def wait_for_value(self, name: str, text: str) -> None:
        """Wait until the metrics API answers with this text, which shows that its cache has the decision."""
        selector = f"labelSelector=variant_name%3D{name}"

        def said() -> str:
            answer = self.raw(f"{API}/namespaces/default/wva_desired_replicas?{selector}")
            return answer.stdout + answer.stderr

        wait_for(lambda: text in said(), lambda: f"{text!r} in {said()}")

    def raw(self, path: str) -> subprocess.CompletedProcess[str]:
        """Read a path with kubectl, through the aggregation layer."""
        return self.kubectl("get", "--raw", path, check=False)


def provide_certificate(
    control_plane: ControlPlane, authority: Authority, *, addresses: tuple[str, ...] = ()
) -> None:
    """Issue the serving certificate and publish its CA in place of the controller.

    The certificate is also for `addresses`.
    """
    pair: KeyPair = authority.server("stowplan-apiserver", names=(SERVICE, *addresses))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "stowplan-apiserver-certificate", "namespace": SYSTEM},
        "data": {"tls.crt": encoded(pair.certificate), "tls.key": encoded(pair.key)},
    }
    service = {"namespace": SYSTEM, "name": "stowplan-apiserver", "port": 9443}
    api_service = registration(*EXTERNAL_METRICS, service, authorities=authority.pair.certificate)
    # The field manager is not one that applies the manifests, which do not contain the data.
    manager = "--field-manager=stowplan-certificates"
    for item in (secret, api_service):
        control_plane.kubectl("apply", "--server-side", manager, "--filename=-", input=json.dumps(item))


def encoded(content: bytes) -> str:
    """Return bytes in base64, as JSON contains them."""
    return base64.b64encode(content).decode()


def reader_of_decisions(account: str) -> tuple[Any, ...]:
    """Return the role and binding with which a service account reads decisions of its namespace."""
    metadata = {"name": "reads-decisions", "namespace": "default"}
    api = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["external.metrics.k8s.io"], "resources": ["wva_desired_replicas"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    role = {"apiGroup": api, "kind": "Role", "name": metadata["name"]}
    return (
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        },
    )
