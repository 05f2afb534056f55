"""KEDA's own operator and metrics adapter follow decisions, read with a token and without Prometheus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.documents import example
from support.manifests import deployment
from support.metrics_stage import (
    HERE,
    SYSTEM,
    MetricsStage,
    provide_certificate,
)
from support.polling import wait_for

from hack.controlplane import ControlPlane
from hack.controlplane.certificates import Authority
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation import Installation
from hack.keda.running import Keda

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.keda

PRODUCT = "NVIDIA-L40S"
SETTINGS: dict[str, dict[str, Any]] = {
    "controller": {"planning": {"intervalSeconds": 1}, "annotated": True},
    "apiserver": {"annotated": True},
}


@pytest.fixture(scope="module")
def stage() -> Iterator[MetricsStage]:
    """Yield a control plane with both products, whose external metrics are KEDA's."""
    authority = Authority.create("test")
    with ControlPlane() as control_plane:
        control_plane.kubectl("create", "namespace", SYSTEM)
        create_nodes(control_plane, [KwokNode(name="node", accelerator=PRODUCT, accelerator_count=8)])
        installation = Installation(control_plane, settings=SETTINGS, components=("annotated",))
        try:
            installation.start(without=frozenset({"controller", "webhooks", "apiserver"}))
            for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
                control_plane.kubectl("delete", kind, "--all")
            provide_certificate(control_plane, authority, addresses=(installation.address("apiserver"),))
            installation.start_component("apiserver")
            with Keda(control_plane, authorities=authority.pair.certificate) as keda:
                keda.take_over()
                control_plane.apply(*documented("TriggerAuthentication", name="", address=""))
                yield MetricsStage(control_plane, installation, authority.pair.certificate)
        finally:
            installation.stop()


@pytest.fixture(scope="module")
def deciding(stage: MetricsStage) -> MetricsStage:
    """Return the stage with the controller, which decides instead of the tests."""
    stage.installation.start_component("controller")
    return stage


def documented(kind: str, *, name: str, address: str) -> list[dict[str, Any]]:
    """Return objects of the recipe in the documentation, for a variant of the namespace `default`."""
    text = example("docs/installing.md", kind).replace("llama-8b-l40s", name)
    text = text.replace("namespaces/chat", "namespaces/default").replace(
        "namespace: chat", "namespace: default"
    )
    return list(yaml.safe_load_all(text.replace("stowplan-apiserver.stowplan-system.svc", address)))


def scaled_object(stage: MetricsStage, name: str) -> None:
    """Create a Deployment, a VariantAutoscaling and the documented ScaledObject."""
    stage.kubectl("create", "deployment", name, "--image=engine", HERE)
    stage.variant(name)
    stage.apply(following(stage, name))


def following(stage: MetricsStage, name: str) -> dict[str, Any]:
    """Return the documented ScaledObject, at the pace of a test."""
    address = stage.installation.address("apiserver")
    (found,) = documented("ScaledObject", name=name, address=address)
    (trigger,) = documented("metrics-api", name=name, address=address)
    pace = {"minReplicaCount": 0, "pollingInterval": 2, "cooldownPeriod": 2}
    value: dict[str, Any] = found | {"spec": found["spec"] | trigger | pace}
    return value


def condition(stage: MetricsStage, kind: str, name: str, wanted: str) -> str:
    """Return the status of a condition, with its reason."""
    answer = stage.kubectl("get", kind, name, HERE, "--output=json", check=False).stdout
    conditions = (json.loads(answer or "{}").get("status") or {}).get("conditions") or []
    return next(
        (f"{item['status']} {item.get('reason')}" for item in conditions if item["type"] == wanted), ""
    )


def test_keda_follows_a_decision_to_zero_and_back(stage: MetricsStage) -> None:
    """KEDA itself scales between zero and one, and its HorizontalPodAutoscaler between one and more."""
    scaled_object(stage, "chat")
    for replicas in (3, 0, 4, 1, 0, 2):
        stage.decide("chat", replicas)
        stage.wait_for_replicas("chat", replicas)


def test_the_replicas_stay_while_no_decision_can_be_read(stage: MetricsStage) -> None:
    """Neither our failure nor a decision that is too old is a zero."""
    scaled_object(stage, "away")
    stage.decide("away", 3)
    stage.wait_for_replicas("away", 3)
    stage.decide("away", 0, age_seconds=300)
    wait_for(lambda: condition(stage, "scaledobject", "away", "Ready").startswith("False"), lambda: "ready")
    stage.installation.processes["apiserver"].stop(patience_seconds=0)
    stage.decide("away", 5)
    wait_for(
        lambda: condition(stage, "hpa", "keda-hpa-away", "ScalingActive").startswith("False"),
        lambda: "active",
    )
    held = stage.kubectl("get", "deployment", "away", HERE, "--output=jsonpath={.spec.replicas}").stdout
    stage.installation.start_component("apiserver")
    stage.wait_for_replicas("away", 5)

    assert held == "3"


def test_an_autoscaler_whose_metric_keda_answers_is_named(deciding: MetricsStage) -> None:
    """The external metrics are KEDA's now, so a plain HorizontalPodAutoscaler gets no decision."""
    deciding.variant("plain")
    deciding.autoscaled("plain")
    wait_for(
        lambda: "ExternalMetricsTakenOver" in condition(deciding, "va", "plain", "DecisionFollowed"),
        lambda: condition(deciding, "va", "plain", "DecisionFollowed"),
    )


def test_an_annotated_scaled_object_is_planned_once_and_followed(deciding: MetricsStage) -> None:
    """KEDA copies its annotations to the HorizontalPodAutoscaler that it creates for it."""
    deciding.apply(deployment("own", product=PRODUCT, accelerators=1), namespace="default")
    value = following(deciding, "own")
    value["metadata"]["annotations"] = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "own"}
    deciding.apply(value)
    for replicas in (3, 0, 2):
        deciding.kubectl("annotate", "--overwrite", "so/own", f"stowplan.dev/replicas={replicas}", HERE)
        deciding.wait_for_replicas("own", replicas)

    copied = deciding.kubectl("get", "hpa/keda-hpa-own", HERE, "--output=jsonpath={.metadata.annotations}")
    records = json.loads(
        deciding.kubectl("get", "configmap/stowplan-decisions", HERE, "--output=json").stdout
    )
    assert "llm-d.ai/managed" in copied.stdout
    assert [json.loads(record)["name"] for record in records["data"].values()] == ["own"]
