"""Cost of a replica: its own, or from the price list, which tenants cannot undercut.

With tenants, a custom cost is a privilege: budgets count it, and under shortage models of one priority are
weighted by the cost of serving them. The accelerator that a variant declares is not trusted either, so the
price list is applied to those that its pods may get.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, Literal

from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.privileges import OWN_COST
from apiserver.schema.json import Json
from controller.observe.accelerators import product_of
from controller.observe.claim import Claim
from controller.observe.policies import Policies
from controller.observe.scheduling import node_affinity, tolerations
from controller.observe.targets import ScaleTarget
from controller.planning.cluster import Node
from controller.planning.inventory import satisfies

CostSource = Literal["VariantCost", "UnitCost", "Default"]
Cost = tuple[Decimal, CostSource]

_DEFAULT: Final = (Decimal(DEFAULT_COST), "Default")


def accelerator_of(claim: Claim, template: Json) -> str:
    """Return the normalized type: the declared one, else by the node selector; empty if none."""
    return claim.accelerator or product_of(template.get("nodeSelector") or {})


def effective_cost(
    claim: Claim, target: ScaleTarget, policies: Policies, reach: Callable[[], frozenset[str]] = frozenset
) -> Cost:
    """Return the cost of one replica and its source: its own, else the unit cost, else the default of 10.0.

    With tenants, its own cost applies only if its writer may set one, and never below the price list; `reach`
    returns the accelerator types that its pods may get.
    """
    if policies.grants is not None:
        return _among_tenants(claim, target, policies, reach())
    if claim.cost is not None:
        return claim.cost, "VariantCost"
    unit = policies.unit_costs.get(accelerator_of(claim, target.pod_spec))
    if unit is None:
        return _DEFAULT
    return unit * (claim.accelerator_count or target.accelerators_per_replica or 1), "UnitCost"


def _among_tenants(claim: Claim, target: ScaleTarget, policies: Policies, reach: frozenset[str]) -> Cost:
    count, costs = target.accelerators_per_replica, policies.unit_costs
    listed = None
    if count and costs:
        # A type without a price counts as the most expensive one; otherwise it would be free.
        types = reach or {accelerator_of(claim, target.pod_spec)}
        listed = count * max(costs.get(name, max(costs.values())) for name in types)
    own = None if cost_refusal(claim, policies) else claim.cost
    if own is not None and own >= (listed or 0):
        return own, "VariantCost"
    return _DEFAULT if listed is None else (listed, "UnitCost")


def price_finding(accelerator: str, policies: Policies, source: CostSource) -> str:
    """Return what is wrong with the price that applies, or would apply; empty if nothing is.

    `accelerator` is the type that is counted, which may differ from the declared one.
    """
    if source == "VariantCost":
        return ""
    if problem := policies.price_problem(accelerator):
        return f"the cost of a replica is not as listed: {problem}"
    if source == "UnitCost" or not accelerator or not policies.unit_costs:
        return ""
    return (
        f"ConfigMap {policies.price_list} has prices, but none of {accelerator}, so a replica counts as"
        f" {_DEFAULT[0]:f} beside them: add the price, or set spec.variantCost"
    )


def cost_refusal(claim: Claim, policies: Policies) -> str:
    """Return why a variant's own cost is not applied; empty if it is, or if there is none."""
    if policies.grants is None or claim.cost is None:
        return ""
    why = policies.grants.refusal(claim, OWN_COST)
    return f"the listed price is used, and not the cost {claim.cost}: {why}" if why else ""


class ReachableTypes:
    """The accelerator types that pods may get: of nodes that they may use, or to which they are bound."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """`nodes` are all existing nodes, and one of each kind that may be added."""
        self._nodes = nodes
        self._types = {node.name: node.accelerator for node in nodes}
        self._known: dict[tuple[object, ...], frozenset[str]] = {}

    def of(self, pod_spec: Json, pods: Sequence[Json]) -> frozenset[str]:
        """Return the types by the pod template, and by the nodes of existing pods.

        Existing pods may be of a template that has changed since.
        """
        selector = frozenset((pod_spec.get("nodeSelector") or {}).items())
        key = (selector, node_affinity(pod_spec), tolerations(pod_spec))
        if key not in self._known:
            self._known[key] = frozenset(node.accelerator for node in self._nodes if satisfies(node, *key))
        bound = (pod["spec"].get("nodeName") for pod in pods)
        return self._known[key] | {self._types[name] for name in bound if name in self._types}
