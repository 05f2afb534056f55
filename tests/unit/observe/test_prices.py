"""Cost per replica, above all in clusters with tenants, where the listed price is the lower bound."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from support.gathering import NODE, POLICIES, gathered, placed, pod
from support.manifests import deployment, variant

from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.kinds.privileges import OWN_COST
from apiserver.schema.json import Json
from controller.observe.declarations import claim_of
from controller.observe.gather import PlanningTerms
from controller.observe.policies import Grants, Policies, question_of
from controller.observe.prices import CostSource, price_finding
from controller.planning.cluster import NodePool, Taint

PRODUCTS = {"A100": "NVIDIA-A100-PCIE-80GB", "H100": "NVIDIA-H100-80GB-HBM3", "L4": "NVIDIA-L4", "NEW": "NEW"}
PRICES = {"A100": Decimal(40), "H100": Decimal(90), "L4": Decimal(5)}
ANN = {"username": "ann"}


def written_by_ann(**spec: Any) -> Json:
    """Return a variant whose recorded writer is Ann."""
    value = placed(variant("chat", **spec))
    return value | {"metadata": value["metadata"] | {"annotations": {WRITTEN_BY: record_of(ANN)}}}


def node(kind: str, *, taint: str = "") -> Json:
    """Return a node of an accelerator type, named like the type."""
    labels = {"nvidia.com/gpu.product": PRODUCTS[kind]}
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return NODE | {"metadata": {"name": kind, "labels": labels}, "spec": {"taints": taints}}


def anywhere(accelerators: int = 2, **pod_spec: object) -> Json:
    """Return a Deployment whose pods select no accelerator type."""
    value = placed(deployment("chat", product="", accelerators=accelerators))
    template = value["spec"]["template"]
    template["spec"] = {"containers": template["spec"]["containers"]} | pod_spec
    return value


def tenants(*, may_set: bool, prices: dict[str, Decimal] = PRICES) -> Policies:
    """Return the policies of a cluster with tenants, in which Ann may set a cost or not."""
    asked = question_of(claim_of(written_by_ann()), OWN_COST)
    assert asked is not None
    allowed = frozenset({asked} if may_set else ())
    return replace(POLICIES, unit_costs=prices, grants=Grants(allowed=allowed, namespace="stowplan-system"))


def cost(value: Json, policies: Policies, target: Json, **world: Any) -> tuple[Decimal, str]:
    """Return the planned cost of one replica and its source."""
    found = gathered(value, deployments=(target,), policies=policies, **world)
    (planned,) = found.snapshot.variants
    return planned.cost_per_replica, found.observed[planned.key].cost[1]


BY_TERMS: dict[str, tuple[Json, bool, tuple[int, str]]] = {
    "a cost of 0 without the permission": ({"variantCost": "0"}, False, (80, "UnitCost")),
    "a cost of 0 with the permission": ({"variantCost": "0"}, True, (80, "UnitCost")),
    "less than listed, with the permission": ({"variantCost": "79.99"}, True, (80, "UnitCost")),
    "more than listed, without the permission": ({"variantCost": "1000000"}, False, (80, "UnitCost")),
    "more than listed, with the permission": ({"variantCost": "81"}, True, (81, "VariantCost")),
    "the default cost": ({"variantCost": "10.0"}, True, (80, "UnitCost")),
    "no cost": ({"variantCost": None}, False, (80, "UnitCost")),
    "fewer accelerators than its pods request": (
        {"variantCost": None, "accelerator": "A100", "acceleratorCount": 1},
        False,
        (80, "UnitCost"),
    ),
}


@pytest.mark.parametrize(("spec", "may_set", "want"), BY_TERMS.values(), ids=BY_TERMS)
def test_the_listed_price_is_the_lower_bound_of_the_cost(
    spec: Json, may_set: bool, want: tuple[int, str]
) -> None:
    """A replica has two A100; a variant's own cost applies only above their price and with the permission."""
    target = anywhere()
    assert cost(written_by_ann(**spec), tenants(may_set=may_set), target, nodes=(node("A100"),)) == want


BY_REACH: dict[str, tuple[Json, tuple[Json, ...], int]] = {
    "the most expensive type that its pods may get": (anywhere(), (node("L4"), node("H100")), 180),
    "the type that its pods select": (
        anywhere(nodeSelector={"nvidia.com/gpu.product": PRODUCTS["L4"]}),
        (node("L4"), node("H100")),
        10,
    ),
    "a type whose taint its pods do not tolerate is excluded": (
        anywhere(),
        (node("L4"), node("H100", taint="a")),
        10,
    ),
    "a type whose taint its pods tolerate is included": (
        anywhere(tolerations=[{"key": "a", "operator": "Exists"}]),
        (node("L4"), node("H100", taint="a")),
        180,
    ),
    "an unlisted type costs as much as the most expensive listed one": (anywhere(), (node("NEW"),), 180),
    "the type in its spec if there is no node": (anywhere(), (), 10),
    "the default if it has no accelerators": (anywhere(0), (node("H100"),), 10),
}


@pytest.mark.parametrize(("target", "nodes", "want"), BY_REACH.values(), ids=BY_REACH)
def test_the_price_depends_on_the_accelerators_that_the_pods_may_get(
    target: Json, nodes: tuple[Json, ...], want: int
) -> None:
    """The variant's own claim, here the cheapest type, does not matter."""
    claims = {"accelerator": "L4", "acceleratorCount": 1, "variantCost": None}
    assert cost(written_by_ann(**claims), tenants(may_set=False), target, nodes=nodes)[0] == want


def test_the_accelerator_type_of_a_running_pod_counts() -> None:
    """Pods of an earlier template remain while a rollout is paused."""
    target = anywhere(nodeSelector={"nvidia.com/gpu.product": PRODUCTS["L4"]})
    world = {"nodes": (node("L4"), node("H100")), "pods": (pod("chat-1", node="H100", accelerators=2),)}
    assert cost(written_by_ann(), tenants(may_set=False), target, **world) == (180, "UnitCost")


def test_node_pools_that_may_grow_count() -> None:
    """A plan may place replicas on their nodes."""
    pool = NodePool(
        name="new", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(0), nodes_addable=1
    )
    fenced = replace(pool, taints=frozenset({Taint(key="a", value="", effect="NoSchedule")}))
    for given, want in ((pool, 180), (fenced, 10)):
        terms = PlanningTerms(pools=(given,))
        found = cost(written_by_ann(), tenants(may_set=False), anywhere(), nodes=(node("L4"),), terms=terms)
        assert found == (want, "UnitCost")


def test_without_listed_prices_the_default_cost_applies() -> None:
    """The variant's own cost of 0 is not used."""
    policies = tenants(may_set=False, prices={})
    assert cost(written_by_ann(variantCost="0"), policies, anywhere()) == (10, "Default")


WITHOUT_TENANTS: dict[str, tuple[Json, dict[str, Decimal], tuple[int, str]]] = {
    "a cost that somebody wrote": ({"variantCost": "0"}, PRICES, (0, "VariantCost")),
    "ten, written otherwise than the default": ({"variantCost": "10"}, PRICES, (10, "VariantCost")),
    "the default that admission filled in": ({"variantCost": "10.0"}, PRICES, (10, "UnitCost")),
    "no cost": ({"variantCost": None}, PRICES, (10, "UnitCost")),
    "the default, without a price of the type": ({"variantCost": "10.0"}, {}, (10, "Default")),
    "no cost, without a price of the type": ({"variantCost": None}, {}, (10, "Default")),
    "the default for a type with a price": (
        {"variantCost": "10.0", "accelerator": "H100"},
        PRICES,
        (180, "UnitCost"),
    ),
    "the default for the type of a label": (
        {"variantCost": "10.0", "accelerator": None},
        PRICES,
        (180, "UnitCost"),
    ),
}


@pytest.mark.parametrize(("spec", "prices", "want"), WITHOUT_TENANTS.values(), ids=WITHOUT_TENANTS)
def test_a_price_list_applies_to_every_cost_that_nobody_wrote(
    spec: Json, prices: dict[str, Decimal], want: tuple[int, str]
) -> None:
    """The default of `variantCost` is visible in the object, and never hides a price."""
    fields: Json = {"accelerator": "L4"} | spec
    value = placed(variant("chat", **fields))
    value["metadata"]["labels"] = {"inference.optimization/acceleratorName": "H100"}

    assert cost(value, replace(POLICIES, unit_costs=prices), anywhere()) == want


LISTED = replace(POLICIES, unit_costs={"H100": Decimal(90)}, price_list="prices")
UNPRICED = {
    "a list without its type": ("L4", LISTED, "Default", True),
    "a type with a price": ("H100", LISTED, "UnitCost", False),
    "a cost that somebody wrote": ("L4", LISTED, "VariantCost", False),
    "no list": ("L4", replace(LISTED, unit_costs={}), "Default", False),
    "no accelerator": ("", LISTED, "Default", False),
}


@pytest.mark.parametrize(("kind", "policies", "source", "is_told"), UNPRICED.values(), ids=UNPRICED)
def test_a_type_that_a_price_list_lacks_is_told(
    kind: str, policies: Policies, source: CostSource, is_told: bool
) -> None:
    """Beside prices of 90, the default of 10 would make it the cheapest."""
    assert price_finding(kind, policies, source) == (
        "ConfigMap prices has prices, but none of L4, so a replica counts as 10.0 beside them: add the"
        " price, or set spec.variantCost"
        if is_told
        else ""
    )
