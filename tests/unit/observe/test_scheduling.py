"""Node affinity of pod templates, matched against nodes as the scheduler does."""

from __future__ import annotations

import pytest
from support.manifests import node

from apiserver.schema.json import Json
from controller.observe.inventory import inventory
from controller.observe.scheduling import node_affinity
from controller.planning.inventory import meets

NODE = node("n1", labels={"zone": "a", "generation": "9"})


def required(*terms: Json) -> Json:
    """Return the spec of a pod that requires one of some node selector terms."""
    selector = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}},
        "containers": [],
    }


def expression(key: str, operator: str, *values: str) -> Json:
    """Return a node selector term with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, name: str) -> Json:
    """Return a node selector term on the node's name."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


CASES = {
    "no affinity": ({}, True),
    "only a preference": ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": expression("zone", "In", "b")}]}}}, True),
    "a label that the node has": (required(expression("zone", "In", "a", "b")), True),
    "a label that the node does not have": (required(expression("zone", "In", "b")), False),
    "one of two terms": (required(expression("zone", "In", "b"), expression("zone", "Exists")), True),
    "a number larger than the label's": (required(expression("generation", "Gt", "10")), False),
    "the node's name": (required(field("In", "n1")), True),
    "another node's name": (required(field("In", "n2")), False),
    "not the node's name": (required(field("NotIn", "n1")), False),
    "the node's name, another zone": (required(field("In", "n1") | expression("zone", "In", "b")), False),
    "an empty term": (required({}), False),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES.keys())
def test_node_affinity_matches_nodes_as_in_the_scheduler(spec: Json, want: bool) -> None:
    """All conditions of at least one term must hold; an empty term matches no node."""
    (node,) = inventory([NODE], [], frozenset())

    assert meets(node, node_affinity(spec)) is want


REMOVED = {
    "no taint": ({}, True),
    "a taint of its own": ({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, True),
    "a candidate of the Cluster Autoscaler": (
        {"spec": {"taints": [{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}]}},
        True,
    ),
    "removed by the Cluster Autoscaler": (
        {"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}},
        False,
    ),
    "disrupted by Karpenter": (
        {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}},
        False,
    ),
    "deleted, with a finalizer": (
        {"metadata": NODE["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        False,
    ),
}


@pytest.mark.parametrize(("change", "want"), REMOVED.values(), ids=REMOVED.keys())
def test_a_node_that_is_being_removed_takes_no_new_pods(change: Json, want: bool) -> None:
    """This holds whatever pods tolerate, because they would be evicted again."""
    (node,) = inventory([NODE | change], [], frozenset())

    assert node.schedulable is want
