"""What is still to be done for a Model: its expansion against what there is of it. Pure.

Requests must find engines at every moment of a change. So a route that exists is changed only when all that
it would newly send requests to is ready, and what a Model no longer asks for goes only when all that it asks
for is ready and routed to; how that is scaled does not count. An adapter leaves the list of its engines when
no route leads to it. While a backend cannot be made, what spans all backends stays as it is. But nothing of
ours scales a workload that is not of the Model, or leads requests to its backend.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from apiserver.kinds.kthena.autoscalingpolicybinding_targets import target_object
from apiserver.schema.json import Json
from controller.models.adapters import listed, with_entries
from controller.models.applied import is_current
from controller.models.expansion import Expansion
from controller.models.loading import routed_pairs
from controller.models.parts import BACKEND_LABEL, backend_name

WORKLOADS: Final = ("Deployment", "LeaderWorkerSet")
_ORDER: Final = (
    "ConfigMap",
    *WORKLOADS,
    "Service",
    "ModelServer",
    "ModelRoute",
    "AutoscalingPolicy",
    "AutoscalingPolicyBinding",
    "HorizontalPodAutoscaler",
)
"""Kinds in the order in which they are made; they go in the opposite one."""

_SCALING: Final = ("AutoscalingPolicy", "AutoscalingPolicyBinding", "HorizontalPodAutoscaler")
"""Kinds without which what there is serves as well."""

_ACTING: Final = ("Service", "ModelServer", "AutoscalingPolicyBinding", "HorizontalPodAutoscaler")
"""Kinds of a backend that scale its workloads, or lead requests to them."""


class ChildKey(NamedTuple):
    """Which object of the Model's namespace."""

    kind: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What there is of a Model."""

    children: Mapping[ChildKey, Json]
    """What we made for the Model, and what there is of the names that it needs, whoever made it."""

    applied: Mapping[ChildKey, str] = field(default_factory=dict)
    """Fingerprints of what this process has applied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """What is to be done now."""

    apply: tuple[Json, ...]
    delete: tuple[Json, ...]
    awaited: tuple[str, ...]
    """What a change waits for, in phrases."""


def key_of(value: Json) -> ChildKey:
    """Return kind and name of an object."""
    return ChildKey(value["kind"], value["metadata"]["name"])


def belongs_to(child: Json, uid: str) -> bool:
    """Tell whether an object is controlled by the Model of this uid."""
    owners = child["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == uid and owner.get("controller") for owner in owners)


def taken_backends(objects: Collection[Json], children: Mapping[ChildKey, Json], uid: str) -> frozenset[str]:
    """Return the backends of the Model of this uid that need the name of a workload which is not of it."""
    return frozenset(
        item["metadata"]["labels"][BACKEND_LABEL]
        for item in objects
        if item["kind"] in WORKLOADS
        and (live := children.get(key_of(item))) is not None
        and not belongs_to(live, uid)
    )


def acts_on(item: Json, workloads: Collection[Json]) -> bool:
    """Tell whether an object scales some workloads, or leads requests to the backends that they are of."""
    backends = {workload["metadata"]["labels"][BACKEND_LABEL] for workload in workloads}
    if (item["metadata"].get("labels") or {}).get(BACKEND_LABEL) in backends:
        return item["kind"] in _ACTING
    return not {key_of(workload) for workload in workloads}.isdisjoint(_targets(item.get("spec") or {}))


def is_scaled(expansion: Expansion, workload: Json) -> bool:
    """Tell whether somebody else decides how many replicas a workload has."""
    targets = [
        target
        for item in expansion.objects
        if item["kind"] == "AutoscalingPolicyBinding"
        for target in _targets(item["spec"])
    ]
    return key_of(workload) in targets


def steps(model: Json, expansion: Expansion, standing: Standing) -> Steps:
    """Return what is to be applied and deleted now, in order."""
    uid = str(model["metadata"]["uid"])
    asked = {key_of(item): item for item in expansion.objects}
    unready = [*_unready(expansion, standing)]
    astray = _astray(model, expansion)
    apply: list[Json] = []
    held: list[str] = []
    for key, item in sorted(asked.items(), key=lambda entry: _ORDER.index(entry[0].kind)):
        live = standing.children.get(key)
        if live is not None and not belongs_to(live, uid):
            continue
        is_for_all = BACKEND_LABEL not in item["metadata"]["labels"]
        if live is not None and not expansion.is_whole and is_for_all and not astray(live):
            continue
        wanted = _wanted(expansion, _with_routed(item, live, standing), live)
        if live is not None and is_current(wanted, live, standing.applied.get(key)):
            continue
        new = _new_targets(item, live)
        awaited = [name for name in unready if name in new]
        if awaited:
            held += [f"{name} to be ready before it gets requests" for name in awaited]
            continue
        apply.append(wanted)
    unasked = [item for key, item in standing.children.items() if key not in asked and belongs_to(item, uid)]
    at_once = [item for item in unasked if astray(item)]
    superfluous = [item for item in unasked if not astray(item)]
    is_routed = all(item["kind"] in _SCALING for item in apply)
    if superfluous and (not is_routed or held or unready or not expansion.is_whole):
        names = ", ".join(sorted({item["metadata"]["name"] for item in superfluous}))
        held = held or [f"{name} to be ready before {names} is deleted" for name in unready]
        held = held or [f"all objects of the Model to be created before {names} is deleted"]
        superfluous = []
    delete = sorted(
        at_once + superfluous, key=lambda item: (-_ORDER.index(item["kind"]), item["metadata"]["name"])
    )
    return Steps(apply=tuple(apply), delete=tuple(delete), awaited=tuple(dict.fromkeys(held)))


def available(workload: Json) -> int:
    """Return how many replicas of a workload serve."""
    status = workload.get("status") or {}
    return int(status.get("availableReplicas", status.get("readyReplicas")) or 0)


def wanted_replicas(workload: Json) -> int:
    """Return how many replicas a workload asks for."""
    replicas = workload["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def serves(workload: Json | None) -> bool:
    """Tell whether a workload serves, or is to have no replica."""
    if workload is None:
        return False
    return available(workload) > 0 or wanted_replicas(workload) == 0


def _astray(model: Json, expansion: Expansion) -> Callable[[Json], bool]:
    """Return what tells whether an object acts on a workload that is not of the Model."""
    workloads = [
        item
        for item in expansion.objects
        if item["kind"] in WORKLOADS and item["metadata"]["labels"][BACKEND_LABEL] in expansion.taken
    ]
    servers = {backend_name(model, {"name": name}) for name in expansion.taken}
    return lambda item: acts_on(item, workloads) or not servers.isdisjoint(_routed(item))


def _unready(expansion: Expansion, standing: Standing) -> Iterator[str]:
    """Yield the names of ModelServers some of whose workloads do not serve."""
    backends = {
        item["metadata"]["name"]: item["metadata"]["labels"][BACKEND_LABEL]
        for item in expansion.objects
        if item["kind"] == "ModelServer"
    }
    for name, backend in backends.items():
        workloads = [
            standing.children.get(key_of(item))
            for item in expansion.objects
            if item["kind"] in WORKLOADS and item["metadata"]["labels"][BACKEND_LABEL] == backend
        ]
        if not all(serves(item) for item in workloads):
            yield name


def _wanted(expansion: Expansion, item: Json, live: Json | None) -> Json:
    """Return what to apply: with the replicas that somebody else decided."""
    if live is None or item["kind"] not in WORKLOADS or not is_scaled(expansion, item):
        return item
    # Not to leave them out: what nobody owns any longer falls back to its default. With the version
    # that was seen, a number that changes meanwhile is a conflict and not lost.
    metadata = {**item["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    return {**item, "metadata": metadata, "spec": {**item["spec"], "replicas": wanted_replicas(live)}}


def _with_routed(item: Json, live: Json | None, standing: Standing) -> Json:
    """Return a list of adapters with those that requests are still sent to: they leave the route before."""
    if item["kind"] != "ConfigMap" or live is None:
        return item
    backend, asked = item["metadata"]["labels"][BACKEND_LABEL], listed(item)
    routed = routed_pairs(standing.children.values())
    kept = {
        name: entry for name, entry in listed(live).items() if name not in asked and (backend, name) in routed
    }
    return with_entries(item, {**asked, **kept}) if kept else item


def _new_targets(item: Json, live: Json | None) -> frozenset[str]:
    """Return what a route newly sends requests to; nothing of a route that does not exist yet."""
    if item["kind"] != "ModelRoute" or live is None:
        return frozenset()
    return _routed(item) - _routed(live)


def _routed(route: Json) -> frozenset[str]:
    return frozenset(
        target["modelServerName"]
        for rule in (route.get("spec") or {}).get("rules") or []
        for target in rule.get("targetModels") or []
    )


def _targets(spec: Json) -> Iterator[ChildKey]:
    params = (spec.get("optimizerConfiguration") or {}).get("params") or []
    for item in filter(None, (spec.get("scalingConfiguration"), *params)):
        target = target_object(item["target"]["targetRef"])
        yield ChildKey(target.kind, target.name)
