"""Status of an InferenceObjective: its pool, and the models that the pool's pods serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.kinds.inference.inferenceobjective import POOL_GROUP, POOL_KIND
from apiserver.schema.json import Json
from controller.observe.objectives import POOL_GROUPS, pool_labels
from controller.observe.pods import target_of_pod
from controller.observe.targets import TargetKey
from controller.traffic.conditions import Finding, Found, TrafficCondition, TrafficReason, acceptance
from controller.traffic.endpoints import Endpoints, endpoints, selectors_of, selects


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolWorld:
    """Related objects in the namespace of an objective."""

    pools: Mapping[str, Mapping[str, Json]]
    """InferencePools by group and name, without groups that are not served."""

    pods: Sequence[Json] = ()
    servers: Sequence[Json] = ()
    """ModelServers."""

    models: Mapping[TargetKey, str] = field(default_factory=dict)
    """The models of scale targets, according to VariantAutoscalings."""


def objective_found(objective: Json, world: PoolWorld) -> Found:
    """Return the status of an InferenceObjective."""
    pool = _pool((objective.get("spec") or {}).get("poolRef"), world)
    if isinstance(pool, dict):
        found = endpoints(pool_labels(pool), world.pods)
        text = f"InferencePool {pool['metadata']['name']!r}: {found.resolved[2]}{_models(found, world)}"
        resolved: Finding = (True, TrafficReason.RESOLVED, text)
        ready = found.readiness
    else:
        resolved = ready = pool
    return Found(
        findings={
            TrafficCondition.ACCEPTED: acceptance(objective),
            TrafficCondition.RESOLVED_REFS: resolved,
            TrafficCondition.READY: ready,
        }
    )


def _pool(reference: Json | None, world: PoolWorld) -> Json | Finding:
    """Return the referenced pool, or the finding that there is none."""
    if reference is None:
        return False, TrafficReason.POOL_NOT_FOUND, "spec: not set: the objective names no pool"
    group, kind = reference.get("group", POOL_GROUP), reference.get("kind", POOL_KIND)
    name = str(reference.get("name", ""))
    if kind != POOL_KIND or group not in POOL_GROUPS:
        text = f"spec.poolRef: {kind}.{group or 'core'} is not a pool; specify an {POOL_KIND} of {POOL_GROUP}"
        return False, TrafficReason.INVALID_KIND, text
    if group not in world.pools:
        text = (
            f"{POOL_KIND}s of {group} are not served by this cluster: install that definition, or change"
            " poolRef.group"
        )
        return False, TrafficReason.POOLS_NOT_SERVED, text
    found = world.pools[group].get(name)
    if found is not None:
        return found
    elsewhere = next((other for other in POOL_GROUPS if name in world.pools.get(other, {})), "")
    hint = f"; there is one of that name in {elsewhere}: set poolRef.group" if elsewhere else ""
    text = f"{POOL_KIND} {name!r} of {group} does not exist in this namespace{hint}"
    return False, TrafficReason.POOL_NOT_FOUND, text


def _models(found: Endpoints, world: PoolWorld) -> str:
    """Return the text about the models that a pool's pods serve, as far as declared."""
    if not found.pods:
        return ""
    targets = {target_of_pod(pod) for pod in found.pods}
    models = {world.models[target] for target in targets if target is not None and target in world.models}
    models |= {
        model
        for server in world.servers
        if (model := (server.get("spec") or {}).get("model"))
        and any(selects(labels, pod) for labels in selectors_of(server).values() for pod in found.pods)
    }
    if not models:
        return "; no VariantAutoscaling or ModelServer specifies which model they serve"
    return f"; they serve {', '.join(map(repr, sorted(models)))}"
