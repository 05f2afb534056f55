"""Conversion of Kubernetes objects and client measurements into an observation. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of, product_of
from controller.observe.claim import Claim, Claimant
from controller.observe.classes import class_of
from controller.observe.gather import World, claims_in
from controller.observe.pods import by_target, is_present, is_ready
from controller.observe.policies import Policies
from controller.observe.prices import accelerator_of, effective_cost
from controller.observe.targets import target_of
from hack.demo.observation import (
    AcceleratorView,
    BindingView,
    BoundView,
    ClientView,
    ModelView,
    Observation,
    VariantView,
)

_NOBODY = ClientView(requests_per_second=0.0, ttft_p90_ms=None, unfinished_requests=0)
_LOWEST_PRIORITY = 100


def observe(
    world: World,
    *,
    policies: Policies,
    clients: Mapping[str, ClientView],
    seconds: float,
    bindings: Sequence[Json] = (),
) -> Observation:
    """Return the observation; a variant whose Deployment does not exist is left out."""
    claims, groups = claims_in(world), defaultdict[str, list[tuple[Claim, Claimant]]](list)
    claimants = {item.key: item for item in claims.claimants}
    for claim in claims.readable:
        if claim.target in world.targets:
            groups[claim.model_id].append((claim, claimants[claim.key]))
    models = [
        _model(model_id, group, world=world, policies=policies, client=clients.get(model_id, _NOBODY))
        for model_id, group in groups.items()
    ]
    return Observation(
        seconds=seconds,
        models=tuple(sorted(models, key=lambda model: (model.priority, model.model_id))),
        accelerators=_accelerators(world),
        bindings=tuple(map(_binding, bindings)),
    )


def _binding(value: Json) -> BindingView:
    status = value.get("status") or {}
    placed = [item["status"] for item in status.get("conditions") or [] if item["type"] == "Placed"]
    return BindingView(
        name=value["metadata"]["name"],
        targets=tuple(
            BoundView(
                name=item["name"],
                current_replicas=item["currentReplicas"],
                desired_replicas=item.get("replicas"),
            )
            for item in status.get("targets") or []
        ),
        is_placed=placed == ["True"],
        message=(status.get("decision") or {}).get("message", ""),
    )


def _model(
    model_id: str,
    group: Sequence[tuple[Claim, Claimant]],
    *,
    world: World,
    policies: Policies,
    client: ClientView,
) -> ModelView:
    classes = (class_of(claim, policies) for claim, _ in group)
    best = min((item for item in classes if item), key=lambda item: item.priority, default=None)
    variants = (_variant(claim, claimant, world, policies) for claim, claimant in group)
    return ModelView(
        model_id=model_id,
        class_name=best.name if best else "",
        priority=best.priority if best else _LOWEST_PRIORITY,
        ttft_target_ms=best.ttft_ms.get(model_id) if best else None,
        clients=client,
        variants=tuple(sorted(variants, key=lambda variant: variant.name)),
    )


def _variant(claim: Claim, claimant: Claimant, world: World, policies: Policies) -> VariantView:
    scale_target = target_of(claim.target, world.targets[claim.target])
    decision = claimant.status.get("decision") or {}
    pods = by_target(world.pods).get(claim.target, ())
    is_legacy = "variantProfile" in claimant.value["spec"]
    return VariantView(
        name=claim.name,
        shape="annotated" if claimant.is_annotated else "legacy" if is_legacy else "current",
        accelerator=accelerator_of(claim, scale_target.pod_spec),
        accelerators_per_replica=scale_target.accelerators_per_replica,
        cost_per_replica=effective_cost(claim, scale_target, policies)[0],
        current_replicas=scale_target.replicas,
        placed_replicas=sum("nodeName" in pod["spec"] for pod in pods),
        ready_replicas=sum(map(is_ready, pods)),
        desired_replicas=(claimant.status.get("desiredOptimizedAlloc") or {}).get("numReplicas"),
        reason=decision.get("reason", ""),
        bound_by=decision.get("boundBy", ""),
        message=decision.get("message", ""),
    )


def _accelerators(world: World) -> tuple[AcceleratorView, ...]:
    types = {
        node["metadata"]["name"]: product_of(node["metadata"].get("labels") or {}) for node in world.nodes
    }
    total: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for node in world.nodes:
        total[types[node["metadata"]["name"]]] += accelerators_in(node["status"].get("allocatable") or {})
    for pod in world.pods:
        node_name = pod["spec"].get("nodeName")
        if node_name in types and is_present(pod):
            used[types[node_name]] += accelerators_of(pod["spec"])
    return tuple(
        AcceleratorView(name=name, used=used[name], total=total[name]) for name in sorted(total) if name
    )
