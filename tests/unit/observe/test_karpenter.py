"""Node pools read from Karpenter's NodePools, if their requirements determine accelerator type and number."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.karpenter import KarpenterPools, karpenter_pools
from controller.planning.cluster import Taint

GPU = "karpenter.k8s.aws/instance-gpu-name"
COUNT = "karpenter.k8s.aws/instance-gpu-count"
INSTANCE = "node.kubernetes.io/instance-type"


def pool(requirements: dict[str, list[str]], *, limits: Json | None = None, used: str = "0") -> Json:
    """Return a NodePool whose requirements are lists of allowed values."""
    demands = [{"key": key, "operator": "In", "values": values} for key, values in requirements.items()]
    taints = [{"key": "gpu", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]
    return {
        "metadata": {"name": "gpus"},
        "spec": {
            "limits": {"nvidia.com/gpu": "32", "cpu": "1000"} if limits is None else limits,
            "template": {
                "metadata": {"labels": {"team": "chat"}},
                "spec": {"requirements": demands, "taints": taints},
            },
        },
        "status": {"resources": {"nvidia.com/gpu": used}},
    }


def node(name: str, count: int, **labels: str) -> Json:
    """Return a node with labels, given by short names."""
    names = {"pool": "karpenter.sh/nodepool", "instance": INSTANCE, "product": "nvidia.com/gpu.product"}
    return {
        "metadata": {"name": name, "labels": {names[key]: text for key, text in labels.items()}},
        "status": {"capacity": {"nvidia.com/gpu": str(count)}},
    }


PINNED = {GPU: ["h100"], COUNT: ["8"], "topology.kubernetes.io/zone": ["a", "b"]}


def test_a_fully_determined_node_pool_gives_labels_taints_and_addable_nodes() -> None:
    """Labels with several allowed values are left out."""
    nodes = [node("one", 8, pool="gpus"), node("other", 8, pool="another")]

    (found,) = karpenter_pools([pool(PINNED)], nodes).pools

    assert (found.name, found.accelerator, found.accelerators_per_node) == ("gpus", "H100", 8)
    assert found.nodes_addable == 3
    assert found.labels == {
        ("team", "chat"), (GPU, "h100"), (COUNT, "8"), ("karpenter.sh/nodepool", "gpus")
    }  # fmt: skip
    assert found.taints == {Taint(key="gpu")}


def test_machines_being_launched_reduce_the_addable_nodes() -> None:
    """Karpenter counts them in the NodePool's status before they are nodes."""
    (found,) = karpenter_pools([pool(PINNED, used="24")], [node("one", 8, pool="gpus")]).pools

    assert found.nodes_addable == 1


def test_an_existing_node_of_the_only_instance_type_gives_type_and_number() -> None:
    """It is found by its instance type label."""
    nodes = [node("one", 4, instance="p9.huge", product="NVIDIA-L40S-48GB"), node("x", 2, instance="p9.big")]

    (found,) = karpenter_pools([pool({INSTANCE: ["p9.huge"]})], nodes).pools

    assert (found.accelerator, found.accelerators_per_node, found.nodes_addable) == ("L40S", 4, 8)


OPEN = {
    "two types of accelerators": (pool({GPU: ["h100", "a100"], COUNT: ["8"]}), "the accelerator's type open"),
    "any number of accelerators": (pool({GPU: ["h100"]}), "the number per node open"),
    "a number that is invalid": (pool({GPU: ["h100"], COUNT: ["many"]}), "the number per node open"),
    "no limit": (pool(PINNED, limits={"cpu": "1000"}), "has no limit of accelerators"),
    "an instance type without an existing node": (
        pool({INSTANCE: ["p9.huge"]}),
        "the accelerator's type open",
    ),
}


@pytest.mark.parametrize(("item", "want"), OPEN.values(), ids=OPEN.keys())
def test_an_undetermined_node_pool_is_reported_and_not_used(item: Json, want: str) -> None:
    """The message names the setting in which to declare it instead."""
    result = karpenter_pools([item], [])

    assert result.pools == ()
    assert want in result.problems[0]
    assert result.problems[0].endswith("declare it in planning.nodePools")


def test_node_pools_without_accelerators_or_being_deleted_are_ignored() -> None:
    """They are not reported: most NodePools of a cluster have no accelerators."""
    leaving = pool(PINNED)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    without = pool({COUNT: ["0"]}, limits={"cpu": "10"})
    without["spec"]["template"]["spec"]["requirements"].append({"key": GPU, "operator": "DoesNotExist"})

    assert karpenter_pools([pool({}, limits={"cpu": "10"}), without, leaving], []) == KarpenterPools()
