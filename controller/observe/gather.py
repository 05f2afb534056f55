"""Everything that one decision is taken from, put together from caches: pure, no call is made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.kinds.llmd.identity import names_deployment
from apiserver.kinds.llmd.v1alpha2 import VariantAutoscaling
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.engines import EngineRecords
from controller.observe.inventory import inventory
from controller.observe.pods import by_deployment, is_ready
from controller.observe.policies import Policies
from controller.observe.variants import Surroundings, is_switched_off, variant_of
from controller.planning.snapshot import Snapshot, Variant

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Raw objects as the caches held them at one moment."""

    autoscalings: Sequence[Json]
    deployments: Mapping[Key, Json]
    pods: Sequence[Json]
    nodes: Sequence[Json]
    autoscalers: Sequence[Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """The snapshot, and by VariantAutoscaling what could not be part of it and who will not act on it."""

    snapshot: Snapshot
    unplanned: Mapping[Key, Unplanned] = field(default_factory=dict)
    unheeded: Mapping[Key, str] = field(default_factory=dict)
    """Why nobody acts on the decision for a variant, and what to do about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unplanned:
    """Why a VariantAutoscaling is left out: a reason for programs and a sentence for people."""

    reason: str
    message: str


def models_by_target(world: World) -> Mapping[Key, str]:
    """Return the model that each claimed Deployment is to serve, as the oldest claim says."""
    models: dict[Key, str] = {}
    for autoscaling in sorted(world.autoscalings, key=_seniority):
        if not _malformation(autoscaling) and _is_deployment(autoscaling):
            models.setdefault(_target(autoscaling), autoscaling["spec"]["modelID"])
    return models


def engine_pods(world: World) -> tuple[Json, ...]:
    """Return the ready pods of the scale targets: those that are worth asking."""
    groups = by_deployment(world.pods)
    return tuple(
        pod for key in sorted(models_by_target(world)) for pod in groups.get(key, ()) if is_ready(pod)
    )


def gather(
    world: World,
    *,
    policies: Policies,
    engines: EngineRecords,
    now_seconds: float,
    may_scale_to_zero: bool,
) -> Gathered:
    """Return the snapshot of the moment; each VariantAutoscaling is in it, or in `unplanned`."""
    groups = by_deployment(world.pods)
    autoscalers = {_scaled(item): item for item in world.autoscalers}
    claimed: set[Key] = set()
    variants: list[Variant] = []
    unplanned: dict[Key, Unplanned] = {}
    unheeded: dict[Key, str] = {}
    for autoscaling in sorted(world.autoscalings, key=_seniority):
        key = _key(autoscaling)
        obstacle = _malformation(autoscaling) or _obstacle(autoscaling, world, claimed)
        if obstacle is not None:
            unplanned[key] = obstacle
            continue
        target = _target(autoscaling)
        around = Surroundings(
            deployment=world.deployments[target],
            pods=groups.get(target, ()),
            autoscaler=autoscalers.get(target),
            policies=policies,
            may_scale_to_zero=may_scale_to_zero,
            sample=lambda pod: engines.sample(pod, now_seconds=now_seconds),
        )
        try:
            variants.append(variant_of(autoscaling, around))
        except ValueError as error:
            unplanned[key] = Unplanned(reason="InvalidConfiguration", message=str(error))
            continue
        claimed.add(target)
        why = _why_unheeded(world.deployments[target], autoscalers.get(target))
        unheeded |= {key: why} if why else {}
    nodes = inventory(world.nodes, world.pods, frozenset(claimed))
    snapshot = Snapshot(nodes=nodes, variants=tuple(variants))
    return Gathered(snapshot=snapshot, unplanned=unplanned, unheeded=unheeded)


def _malformation(autoscaling: Json) -> Unplanned | None:
    """Return why an object cannot be read at all: it was stored before admission was there, or around it."""
    found = validate(VariantAutoscaling, {"spec": autoscaling.get("spec")})
    return Unplanned(reason="InvalidConfiguration", message=str(found[0])) if found else None


def _obstacle(autoscaling: Json, world: World, claimed: set[Key]) -> Unplanned | None:
    reference, target = autoscaling["spec"]["scaleTargetRef"], _target(autoscaling)
    if not _is_deployment(autoscaling):
        text = f"only apps/v1 Deployments are planned for, not {reference['kind']} {reference['name']!r}"
        return Unplanned(reason="TargetNotSupported", message=text)
    if target not in world.deployments:
        text = f"Deployment {target[1]!r} does not exist in namespace {target[0]!r}"
        return Unplanned(reason="TargetNotFound", message=text)
    if target in claimed:
        text = (
            f"an older VariantAutoscaling already decides on Deployment {target[1]!r}; delete one of the two"
        )
        return Unplanned(reason="TargetClaimed", message=text)
    return None


def _why_unheeded(deployment: Json, autoscaler: Json | None) -> str:
    if autoscaler is None:
        return (
            "no HorizontalPodAutoscaler targets it, so unless something else reads the metric nothing scales"
        )
    if deployment["spec"].get("replicas") == 0 and is_switched_off(autoscaler):
        name = autoscaler["metadata"]["name"]
        return f"HorizontalPodAutoscaler {name!r} is switched off by 0 replicas set by hand: scale it to 1"
    return ""


def _is_deployment(autoscaling: Json) -> bool:
    return names_deployment(autoscaling["spec"]["scaleTargetRef"])


def _key(obj: Json) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _target(autoscaling: Json) -> Key:
    return autoscaling["metadata"]["namespace"], autoscaling["spec"]["scaleTargetRef"]["name"]


def _scaled(autoscaler: Json) -> Key:
    reference = autoscaler["spec"]["scaleTargetRef"]
    name = reference["name"] if reference["kind"] == "Deployment" else ""
    return autoscaler["metadata"]["namespace"], name


def _seniority(autoscaling: Json) -> tuple[str, Key]:
    return autoscaling["metadata"].get("creationTimestamp") or "", _key(autoscaling)
