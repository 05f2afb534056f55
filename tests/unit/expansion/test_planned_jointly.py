"""Joint planning of the objects of Models in namespaces that opt in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from support.models import GPU, POLICY, backend, model, one, split, worker
from support.traffic import objective, pool

from apiserver.schema.json import Json
from controller.bindings.joint import Grant, grants_of
from controller.expansion.expansion import expand
from controller.observe.binding_claims import BindingDemand, claims_of_demands
from controller.observe.binding_conditions import BindingReason, annotations_finding
from controller.observe.gather import World, gather
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.policies import Policies, ServiceClass
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.policies.policy import read_binding

PRODUCT = "nvidia.com/gpu.product"
PLACE = {"namespace": "chat", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
PREMIUM = ServiceClass(name="premium", priority=1, ttft_ms={}, tpot_ms={})
POLICIES = Policies(classes={("classes", "premium"): PREMIUM})


def node(product: str, count: int) -> Json:
    """Return a node with accelerators."""
    return {
        "metadata": {"name": f"node-{product}", "labels": {PRODUCT: product}},
        "status": {"allocatable": {GPU: str(count)}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def on(product: str) -> Json:
    """Return an affinity to nodes with a product."""
    term = {"matchExpressions": [{"key": PRODUCT, "operator": "In", "values": [product]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def granted(
    models: Sequence[Json], nodes: Sequence[Json], *, required: float, objectives: Objectives = NO_OBJECTIVES
) -> Mapping[str, Grant]:
    """Return the grants by binding, where each requests the same number of replicas."""
    made = [item for value in models for item in expand(value).objects]
    asks = [
        BindingDemand(value=item, required=required, binding=read_binding(item))
        for item in made
        if item["kind"] == "AutoscalingPolicyBinding"
    ]
    world = World(
        autoscalings=[],
        targets={
            TargetKey(TargetKind(item["kind"]), "chat", item["metadata"]["name"]): item
            for item in made
            if item["kind"] in set(TargetKind)
        },
        pods=[],
        nodes=nodes,
        autoscalers=[
            {**item, "metadata": item["metadata"] | PLACE}
            for item in made
            if item["kind"] == "HorizontalPodAutoscaler"
        ],
    )
    found = gather(
        world,
        claims_of_demands(asks),
        policies=POLICIES,
        now_seconds=0.0,
        may_scale_to_zero=True,
        demands=asks,
        objectives=objectives,
    )
    decided = plan(found.snapshot, Settings())
    grants = grants_of(asks, found, decided)
    return {ask.key[1]: grants[ask.key] for ask in asks}


def numbers(grant: Grant) -> dict[str, int]:
    """Return the granted replicas by workload."""
    assert grant.why_not == ""
    return {name.rpartition("/")[2]: count for (_, name), count in grant.replicas.items()}


def of_two_types(**members: Any) -> Json:
    """Return a Model whose policy scales a cheap backend and an expensive one."""
    backends = [
        backend(
            name, minReplicas=low, maxReplicas=8, scalingCost=cost, workers=[worker(affinity=on(product))]
        )
        for name, low, cost, product in (("l4", 1, 1, "NVIDIA-L4"), ("h100", 0, 5, "NVIDIA-H100-80GB-HBM3"))
    ]
    return model(*backends, metadata=PLACE, autoscalingPolicy=POLICY, **members)


def test_the_expensive_backend_serves_what_does_not_fit_the_cheap_one() -> None:
    """The types come from the affinity of the workers, and the costs from the Model."""
    nodes = [node("NVIDIA-L4", 3), node("NVIDIA-H100-80GB-HBM3", 8)]

    found = granted([of_two_types()], nodes, required=5)

    assert numbers(found["qwen"]) == {"qwen-l4": 3, "qwen-h100": 2}
    assert not found["qwen"].is_short


def scaled(name: str, **metadata: Any) -> Json:
    """Return a Model with a policy for its only backend."""
    return model(
        backend(maxReplicas=8, minReplicas=1, autoscalingPolicy=POLICY), name=name, metadata=PLACE | metadata
    )


CLASS = {"annotations": {"stowplan.dev/service-class": "classes/premium"}}
URGENT = Objectives([objective("urgent", "p")], [pool("p", {"stowplan.dev/model": "a"})])
FIRST = {
    "a service class in the Model's annotation": ([scaled("a", **CLASS), scaled("b")], NO_OBJECTIVES),
    "an objective that selects its pods by label": ([scaled("a"), scaled("b")], URGENT),
}


@pytest.mark.parametrize(("models", "objectives"), FIRST.values(), ids=FIRST.keys())
def test_the_model_of_higher_priority_gets_the_accelerators(
    models: list[Json], objectives: Objectives
) -> None:
    """The grant of the other one is marked as short."""
    found = granted(models, [node("NVIDIA-L4", 5)], required=4, objectives=objectives)

    assert (numbers(found["a-l4"]), numbers(found["b-l4"])) == ({"a-l4": 4}, {"b-l4": 1})
    assert not found["a-l4"].is_short
    assert found["b-l4"].is_short


def test_annotations_that_expansion_adds_to_a_binding_are_no_settings() -> None:
    """Otherwise its condition would report them as invalid."""
    value = model(backend(maxReplicas=3, scalingCost=1), owner="the chat team", autoscalingPolicy=POLICY)
    made = one(expand(value).objects, "AutoscalingPolicyBinding")

    assert made["metadata"]["annotations"]
    assert annotations_finding(made)[1] is BindingReason.NO_ANNOTATIONS


WORKLOADS = {
    "prefill and decode workers, each with its own binding": split(maxReplicas=8, minReplicas=1),
    "replicas of several pods": backend(minReplicas=1, workers=[worker(pods=2)]),
}


@pytest.mark.parametrize("given", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_every_kind_of_workload_that_a_policy_scales_can_be_planned(given: Json) -> None:
    """All replicas are granted if there is room."""
    value = model(given | {"maxReplicas": 8, "autoscalingPolicy": POLICY}, metadata=PLACE)

    found = granted([value], [node(f"NVIDIA-L4-{number}", 8) for number in range(4)], required=3)

    assert found
    assert all(sum(numbers(grant).values()) == 3 for grant in found.values())
