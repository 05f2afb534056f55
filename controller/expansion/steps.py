"""The next steps for a Model, from its expansion and the existing objects. Pure.

Requests must find engines at every moment of a change. So an existing route is changed only when all its new
targets are ready. Objects that a Model no longer needs are deleted only when all that it needs is ready and
routed to, scaling aside. An adapter leaves the engines' list when no route leads to it. While a backend
cannot be created, objects that span all backends stay as they are. But none of our objects scales a workload
that is not the Model's, or routes requests to its backend.

All objects with the labels of a Model's are cached, whoever made them, and each may have a megabyte: only
the parts that decisions read are kept, and digests replace the rest, to detect changes.

Whether an object is to be applied is told by fingerprints of the applied and of the live object, in memory
only. A new process applies everything once, which reverts edits made while no process ran, and is otherwise a
no-op. Not all kinds have a generation that would reveal an edit, and without a fingerprint, defaulting and
normalization by the API server look like edits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.identity import METADATA
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import target_object
from apiserver.kinds.kthena.groups import SERVING
from apiserver.schema.json import Json, JsonValue, as_list, as_object
from controller.expansion.adapters import LIST, listed_adapters, routed_pairs, with_entries
from controller.expansion.expansion import Expansion
from controller.expansion.parts import BACKEND_LABEL, backend_name
from controller.traffic.status import targets_of

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
"""Kinds in the order of their creation; they are deleted in reverse order."""

_SCALING: Final = ("AutoscalingPolicy", "AutoscalingPolicyBinding", "HorizontalPodAutoscaler")
"""Kinds that are not needed for serving."""

_ACTING: Final = ("Service", "ModelServer", "AutoscalingPolicyBinding", "HorizontalPodAutoscaler")
"""Kinds that scale a backend's workloads or route requests to them."""


class ChildKey(NamedTuple):
    """Kind and name of an object in the Model's namespace."""

    kind: str
    name: str
    group: str = ""
    """The API group of Kthena's releases, whose kinds have the names of ours; empty for all other groups."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExistingObjects:
    """The existing objects of a Model."""

    children: Mapping[ChildKey, Json]
    """Objects made for the Model, and objects of any origin with names that it needs."""

    applied: Mapping[ChildKey, str] = field(default_factory=dict)
    """Fingerprints of the objects that this process has applied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """The objects to apply and delete now."""

    apply: tuple[Json, ...]
    delete: tuple[Json, ...]
    awaited: tuple[str, ...]
    """Conditions that changes wait for, as phrases."""


def key_of(value: Json) -> ChildKey:
    """Return the key of an object."""
    group = str(value.get("apiVersion", "")).partition("/")[0]
    return ChildKey(value["kind"], value["metadata"]["name"], key_group(group))


def key_group(group: str) -> str:
    """Return an API group as it is in a `ChildKey`."""
    return group if group == SERVING else ""


def belongs_to(child: Json, uid: str) -> bool:
    """Tell whether the Model with this uid is the controller of an object."""
    owners = child["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == uid and owner.get("controller") for owner in owners)


def workloads_by_backend(
    objects: Collection[Json], children: Mapping[ChildKey, Json], uid: str
) -> Mapping[str, Sequence[tuple[Json, Json | None]]]:
    """Return the wanted workloads of the Model with this uid by backend, each with the existing one."""
    workloads: dict[str, list[tuple[Json, Json | None]]] = {}
    for item in objects:
        if item["kind"] in WORKLOADS:
            live = children.get(key_of(item))
            own = live if live is not None and belongs_to(live, uid) else None
            workloads.setdefault(item["metadata"]["labels"][BACKEND_LABEL], []).append((item, own))
    return workloads


def taken_backends(objects: Collection[Json], children: Mapping[ChildKey, Json], uid: str) -> frozenset[str]:
    """Return the backends of the Model with this uid whose workload name is taken by another object."""
    return frozenset(
        backend
        for backend, workloads in workloads_by_backend(objects, children, uid).items()
        if any(own is None and key_of(item) in children for item, own in workloads)
    )


def resting_backends(
    objects: Collection[Json], children: Mapping[ChildKey, Json], uid: str
) -> frozenset[str]:
    """Return the backends of the Model with this uid of which a workload has no available replica."""
    return frozenset(
        backend
        for backend, workloads in workloads_by_backend(objects, children, uid).items()
        if not all(own is not None and available(own) for _, own in workloads)
    )


def decided_replicas(children: Mapping[ChildKey, Json]) -> Mapping[ChildKey, int]:
    """Return the replicas that bindings decided for workloads, according to their statuses."""
    return {
        ChildKey(str(target.get("kind")), str(target.get("name"))): int(target["replicas"])
        for key, item in children.items()
        if key.kind == "AutoscalingPolicyBinding"
        for target in map(as_object, as_list(as_object(item.get("status")).get("targets")))
        if isinstance(target.get("replicas"), int)
    }


def acts_on(item: Json, workloads: Collection[Json]) -> bool:
    """Tell whether an object scales some workloads, or routes requests to their backends."""
    backends = {workload["metadata"]["labels"][BACKEND_LABEL] for workload in workloads}
    if (item["metadata"].get("labels") or {}).get(BACKEND_LABEL) in backends:
        return item["kind"] in _ACTING
    return not {key_of(workload) for workload in workloads}.isdisjoint(_targets(item.get("spec") or {}))


def steps(model: Json, expansion: Expansion, existing: ExistingObjects) -> Steps:
    """Return the objects to apply and delete now, in order."""
    uid = str(model["metadata"]["uid"])
    requested = {key_of(item): item for item in expansion.objects}
    unready = _unready(expansion, existing, uid)
    routed = routed_pairs(item for item in existing.children.values() if belongs_to(item, uid))
    scaled = {
        target
        for item in expansion.objects
        if item["kind"] == "AutoscalingPolicyBinding"
        for target in _targets(item["spec"])
    }
    unscaled = requested.keys() - existing.children.keys()
    astray = _astray(model, expansion)
    apply: list[Json] = []
    waits: list[str] = []
    for key, item in sorted(requested.items(), key=lambda entry: _ORDER.index(entry[0].kind)):
        live = existing.children.get(key)
        if live is not None and not belongs_to(live, uid):
            continue
        is_for_all = BACKEND_LABEL not in item["metadata"]["labels"]
        if live is not None and not expansion.is_whole and is_for_all and not astray(live):
            continue
        starts = ChildKey("HorizontalPodAutoscaler", key.name) in unscaled
        desired = _desired_object(_with_routed(item, live, routed), live, scaled, starts=starts)
        if live is not None and is_current(desired, live, existing.applied.get(key)):
            continue
        new = (
            {*targets_of(item)} - {*targets_of(live)} if live is not None and key.kind == "ModelRoute" else ()
        )
        if awaited := [name for name in unready if name in new]:
            waits += [f"{name} to be ready before it gets requests" for name in awaited]
            continue
        apply.append(desired)
    unasked = [
        item for key, item in existing.children.items() if key not in requested and belongs_to(item, uid)
    ]
    at_once = [item for item in unasked if astray(item)]
    superfluous = [item for item in unasked if not astray(item)]
    # Nothing but scaling may be left to apply: otherwise, requests might still reach what would be deleted.
    is_routed = all(item["kind"] in _SCALING for item in apply)
    if superfluous and (not is_routed or waits or unready or not expansion.is_whole):
        names = ", ".join(sorted({_label(item, requested) for item in superfluous}))
        waits = waits or [f"{name} to be ready before {names} is deleted" for name in unready]
        waits = waits or [f"all objects of the Model to be created before {names} is deleted"]
        superfluous = []
    delete = sorted(
        at_once + superfluous, key=lambda item: (-_ORDER.index(item["kind"]), item["metadata"]["name"])
    )
    return Steps(apply=tuple(apply), delete=tuple(delete), awaited=tuple(dict.fromkeys(waits)))


def _label(item: Json, requested: Collection[ChildKey]) -> str:
    """Return the name of an object, with its group if the Model needs that name in another group."""
    key, group = key_of(item), item["apiVersion"].partition("/")[0]
    is_moved = any((other.kind, other.name) == (key.kind, key.name) for other in requested)
    return f"{key.name} of {group}" if is_moved else key.name


def available(workload: Json) -> int:
    """Return the number of serving replicas of a workload."""
    status = workload.get("status") or {}
    return int(status.get("availableReplicas", status.get("readyReplicas")) or 0)


def wanted_replicas(workload: Json) -> int:
    """Return the number of replicas that a workload requests."""
    replicas = workload["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def serves(workload: Json | None) -> bool:
    """Tell whether a workload serves, or is meant to have no replicas."""
    if workload is None:
        return False
    return available(workload) > 0 or wanted_replicas(workload) == 0


def _astray(model: Json, expansion: Expansion) -> Callable[[Json], bool]:
    """Return a function that tells whether an object acts on a workload that is not the Model's."""
    workloads = [
        item
        for item in expansion.objects
        if item["kind"] in WORKLOADS and item["metadata"]["labels"][BACKEND_LABEL] in expansion.taken_names
    ]
    servers = {backend_name(model, {"name": name}) for name in expansion.taken_names}
    return lambda item: acts_on(item, workloads) or not servers.isdisjoint(targets_of(item))


def _unready(expansion: Expansion, existing: ExistingObjects, uid: str) -> list[str]:
    """Return the names of ModelServers with a workload that does not serve."""
    workloads = workloads_by_backend(expansion.objects, existing.children, uid)
    return [
        item["metadata"]["name"]
        for item in expansion.objects
        if item["kind"] == "ModelServer"
        and not all(serves(own) for _, own in workloads.get(item["metadata"]["labels"][BACKEND_LABEL], ()))
    ]


def _desired_object(item: Json, live: Json | None, scaled: Collection[ChildKey], *, starts: bool) -> Json:
    """Return the object to apply; replicas of `scaled` workloads keep their current number.

    If its autoscaler `starts`, a workload without replicas gets its first ones: none is started by it.
    """
    if live is None or key_of(item) not in scaled:
        return item
    # Leaving them out would reset them to the default, as no field manager would own them. With the resource
    # version that was read, a concurrent change causes a conflict and is not lost.
    metadata = {**item["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    replicas = wanted_replicas(live) or (wanted_replicas(item) if starts else 0)
    return {**item, "metadata": metadata, "spec": {**item["spec"], "replicas": replicas}}


def _with_routed(item: Json, live: Json | None, routed: Collection[tuple[str, str]]) -> Json:
    """Return a list of adapters that keeps the `routed` ones: they must leave the route first."""
    if item["kind"] != "ConfigMap" or live is None:
        return item
    backend, requested = item["metadata"]["labels"][BACKEND_LABEL], listed_adapters(item)
    kept = {
        name: entry
        for name, entry in listed_adapters(live).items()
        if name not in requested and (backend, name) in routed
    }
    return with_entries(item, {**requested, **kept}) if kept else item


def _targets(spec: Json) -> Iterator[ChildKey]:
    params = (spec.get("optimizerConfiguration") or {}).get("params") or []
    for item in filter(None, (spec.get("scalingConfiguration"), *params)):
        target = target_object(item["target"]["targetRef"])
        yield ChildKey(target.kind, target.name)


_METADATA: Final = (*METADATA, "labels", "ownerReferences")
_WHOLE: Final = ("apiVersion", "kind", "status")
_SPEC: Final = ("replicas", "rules", "loraAdapters", "scalingConfiguration", "optimizerConfiguration")
_LONGEST_LIST: Final = 768 << 10
"""Length of a list of adapters; 256 with the longest sources, of which 128 leave a route, have less."""


def digest_object(value: Json) -> Json:
    """Return an object with digests instead of what no decision reads. Equal objects give equal results."""
    digested = {name: item for name, item in value.items() if name in _WHOLE}
    metadata = value["metadata"]
    digested["metadata"] = {name: metadata[name] for name in _METADATA if name in metadata}
    own = metadata.get("annotations") or {}
    if annotations := {name: text for name, text in own.items() if name.startswith(PREFIX)}:
        digested["metadata"]["annotations"] = annotations
    for name in value.keys() - {*_WHOLE, "metadata"}:
        item = value[name]
        if name == "spec" and isinstance(item, dict):
            digested[name] = {key: part if key in _SPEC else digest(part) for key, part in item.items()}
        elif name == "data":
            digested[name] = {
                key: text if key == LIST and len(text) <= _LONGEST_LIST else digest(text)
                for key, text in item.items()
            }
        else:
            digested[name] = digest(item)
    return digested


_NO_CONTENT = ("apiVersion", "kind", "metadata", "status")


def fingerprint(desired: Json, live: Json) -> str:
    """Return a digest of the applied and of the live object, which changes if either of them does.

    Metadata counts only as far as it is applied, because others may add to it. Replicas do not count.
    """
    parts = [
        _applied_metadata(desired, desired),
        _content(desired),
        _applied_metadata(live, desired),
        _content(live),
    ]
    return digest(parts)


def digest(value: JsonValue) -> str:
    """Return a digest of JSON, which does not depend on the order of keys."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def is_current(desired: Json, live: Json, applied: str | None) -> bool:
    """Tell whether nothing needs to be applied; `applied` is the fingerprint of the last apply."""
    replicas = desired.get("spec", {}).get("replicas")
    has_replicas = replicas is None or replicas == live["spec"].get("replicas")
    return has_replicas and applied == fingerprint(desired, live)


def _content(value: Json) -> Json:
    """Return everything but metadata, status and replicas, which another component may control."""
    content = {name: item for name, item in value.items() if name not in _NO_CONTENT}
    if "spec" in content:
        content["spec"] = {name: item for name, item in content["spec"].items() if name != "replicas"}
    return content


def _applied_metadata(value: Json, desired: Json) -> Json:
    metadata, requested = value["metadata"], desired["metadata"]
    applied: Json = {
        member: {name: (metadata.get(member) or {}).get(name) for name in requested.get(member) or {}}
        for member in ("labels", "annotations")
    }
    owners = {owner["uid"] for owner in requested.get("ownerReferences") or []}
    applied["owners"] = [
        owner for owner in metadata.get("ownerReferences") or [] if owner.get("uid") in owners
    ]
    return applied
