"""The real HorizontalPodAutoscaler reads the metrics through the aggregation layer, and holds without them.

The tests use their own control plane without the controller, so that decisions are what a test writes.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import ssl
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from support.polling import wait_for

from hack.controlplane import ControlPlane
from hack.controlplane.certificates import Authority
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane.certificates import KeyPair

pytestmark = pytest.mark.controlplane

SYSTEM = "stowplan-system"
SERVICE = f"stowplan-apiserver.{SYSTEM}.svc"
API = "/apis/external.metrics.k8s.io/v1beta1"
HERE = "--namespace=default"
PATIENCE = "--timeout=60s"


class Cluster:
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield a control plane with the metrics API alone."""
    authority = Authority.create("test")
    with ControlPlane(scheduler=False, kwok=False) as control_plane:
        provide_certificate(control_plane, authority)
        installation = Installation(control_plane)
        try:
            installation.start(without=frozenset({"controller", "webhooks"}))
            for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
                control_plane.kubectl("delete", kind, "--all")
            yield Cluster(control_plane, installation, authority.pair.certificate)
        finally:
            installation.stop()


def provide_certificate(control_plane: ControlPlane, authority: Authority) -> None:
    """Issue the serving certificate and publish its CA in place of the controller."""
    pair: KeyPair = authority.server("stowplan-apiserver", names=(SERVICE,))
    control_plane.kubectl("create", "namespace", SYSTEM)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "stowplan-apiserver-certificate", "namespace": SYSTEM},
        "data": {"tls.crt": encoded(pair.certificate), "tls.key": encoded(pair.key)},
    }
    # The field manager is not one that applies the manifests, which do not contain the data.
    control_plane.kubectl("create", "--filename=-", input=json.dumps(secret))
    service = {"namespace": SYSTEM, "name": "stowplan-apiserver", "port": 9443}
    api_service: dict[str, Any] = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": service,
            "caBundle": encoded(authority.pair.certificate),
        },
    }
    manager = "--field-manager=stowplan-certificates"
    control_plane.kubectl("apply", "--server-side", manager, "--filename=-", input=json.dumps(api_service))


def encoded(content: bytes) -> str:
    """Return bytes in base64, as JSON contains them."""
    return base64.b64encode(content).decode()


def test_the_hpa_follows_decisions_up_by_one_and_down_to_zero(cluster: Cluster) -> None:
    """The HPA scales up, up by one replica of twenty, and down to zero, each within a few seconds."""
    cluster.variant("follow")
    cluster.decide("follow", 20)
    cluster.autoscaled("follow")
    for replicas in (20, 21, 3, 0):
        cluster.decide("follow", replicas)
        cluster.wait_for_replicas("follow", replicas)


def test_kubectl_reads_the_same_metric(cluster: Cluster) -> None:
    """`kubectl get --raw` goes through the aggregation layer; `api-resources` lists the group."""
    cluster.variant("seen")
    cluster.decide("seen", 4)
    cluster.wait_for_value("seen", '"value":"4"')
    listed = cluster.kubectl("api-resources", "--api-group=external.metrics.k8s.io").stdout

    assert "externalmetrics" in listed


def test_an_unknown_decision_is_an_error_and_the_hpa_keeps_the_replicas(cluster: Cluster) -> None:
    """For a decision that is too old, kubectl and the HPA get its age and the limit."""
    cluster.variant("stale")
    cluster.wait_for_value("stale", "(ServiceUnavailable): wva_desired_replicas is currently not available")
    cluster.decide("stale", 5)
    cluster.autoscaled("stale")
    cluster.wait_for_replicas("stale", 5)
    cluster.decide("stale", 0, age_seconds=300)
    cluster.wait_for_value("stale", "s old, and the limit is 180 s")
    wait_until_held(cluster, "stale")

    assert replicas_of(cluster, "stale") == "5"
    assert "the limit is 180 s" in held_message(cluster, "stale")


def test_the_hpa_keeps_the_replicas_while_the_metrics_api_is_down(cluster: Cluster) -> None:
    """After the process was killed and started again, the HPA follows new decisions."""
    cluster.variant("away")
    cluster.decide("away", 4)
    cluster.autoscaled("away")
    cluster.wait_for_replicas("away", 4)
    process = cluster.installation.processes["apiserver"]
    process.stop(patience_seconds=0)
    wait_until_held(cluster, "away")
    held = replicas_of(cluster, "away")
    cluster.decide("away", 6)
    cluster.installation.start_component("apiserver")
    cluster.wait_for_replicas("away", 6)

    assert held == "4"


@pytest.mark.parametrize("path", ["/apis", f"{API}/namespaces/default/wva_desired_replicas"])
def test_requests_without_the_front_proxys_certificate_are_rejected(cluster: Cluster, path: str) -> None:
    """A direct request to the process is rejected, whatever user its headers name."""
    address = cluster.installation.address("apiserver")
    request = urllib.request.Request(
        f"https://{address}:9443{path}",
        headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters"},
    )
    context = ssl.create_default_context(cadata=cluster.authority.decode())
    context.check_hostname = False  # it is called by its address here
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, context=context)  # noqa: S310 (the address is from this test)
    with refusal.value as answer:
        status = json.load(answer)

    assert (status["code"], status["reason"]) == (401, "Unauthorized")


def wait_until_held(cluster: Cluster, name: str) -> None:
    """Wait until the HPA reports that it has no metric."""
    condition = "--for=condition=ScalingActive=False"
    cluster.kubectl("wait", condition, f"horizontalpodautoscaler/{name}", HERE, PATIENCE)


def held_message(cluster: Cluster, name: str) -> str:
    """Return the HPA's message about its missing metric."""
    path = '{.status.conditions[?(@.type=="ScalingActive")].message}'
    command = ("get", "horizontalpodautoscaler", name, HERE, f"--output=jsonpath={path}")
    return cluster.kubectl(*command).stdout


def replicas_of(cluster: Cluster, name: str) -> str:
    """Return the replicas in the spec of a Deployment."""
    return cluster.kubectl("get", "deployment", name, HERE, "--output=jsonpath={.spec.replicas}").stdout
