"""Add bindings to the plan: each target as if a VariantAutoscaling scaled it, and one load per binding.

The policy determines how many replicas of capacity 1 a binding needs in total. Which of its targets run them,
and where, is planned together with all other workloads on the same nodes. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.kinds.identity import Key
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import service_class_of
from apiserver.schema.json import Json
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.planning.snapshot import Snapshot, Variant
from controller.policies.binding import Binding, BoundTarget

MOST_REPLICAS: Final = 10**6
"""Maximum replicas of capacity 1; bindings that need more are not planned."""

_LEAST_COST: Final = "0.001"
"""Cost of a replica that declares none, so that unneeded replicas are still removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
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
        named = Counter(target.name for target in targets)
        return tuple(
            (namespace, f"{name}/{target.name}")
            if named[target.name] == 1
            else (namespace, f"{name}/{target.kind}.{target.group}/{target.name}")
            for target in targets
        )


def binding_of(namespace: str, name: str) -> Key | None:
    """Return the binding whose target a variant represents; None for a VariantAutoscaling."""
    binding, slash, _ = name.partition("/")
    return (namespace, binding) if slash else None


def why_not_planned(ask: Ask, variants: Mapping[Key, Variant]) -> str:
    """Return why a binding cannot be planned, or an empty string. `variants` are the planned ones."""
    if ask.required > MOST_REPLICAS:
        return f"it asks for more than {MOST_REPLICAS} replicas of capacity 1"
    for key, bound in zip(ask.variants, ask.binding.targets, strict=True):
        if key not in variants:
            return f"{bound.target.kind} {bound.target.name!r} cannot be planned"
    return ""


def holds_nothing(ask: Ask, variants: Mapping[Key, Variant]) -> bool:
    """Return whether no target's pods request accelerators: such targets need no place or plan."""
    return not any(variants[key].accelerators_per_replica for key in ask.variants)


def with_asks(snapshot: Snapshot, asks: Sequence[Ask]) -> Snapshot:
    """Return the snapshot with the bounds, capacities and loads of bindings.

    A binding that cannot be planned gets no load, so its running replicas are kept.
    """
    if not asks:
        return snapshot  # a copy would check every name of a large cluster again
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
    """Yield each target of the bindings as if it were the scale target of a VariantAutoscaling."""
    for ask in asks:
        yield from _stand_ins(ask)


def _stand_ins(ask: Ask) -> Iterator[Json]:
    metadata = ask.value["metadata"]
    annotations = metadata.get("annotations") or {}
    # If no target declares a cost, the prices of accelerators apply.
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
    """Return a target's variant with the bounds of its binding; a HorizontalPodAutoscaler only follows."""
    return replace(
        variant,
        min_replicas=target.min_replicas,
        max_replicas=target.max_replicas,
        may_scale_to_zero=True,
        capacity=Capacity(requests_per_second=capacity, source=CapacitySource.STATED),
    )


def _load(ask: Ask) -> ModelLoad:
    return ModelLoad(
        namespace=ask.key[0],
        model_id=ask.model,
        mixes_at_cost=True,
        measure="replicas" if ask.binding.is_alike else "replicas of capacity 1",
        requests_per_second=ask.required,
        upper_requests_per_second=ask.required,
        required_requests_per_second=ask.required,
        releasable_requests_per_second=ask.required,
    )
