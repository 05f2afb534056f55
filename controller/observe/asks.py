"""What bindings ask of the plan: each target as if a VariantAutoscaling scaled it, and one load per binding.

The policy says how many replicas of capacity 1 a binding needs together; which of its targets run them, and
where, is then decided with everything else that wants the same nodes. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.kinds.kthena.autoscalingpolicybinding_targets import service_class_of
from apiserver.schema.json import Json
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.snapshot import Snapshot, Variant
from controller.policies.binding import Binding, BoundTarget

Key = tuple[str, str]
"""Namespace and name."""

MOST_REPLICAS: Final = 10**6
"""Of capacity 1; who asks for more is not planned."""

_LEAST_COST: Final = "0.001"
"""Of a replica that is said to cost nothing: what is not needed goes all the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """What one binding needs."""

    value: Json
    """The binding."""

    required: float
    """Replicas of capacity 1."""

    binding: Binding

    @property
    def key(self) -> Key:
        """Namespace and name of the binding."""
        return self.value["metadata"]["namespace"], self.value["metadata"]["name"]

    @property
    def model(self) -> str:
        """What stands for the model of its variants, as `stowplan explain` takes it, too."""
        return f"aspb/{self.key[1]}"

    @property
    def variants(self) -> tuple[Key, ...]:
        """Return what its targets are called as variants; no object has a slash in its name."""
        namespace, name = self.key
        targets = [bound.target for bound in self.binding.targets]
        named = Counter(target.name for target in targets)
        return tuple(
            (namespace, f"{name}/{target.name}")
            if named[target.name] == 1
            else (namespace, f"{name}/{target.kind}.{target.group}/{target.name}")
            for target in targets
        )


def binding_of(namespace: str, name: str) -> Key | None:
    """Return the binding for whose target a variant stands; None for a VariantAutoscaling."""
    binding, slash, _ = name.partition("/")
    return (namespace, binding) if slash else None


def why_not_planned(ask: Ask, variants: Mapping[Key, Variant]) -> str:
    """Return why the plan can say nothing to a binding; empty where it can. `variants` are those planned."""
    if ask.required > MOST_REPLICAS:
        return f"it asks for more than {MOST_REPLICAS} replicas of capacity 1"
    for key, bound in zip(ask.variants, ask.binding.targets, strict=True):
        if key not in variants:
            return f"{bound.target.kind} {bound.target.name!r} cannot be planned"
    return ""


def holds_nothing(ask: Ask, variants: Mapping[Key, Variant]) -> bool:
    """Tell whether no target has pods that ask for accelerators: they need no place, and are not planned."""
    return not any(variants[key].accelerators_per_replica for key in ask.variants)


def with_asks(snapshot: Snapshot, asks: Sequence[Ask]) -> Snapshot:
    """Return the snapshot with the bounds, capacities and loads of bindings.

    One that cannot be planned has no load: what runs of it stands.
    """
    if not asks:
        return snapshot  # a copy would check every name of a large cluster once more
    known = {variant.key: variant for variant in snapshot.variants}
    loads = list(snapshot.loads)
    for ask in asks:
        for key, target, capacity in zip(
            ask.variants, ask.binding.targets, ask.binding.capacities, strict=True
        ):
            if key in known:
                known[key] = _variant(known[key], target, capacity)
        if not why_not_planned(ask, known) and not holds_nothing(ask, known):
            loads.append(_load(ask))
    variants = tuple(known[variant.key] for variant in snapshot.variants)
    return replace(snapshot, variants=variants, loads=tuple(loads))


def stand_ins(asks: Sequence[Ask]) -> Iterator[Json]:
    """Yield each target of bindings as if it were the only thing that a VariantAutoscaling scales."""
    for ask in asks:
        yield from _stand_ins(ask)


def _stand_ins(ask: Ask) -> Iterator[Json]:
    metadata = ask.value["metadata"]
    annotations = metadata.get("annotations") or {}
    # Where no target says what it costs, the accelerators' own prices count.
    has_costs = any(bound.cost for bound in ask.binding.targets)
    service_class = service_class_of(ask.value)
    for (namespace, name), bound in zip(ask.variants, ask.binding.targets, strict=True):
        meant = bound.target
        spec: Json = {
            "scaleTargetRef": {"apiVersion": meant.api_version, "kind": meant.kind, "name": meant.name},
            "modelID": ask.model,
        }
        if has_costs:
            spec["variantCost"] = str(bound.cost or _LEAST_COST)
        if service_class:
            spec["sloClassRef"] = service_class
        yield {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "creationTimestamp": metadata.get("creationTimestamp"),
                "annotations": annotations,
            },
            "spec": spec,
        }


def _variant(variant: Variant, target: BoundTarget, capacity: float) -> Variant:
    """Return a target with its binding's own bounds: a HorizontalPodAutoscaler only follows."""
    return replace(
        variant,
        min_replicas=target.min_replicas,
        max_replicas=target.max_replicas,
        may_scale_to_zero=True,
        capacity=Capacity(requests_per_second=capacity, source=CapacitySource.STATED),
    )


def _load(ask: Ask) -> ModelLoad:
    is_alike = all(capacity == 1 for capacity in ask.binding.capacities)
    return ModelLoad(
        namespace=ask.key[0],
        model_id=ask.model,
        mixes_at_cost=True,
        measure="replicas" if is_alike else "replicas of capacity 1",
        requests_per_second=ask.required,
        upper_requests_per_second=ask.required,
        required_requests_per_second=ask.required,
        releasable_requests_per_second=ask.required,
    )
