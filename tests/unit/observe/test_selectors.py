"""Label selectors, and node affinity of pod templates, as Kubernetes and its scheduler match them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import node

from apiserver.kinds.core.selecting import selected_keys, selects
from apiserver.schema.json import Json
from controller.observe.inventory import inventory
from controller.observe.scheduling import node_affinity
from controller.planning.inventory import meets

KEYS = st.sampled_from(["app", "tier", "zone"])
VALUES = st.sampled_from(["", "a", "b"])
LABELS = st.dictionaries(KEYS, VALUES)
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": KEYS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(VALUES, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=3)}
)


def _reference(selector: Json, labels: dict[str, str]) -> bool:
    """Return the result by sets: for each key, the values (or absence) that every condition allows."""
    for key in ("app", "tier", "zone"):
        allowed: set[str | None] = {None, "", "a", "b"}
        if key in selector.get("matchLabels", {}):
            allowed &= {selector["matchLabels"][key]}
        for item in selector.get("matchExpressions", []):
            if item["key"] == key:
                allowed &= _left_by(item)
        if labels.get(key) not in allowed:
            return False
    return True


def _left_by(item: Json) -> set[str | None]:
    everything: set[str | None] = {None, "", "a", "b"}
    return {
        "In": set(item.get("values", [])),
        "NotIn": everything - set(item.get("values", [])),
        "Exists": everything - {None},
        "DoesNotExist": {None},
    }[item["operator"]]


@given(SELECTORS, LABELS)
def test_a_selector_matches_if_every_condition_holds(selector: Json, labels: dict[str, str]) -> None:
    """An empty selector selects everything, and an absent label satisfies NotIn and DoesNotExist."""
    assert selects(selector, labels) == _reference(selector, labels)


@given(SELECTORS, LABELS)
def test_only_labels_that_a_selector_names_affect_its_result(selector: Json, labels: dict[str, str]) -> None:
    """Removing other labels does not change it."""
    seen = {key: value for key, value in labels.items() if key in selected_keys(selector)}

    assert selects(selector, seen) == selects(selector, labels)


@given(LABELS)
def test_a_missing_selector_selects_nothing(labels: dict[str, str]) -> None:
    """The Kubernetes API defines it so for an omitted field."""
    assert not selects(None, labels)


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
