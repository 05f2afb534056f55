"""Add bindings to the plan: a claim for each target, and one load per binding.

The policy determines how many replicas of capacity 1 a binding needs in total. Which of its targets run them,
and where, is planned together with all other workloads on the same nodes. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from apiserver.kinds.authorship import writer_identity
from apiserver.kinds.identity import Key
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import service_class_of
from apiserver.kinds.llmd.v1alpha2 import ConfigMapKeyRef
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.claim import Claim, Claims, Exclusion, Owner, OwnerKind, Place, orders_of
from controller.observe.conditions import ConditionReason
from controller.observe.targets import target_key
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.snapshot import Variant
from controller.policies.policy import Binding

MOST_REPLICAS: Final = 10**6
"""Maximum replicas of capacity 1; bindings that need more are not planned."""

_LEAST_COST: Final = "0.001"
"""Cost of a replica that declares none, so that unneeded replicas are still removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingDemand:
    """The demand of one binding."""

    value: Json
    """The AutoscalingPolicyBinding object."""

    required: float
    """Required replicas of capacity 1."""

    binding: Binding

    @property
    def key(self) -> Key:
        """Namespace and name of the binding."""
        return self.value["metadata"]["namespace"], self.value["metadata"]["name"]

    @property
    def model(self) -> str:
        """The model ID of its variants, which `stowplan explain` also accepts."""
        return f"aspb/{self.key[1]}"

    @property
    def variants(self) -> tuple[Key, ...]:
        """The keys of its targets as variants; they contain a slash, which no object name does."""
        namespace, name = self.key
        targets = [bound.target for bound in self.binding.targets]
        counts = Counter(target.name for target in targets)
        return tuple(
            (namespace, f"{name}/{target.name}")
            if counts[target.name] == 1
            else (namespace, f"{name}/{target.kind}.{target.group}/{target.name}")
            for target in targets
        )


def why_not_planned(demand: BindingDemand, variants: Mapping[Key, Variant]) -> str:
    """Return why a binding cannot be planned, or an empty string. `variants` are the planned ones."""
    if demand.required > MOST_REPLICAS:
        return f"it asks for more than {MOST_REPLICAS} replicas of capacity 1"
    for key, bound in zip(demand.variants, demand.binding.targets, strict=True):
        if key not in variants:
            return f"{bound.target.kind} {bound.target.name!r} cannot be planned"
    return ""


def holds_nothing(demand: BindingDemand, variants: Mapping[Key, Variant]) -> bool:
    """Return whether no target's pods request accelerators: such targets need no place or plan."""
    return not any(variants[key].accelerators_per_replica for key in demand.variants)


def loads_of(demands: Sequence[BindingDemand], planned: Iterable[Variant]) -> tuple[ModelLoad, ...]:
    """Return the loads of bindings. One that cannot be planned has none, so its running replicas are kept."""
    variants = {variant.key: variant for variant in planned} if demands else {}
    return tuple(
        _load(demand)
        for demand in demands
        if not why_not_planned(demand, variants) and not holds_nothing(demand, variants)
    )


def claims_of_demands(demands: Iterable[BindingDemand]) -> Claims:
    """Return the claims of bindings on their targets; none if a binding names an invalid service class."""
    claims: list[Claim] = []
    unplanned: dict[Key, Exclusion] = {}
    for demand in demands:
        reference = service_class_of(demand.value)
        if wrong := validate(ConfigMapKeyRef, reference) if reference else ():
            why = Exclusion(ConditionReason.INVALID_CONFIGURATION, str(wrong[0]))
            unplanned |= dict.fromkeys(demand.variants, why)
        else:
            place = (reference["name"], reference["key"]) if reference else None
            claims += _claims_of(demand, place)
    return Claims(readable=tuple(claims), unplanned=unplanned)


def _claims_of(demand: BindingDemand, service_class: Place | None) -> Iterator[Claim]:
    """Yield one claim for each target. If none declares a cost, the prices of accelerators apply."""
    orders, writer = orders_of(demand.value, OwnerKind.BINDING), writer_identity(demand.value)
    has_costs = any(bound.cost for bound in demand.binding.targets)
    targets = zip(demand.variants, demand.binding.targets, demand.binding.capacities, strict=True)
    for (namespace, name), bound, capacity in targets:
        meant = bound.target
        reference: Json = {"apiVersion": meant.api_version, "kind": meant.kind, "name": meant.name}
        yield Claim(
            owner=Owner(OwnerKind.BINDING, *demand.key),
            name=name,
            created=demand.value["metadata"].get("creationTimestamp") or "",
            model_id=demand.model,
            target=target_key(namespace, reference),
            cost=Decimal(bound.cost or _LEAST_COST) if has_costs else None,
            service_class=service_class,
            orders=orders,
            writer=writer,
            bounds=(bound.min_replicas, bound.max_replicas),
            may_scale_to_zero=True,
            capacity=Capacity(requests_per_second=capacity, source=CapacitySource.STATED),
        )


def _load(demand: BindingDemand) -> ModelLoad:
    return ModelLoad(
        namespace=demand.key[0],
        model_id=demand.model,
        mixes_at_cost=True,
        measure="replicas" if demand.binding.is_alike else "replicas of capacity 1",
        requests_per_second=demand.required,
        upper_requests_per_second=demand.required,
        required_requests_per_second=demand.required,
        releasable_requests_per_second=demand.required,
    )
