"""Observations of the demo, from Kubernetes objects."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from support.annotated import hpa

from controller.observe.gather import World
from controller.observe.settings_reading import read_policies
from controller.observe.targets import TargetKey, TargetKind
from hack.demo.observation import ClientView, model_view, observe

if TYPE_CHECKING:
    from apiserver.schema.json import Json
    from hack.demo.observation import DemoObservation

POLICIES = read_policies(
    {
        "accelerator-unit-costs": {"data": {"A100": '{"device": "NVIDIA-A100", "cost": "40.00"}'}},
        "service-classes-config": {
            "data": {"premium.yaml": "{name: Premium, priority: 1, data: [{model: llama, slo-ttft: 500}]}"}
        },
    },
    unit_costs="accelerator-unit-costs",
)
CLIENTS = {"llama": ClientView(requests_per_second=3.0, ttft_p90_ms=120.0, unfinished_requests=7)}
TARGET = TargetKey(TargetKind.DEPLOYMENT, "demo", "llama-a100")
TEMPLATE: Json = {
    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
    "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}],
}


def pod(name: str, *, node: str | None = "n1") -> Json:
    """Return a pod of the Deployment, ready if it has a node."""
    return {
        "metadata": {
            "name": name,
            "namespace": "demo",
            "labels": {"pod-template-hash": "abc"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "llama-a100-abc", "controller": True}],
        },
        "spec": {**TEMPLATE, **({"nodeName": node} if node else {})},
        "status": {"conditions": [{"type": "Ready", "status": "True"}] if node else []},
    }


@pytest.fixture
def world() -> World:
    """Return one variant with two of three replicas running, on a node with eight accelerators."""
    return World(
        autoscalings=[
            {
                "metadata": {"name": "va", "namespace": "demo"},
                "spec": {
                    "modelID": "llama",
                    "scaleTargetRef": {"kind": "Deployment", "name": "llama-a100"},
                },
                "status": {
                    "desiredOptimizedAlloc": {"numReplicas": 4},
                    "decision": {"reason": "ScaleUp", "boundBy": "Demand", "message": "needs 4"},
                },
            }
        ],
        targets={TARGET: {"spec": {"replicas": 3, "template": {"spec": TEMPLATE}}}},
        pods=[pod("p1"), pod("p2"), pod("p3", node=None)],
        nodes=[
            {
                "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}},
                "status": {"allocatable": {"nvidia.com/gpu": "8"}},
            }
        ],
        autoscalers=(),
    )


def look(world: World) -> DemoObservation:
    """Return the observation at ten seconds."""
    return observe(world, policies=POLICIES, clients=CLIENTS, seconds=10.0)


def test_each_value_is_read_from_its_source(world: World) -> None:
    """Sources are the status, the Deployment, the service class and the prices."""
    (model,) = look(world).models
    (variant,) = model.variants

    assert (model.class_name, model.priority, model.ttft_target_ms) == ("Premium", 1, 500)
    assert model.clients.requests_per_second == 3.0
    assert (variant.accelerator, variant.accelerators_per_replica) == ("A100", 2)
    assert (variant.current_replicas, variant.placed_replicas, variant.ready_replicas) == (3, 2, 2)
    assert variant.desired_replicas == 4
    assert (variant.reason, variant.bound_by, variant.message) == ("ScaleUp", "Demand", "needs 4")
    assert variant.cost_per_replica == Decimal(80)
    assert look(world).cost_per_hour == Decimal(160)


def test_accelerators_in_use_are_those_of_pods_with_a_node(world: World) -> None:
    """Pods without a node and pods that are being deleted use none."""
    leaving = deepcopy(world.pods[0])
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    (accelerators,) = look(replace(world, pods=[leaving, *world.pods[1:]])).accelerators

    assert (accelerators.name, accelerators.used, accelerators.total) == ("A100", 2, 8)


def test_values_are_unknown_before_the_first_decision(world: World) -> None:
    """Without a status, the decision is None and not zero."""
    world.autoscalings[0].pop("status")

    (variant,) = look(world).variants

    assert variant.desired_replicas is None
    assert (variant.reason, variant.message) == ("", "")


def test_an_annotated_autoscaler_is_a_variant(world: World) -> None:
    """Its decisions are records, and there is no VariantAutoscaling."""
    value = hpa("chat", TARGET.name, terms={"llm-d.ai/model-id": "llama"})
    value["metadata"] |= {"namespace": TARGET.namespace}
    shown = look(replace(world, autoscalings=[], autoscalers=[value], records={}))

    assert [(item.name, item.shape, item.desired_replicas) for item in shown.variants] == [
        ("chat", "annotated", None)
    ]


def test_the_legacy_shape_is_recognized_by_its_profile(world: World) -> None:
    """The stored version keeps the field that only the legacy shape had."""
    assert look(world).variants[0].shape == "current"

    world.autoscalings[0]["spec"]["variantProfile"] = {"maxBatchSize": 8}

    assert look(world).variants[0].shape == "legacy"


def test_a_variant_without_its_deployment_is_left_out(world: World) -> None:
    """The demo does not show it."""
    world.autoscalings[0]["spec"]["scaleTargetRef"]["name"] = "elsewhere"

    assert look(world).models == ()
    assert model_view(look(world), "llama") is None
