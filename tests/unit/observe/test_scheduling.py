"""Where pods may go: read off the template, and held against nodes as the scheduler does."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.inventory import inventory
from controller.observe.scheduling import node_affinity
from controller.planning.inventory import meets

NODE: Json = {
    "metadata": {"name": "n1", "labels": {"zone": "a", "generation": "9"}},
    "status": {
        "allocatable": {"nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def required(*terms: Json) -> Json:
    """Return a pod's spec that requires one of some terms."""
    selector = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}},
        "containers": [],
    }


def expression(key: str, operator: str, *values: str) -> Json:
    """Return a term with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, name: str) -> Json:
    """Return a term on the node's name."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


CASES = {
    "no affinity": ({}, True),
    "only a preference": ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": expression("zone", "In", "b")}]}}}, True),
    "a label it has": (required(expression("zone", "In", "a", "b")), True),
    "a label it has not": (required(expression("zone", "In", "b")), False),
    "one of two terms": (required(expression("zone", "In", "b"), expression("zone", "Exists")), True),
    "a number that is larger": (required(expression("generation", "Gt", "10")), False),
    "its name": (required(field("In", "n1")), True),
    "another name": (required(field("In", "n2")), False),
    "not its name": (required(field("NotIn", "n1")), False),
    "its name, with a label it has not": (required(field("In", "n1") | expression("zone", "In", "b")), False),
    "a term that demands nothing": (required({}), False),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES.keys())
def test_a_node_is_admitted_as_the_scheduler_would(spec: Json, want: bool) -> None:
    """All of at least one term; a term that demands nothing matches nothing."""
    (node,) = inventory([NODE], [], frozenset())

    assert meets(node, node_affinity(spec)) is want
