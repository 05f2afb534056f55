"""Node pools read from Karpenter's NodePools, if their requirements determine accelerator type and number."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.inventory import KarpenterPools, karpenter_pools
from controller.planning.cluster import Taint

GPU = "karpenter.k8s.aws/instance-gpu-name"
COUNT = "karpenter.k8s.aws/instance-gpu-count"
INSTANCE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"


def pool(requirements: dict[str, list[str]], *, limits: Json | None = None, **members: object) -> Json:
    """Return a NodePool whose requirements are lists of allowed values."""
    demands = [{"key": key, "operator": "In", "values": values} for key, values in requirements.items()]
    taints = [{"key": "gpu", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]
    return {
        "metadata": {"name": "gpus"},
        "spec": {
            "limits": {"nvidia.com/gpu": "32", "cpu": "10k"} if limits is None else limits,
            "template": {
                "metadata": {"labels": {"team": "chat"}},
                "spec": {"requirements": demands, "taints": taints},
            },
            **members,
        },
        "status": {"resources": {"nvidia.com/gpu": "32"}},
    }


def node(name: str, count: int, *taints: str, joined: bool = True, **labels: str) -> Json:
    """Return a node with labels, given by short names, and the keys of its taints."""
    names = {"pool": "karpenter.sh/nodepool", "instance": INSTANCE, "product": "nvidia.com/gpu.product"}
    named = {names[key]: text for key, text in labels.items()}
    return {
        "metadata": {
            "name": name,
            "labels": named | ({"karpenter.sh/initialized": "true"} if joined else {}),
        },
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {"capacity": {"nvidia.com/gpu": str(count), "cpu": "190"}},
    }


PINNED = {GPU: ["h100"], COUNT: ["8"], ZONE: ["a", "b"]}


def test_a_fully_determined_node_pool_gives_labels_taints_and_addable_nodes() -> None:
    """A label with several allowed values has all of them, for pods that select one."""
    nodes = [node("one", 8, pool="gpus"), node("other", 8, pool="another")]

    (found,) = karpenter_pools([pool(PINNED)], nodes).pools

    assert (found.name, found.accelerator, found.accelerators_per_node) == ("gpus", "H100", 8)
    assert found.nodes_addable == 3
    assert found.labels == {
        ("team", "chat"),
        ("karpenter.sh/nodepool", "gpus"),
        (GPU, "h100"),
        (COUNT, "8"),
        (ZONE, "a"),
        (ZONE, "b"),
    }
    assert found.taints == {Taint(key="gpu")}


COUNTED = {
    "a node that can run pods": (node("one", 8, pool="gpus"), 3),
    "a machine that is launched, which only the status of the NodePool counts": (node("one", 8), 4),
    "a node without devices yet": (node("one", 0, pool="gpus", joined=False), 4),
    "a node with a startup taint": (node("one", 8, "gpu-not-validated", pool="gpus", joined=False), 4),
    "a node that is being removed": (node("one", 8, "karpenter.sh/disrupted", pool="gpus"), 4),
}


@pytest.mark.parametrize(("present", "want"), COUNTED.values(), ids=COUNTED.keys())
def test_only_nodes_that_can_run_pods_reduce_the_addable_nodes(present: Json, want: int) -> None:
    """The pods for which a machine is launched have no other place until it has joined."""
    (found,) = karpenter_pools([pool(PINNED)], [present]).pools

    assert found.nodes_addable == want


LIMITS = {
    "accelerators": ({"nvidia.com/gpu": "32", "amd.com/gpu": "0"}, 3),
    "nodes": ({"nodes": "2"}, 1),
    "cpu of an existing node": ({"nvidia.com/gpu": "32", "cpu": "400"}, 1),
    "cpu alone": ({"cpu": "1k"}, 4),
    "a resource that no node has": ({"nvidia.com/gpu": "32", "example.com/nic": "0"}, 3),
    "less than exists": ({"nvidia.com/gpu": "4"}, 0),
}


@pytest.mark.parametrize(("limits", "want"), LIMITS.values(), ids=LIMITS.keys())
def test_the_lowest_limit_of_a_node_pool_gives_the_addable_nodes(limits: Json, want: int) -> None:
    """Karpenter adds no node that would exceed any of them."""
    (found,) = karpenter_pools([pool(PINNED, limits=limits)], [node("one", 8, pool="gpus")]).pools

    assert found.nodes_addable == want


def test_a_node_pool_that_is_not_ready_is_reported_and_not_used() -> None:
    """Karpenter ignores it as well, for instance while its node class does not exist."""
    broken, unknown = pool(PINNED), pool(PINNED)
    broken["status"]["conditions"] = [
        {"type": "NodeClassReady", "status": "False"},
        {"type": "Ready", "status": "False", "message": "NodeClassReady=False"},
    ]
    unknown["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    assert karpenter_pools([broken], []) == KarpenterPools(
        problems=(
            "Karpenter NodePool gpus is not ready, so no nodes of it are planned: NodeClassReady=False",
        )
    )
    assert karpenter_pools([unknown], []).pools


def test_excluded_values_of_a_label_are_left_out() -> None:
    """If one value remains, every new node has it."""
    item = pool({GPU: ["h100", "a100"], COUNT: ["8"]})
    item["spec"]["template"]["spec"]["requirements"] += [
        {"key": GPU, "operator": "NotIn", "values": ["a100"]},
        {"key": ZONE, "operator": "NotIn", "values": ["c"]},
        {"key": "generation", "operator": "Gt", "values": ["5"]},
    ]

    (found,) = karpenter_pools([item], []).pools

    assert found.accelerator == "H100"
    assert not {key for key, _ in found.labels} & {ZONE, "generation"}


def test_an_existing_node_of_the_only_instance_type_gives_type_and_number() -> None:
    """It is found by its instance type label."""
    nodes = [node("one", 4, instance="p9.huge", product="NVIDIA-L40S-48GB"), node("x", 2, instance="p9.big")]

    (found,) = karpenter_pools([pool({INSTANCE: ["p9.huge"]})], nodes).pools

    assert (found.accelerator, found.accelerators_per_node, found.nodes_addable) == ("L40S", 4, 8)


OPEN = {
    "two types of accelerators": (pool({GPU: ["h100", "a100"], COUNT: ["8"]}), "the accelerator's type open"),
    "any number of accelerators": (pool({GPU: ["h100"]}), "the number per node open"),
    "a number that is invalid": (pool({GPU: ["h100"], COUNT: ["many"]}), "the number per node open"),
    "no limit": (pool(PINNED, limits={}), "has no limit of accelerators"),
    "a limit of a resource that nodes are not known to have": (
        pool(PINNED, limits={"cpu": "1000"}),
        "has no limit of accelerators",
    ),
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


def test_node_pools_without_accelerators_of_fixed_size_or_being_deleted_are_ignored() -> None:
    """They are not reported: most NodePools of a cluster have no accelerators."""
    leaving = pool(PINNED)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    without = pool({COUNT: ["0"]}, limits={"cpu": "10"})
    without["spec"]["template"]["spec"]["requirements"].append({"key": GPU, "operator": "DoesNotExist"})

    fixed = pool(PINNED, replicas=4)

    assert karpenter_pools([pool({}, limits={"cpu": "10"}), without, leaving, fixed], []) == KarpenterPools()
