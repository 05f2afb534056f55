"""The real HorizontalPodAutoscaler reads the metrics through the aggregation layer, and holds without them.

The tests use their own control plane without the controller, so that decisions are what a test writes.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from support.metrics_stage import (
    API,
    HERE,
    PATIENCE,
    SYSTEM,
    MetricsStage,
    provide_certificate,
    reader_of_decisions,
)
from support.polling import wait_for

from hack.controlplane import ControlPlane
from hack.controlplane.certificates import Authority
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def cluster() -> Iterator[MetricsStage]:
    """Yield a control plane with the metrics API alone."""
    authority = Authority.create("test")
    with ControlPlane(scheduler=False, kwok=False) as control_plane:
        control_plane.kubectl("create", "namespace", SYSTEM)
        provide_certificate(control_plane, authority)
        installation = Installation(control_plane)
        try:
            installation.start(without=frozenset({"controller", "webhooks"}))
            for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
                control_plane.kubectl("delete", kind, "--all")
            yield MetricsStage(control_plane, installation, authority.pair.certificate)
        finally:
            installation.stop()


def test_the_hpa_follows_decisions_up_by_one_and_down_to_zero(cluster: MetricsStage) -> None:
    """The HPA scales up, up by one replica of twenty, and down to zero, each within a few seconds."""
    cluster.variant("follow")
    cluster.decide("follow", 20)
    cluster.autoscaled("follow")
    for replicas in (20, 21, 3, 0):
        cluster.decide("follow", replicas)
        cluster.wait_for_replicas("follow", replicas)


def test_kubectl_reads_the_same_metric(cluster: MetricsStage) -> None:
    """`kubectl get --raw` goes through the aggregation layer; `api-resources` lists the group."""
    cluster.variant("seen")
    cluster.decide("seen", 4)
    cluster.wait_for_value("seen", '"value":"4"')
    listed = cluster.kubectl("api-resources", "--api-group=external.metrics.k8s.io").stdout

    assert "externalmetrics" in listed


def test_an_unknown_decision_is_an_error_and_the_hpa_keeps_the_replicas(cluster: MetricsStage) -> None:
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


def test_the_hpa_keeps_the_replicas_while_the_metrics_api_is_down(cluster: MetricsStage) -> None:
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
def test_requests_without_the_front_proxys_certificate_are_rejected(cluster: MetricsStage, path: str) -> None:
    """A direct request to the process is rejected, whatever user its headers name."""
    status = answer_of(cluster, path, {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"})

    assert (status["code"], status["reason"]) == (401, "Unauthorized")


def test_a_client_with_a_token_reads_what_its_user_may_read(cluster: MetricsStage) -> None:
    """This is how a `metrics-api` trigger of KEDA reads a decision without Prometheus."""
    cluster.variant("direct")
    cluster.decide("direct", 7)
    cluster.wait_for_value("direct", '"value":"7"')
    cluster.kubectl("create", "serviceaccount", "keda", HERE)
    token = cluster.kubectl("create", "token", "keda", HERE).stdout.strip()
    path = f"{API}/namespaces/default/wva_desired_replicas?labelSelector=variant_name%3Ddirect"
    bearer = {"Authorization": f"Bearer {token}"}

    refused = answer_of(cluster, path, bearer)
    cluster.apply(*reader_of_decisions("keda"))
    wait_for(lambda: "items" in answer_of(cluster, path, bearer), lambda: str(refused))

    assert (refused["code"], refused["reason"]) == (403, "Forbidden")
    assert "'system:serviceaccount:default:keda' must not get wva_desired_replicas" in refused["message"]
    assert answer_of(cluster, path, bearer)["items"][0]["value"] == "7"
    other = path.replace("namespaces/default", "namespaces/kube-system")
    assert answer_of(cluster, other, bearer)["reason"] == "Forbidden"
    assert answer_of(cluster, path, {"Authorization": f"Bearer {token}x"})["reason"] == "Unauthorized"


def answer_of(cluster: MetricsStage, path: str, headers: dict[str, str]) -> dict[str, Any]:
    """Return the decoded answer of the process to a direct request."""
    address = cluster.installation.address("apiserver")
    request = urllib.request.Request(f"https://{address}:9443{path}", headers=headers)
    context = ssl.create_default_context(cadata=cluster.authority.decode())
    context.check_hostname = False  # it is called by its address here
    try:
        with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310 (of this test)
            found: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            found = json.load(error)
    return found


def wait_until_held(cluster: MetricsStage, name: str) -> None:
    """Wait until the HPA reports that it has no metric."""
    condition = "--for=condition=ScalingActive=False"
    cluster.kubectl("wait", condition, f"horizontalpodautoscaler/{name}", HERE, PATIENCE)


def held_message(cluster: MetricsStage, name: str) -> str:
    """Return the HPA's message about its missing metric."""
    path = '{.status.conditions[?(@.type=="ScalingActive")].message}'
    command = ("get", "horizontalpodautoscaler", name, HERE, f"--output=jsonpath={path}")
    return cluster.kubectl(*command).stdout


def replicas_of(cluster: MetricsStage, name: str) -> str:
    """Return the replicas in the spec of a Deployment."""
    return cluster.kubectl("get", "deployment", name, HERE, "--output=jsonpath={.spec.replicas}").stdout
