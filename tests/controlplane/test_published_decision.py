"""The path from an applied manifest to a number that the aggregation layer serves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.manifests import deployment, listed, variant
from support.polling import wait_for

from hack.controlplane import ControlPlane
from hack.installation.manifests import EXTERNAL_METRICS, ROOT, registration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

API = "/apis/external.metrics.k8s.io/v1beta1"


def test_a_decision_is_served_with_its_labels(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """The response has one item, for the variant in the selector."""
    labels = {"inference.optimization/acceleratorName": "L4"}
    manifests = listed(
        deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat", labels=labels)
    )
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=manifests)
    control_plane.kubectl(
        "wait",
        "va/chat",
        f"--namespace={namespace}",
        "--for=jsonpath={.status.desiredOptimizedAlloc.numReplicas}=1",
        "--timeout=60s",
    )

    # The metrics API has its own watch: wait for its response as the HPA reads it, not for the status alone.
    path = f"{API}/namespaces/{namespace}/wva_desired_replicas?labelSelector=variant_name%3Dchat"

    def answered() -> str:
        finished = control_plane.kubectl("get", "--raw", path, check=False)
        assert finished.returncode == 0 or "it has no decision yet" in finished.stderr
        return finished.stdout

    (item,) = json.loads(wait_for(answered, "a decision"))["items"]

    assert item["value"] == "1"
    assert item["metricLabels"] == {
        "variant_name": "chat",
        "namespace": namespace,
        "exported_namespace": namespace,
        "accelerator_type": "L4",
        "model_id": "meta/llama-3.1-8b",
    }


def test_a_variant_without_a_target_has_no_metric(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """Missing data is an error and never a zero; a condition says that the target is missing."""
    control_plane.kubectl(
        "apply", f"--namespace={namespace}", "--filename=-", input=listed(variant("orphan"))
    )
    control_plane.kubectl(
        "wait",
        "va/orphan",
        f"--namespace={namespace}",
        "--for=condition=TargetResolved=False",
        "--timeout=60s",
    )
    path = f"{API}/namespaces/{namespace}/wva_desired_replicas?labelSelector=variant_name%3Dorphan"

    finished = control_plane.kubectl("get", "--raw", path, check=False)

    assert finished.returncode == 1
    assert "orphan" in finished.stderr
    assert finished.stdout == ""


@pytest.fixture(scope="module")
def fresh() -> Iterator[ControlPlane]:
    """Yield a control plane on which external metrics have no owner."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as started:
        yield started


@pytest.mark.parametrize("manager", ["keda", "kubectl"])
def test_the_metrics_api_of_another_owner_is_never_taken_over(fresh: ControlPlane, manager: str) -> None:
    """An apply without force conflicts, even if kubectl itself created the other APIService."""
    adapter = {"namespace": "keda", "name": "keda-operator-metrics-apiserver", "port": 443}
    foreign = registration(*EXTERNAL_METRICS, adapter, authorities=None)
    claim = ("apiservice", "v1beta1.external.metrics.k8s.io")
    fresh.kubectl(
        "apply", "--server-side", f"--field-manager={manager}", "--filename=-", input=json.dumps(foreign)
    )
    component = str(ROOT / "manifests" / "external-metrics")
    finished = fresh.kubectl(
        "apply", "--server-side", "--field-manager=stowplan", "--kustomize", component, check=False
    )
    owner = fresh.kubectl("get", *claim, "--output=jsonpath={.spec.service.name}").stdout
    fresh.kubectl("delete", *claim)

    assert finished.returncode == 1
    assert f'conflicts with "{manager}"' in finished.stderr
    assert owner == "keda-operator-metrics-apiserver"
