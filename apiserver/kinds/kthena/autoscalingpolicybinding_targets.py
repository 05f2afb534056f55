"""The references of a binding: its targets with their capacities, its policy and its service class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.kinds.core.names import group_of
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath

SERVICE_CLASS: Final = "stowplan.dev/service-class"
"""The annotation of a binding that names the service class, and thereby the priority, of its targets:
`CONFIGMAP/KEY`."""

DEFAULT_KIND: Final = "ModelInfer"
"""The kind of a reference without one, as in the releases of this kind."""

DEFAULT_API_VERSION: Final = "workload.volcano.sh/v1alpha1"
"""The API version of that kind."""


_API_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ModelServing": "workload.serving.volcano.sh/v1alpha1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}
_EXAMPLES: Final = ("Deployment", "ModelServing")


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetObject:
    """The object of a target reference, in the namespace of the binding."""

    api_version: str
    kind: str
    name: str

    @property
    def group(self) -> str:
        """Return the API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]


def target_object(reference: Json) -> TargetObject:
    """Return the object of a `targetRef`, with defaults for unset fields.

    A kind or apiVersion that cannot be derived from the other is empty; this never happens in an admitted
    object.
    """
    kind = reference.get("kind") or ("" if reference.get("apiVersion") else DEFAULT_KIND)
    api_version = reference.get("apiVersion") or (DEFAULT_API_VERSION if kind == DEFAULT_KIND else "")
    return TargetObject(api_version=api_version, kind=kind, name=reference.get("name", ""))


def targets_of(spec: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield each target of a binding's spec with its path below the spec."""
    scaling = spec.get("scalingConfiguration", {})
    if "target" in scaling:
        yield ("scalingConfiguration", "target"), scaling["target"]
    for position, param in enumerate(spec.get("optimizerConfiguration", {}).get("params", [])):
        if "target" in param:
            yield ("optimizerConfiguration", "params", position, "target"), param["target"]


def service_class_of(value: Json) -> Json | None:
    """Return the service class named by a binding's annotation, in the form of a `sloClassRef`."""
    annotations = (value.get("metadata") or {}).get("annotations") or {}
    name, _, key = str(annotations.get(SERVICE_CLASS, "")).partition("/")
    return {"name": name, "key": key} if name and key else None


def named_by(value: Json) -> Iterator[Reference]:
    """Yield the references of a binding: its policy, its targets and its service class.

    A target whose kind or API version is unknown or malformed has an empty kind.
    """
    spec, here = value.get("spec", {}), FieldPath().child("spec")
    policy = spec.get("policyRef", {}).get("name", "")
    yield Reference(path=here.child("policyRef"), group=REGISTRY, kind="AutoscalingPolicy", name=policy)
    for below, target in targets_of(spec):
        meant = target_object(target.get("targetRef", {}))
        around = _beside(spec, below)
        yield Reference(
            path=FieldPath((*here.parts, *below, "targetRef")),
            group=meant.group,
            kind=meant.kind if meant.api_version and group_of(meant.api_version) is not None else "",
            name=meant.name,
            is_scaled=True,
            bounds=(around.get("minReplicas", 0), around.get("maxReplicas", 0)),
        )
    if meant_class := service_class_of(value):
        yield Reference(
            path=FieldPath().child("metadata", "annotations").key(SERVICE_CLASS),
            group="",
            kind="ConfigMap",
            is_settings=True,
            **meant_class,
        )


def _beside(spec: Json, below: tuple[str | int, ...]) -> Json:
    """Return the object that contains a target and its replica bounds."""
    here: JsonValue = spec
    for part in below[:-1]:
        here = here[part]
    parent: Json = here
    return parent


def fully_named(reference: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for a reference with only one of kind and API version."""
    kind, api_version = reference.get("kind"), reference.get("apiVersion")
    if api_version and not kind:
        return [errors.required(path.child("kind"), "must be set together with `apiVersion`")]
    if kind and kind != DEFAULT_KIND and not api_version:
        return [errors.required(path.child("apiVersion"), _what_to_write(kind))]
    return ()


def _what_to_write(kind: str) -> str:
    known = _API_VERSIONS.get(kind)
    if known is not None:
        return f"must be {known} for a {kind}"
    examples = " or ".join(f"{_API_VERSIONS[example]} for a {example}" for example in _EXAMPLES)
    return f"must be set to the group and version of the kind, such as {examples}"


def distinct_targets(params: list[Json], path: FieldPath) -> list[FieldError]:
    """Return an error for each item with the same target as an earlier one."""
    faults: list[FieldError] = []
    seen: set[tuple[str, str, str]] = set()
    for position, param in enumerate(params):
        reference = param.get("target", {}).get("targetRef", {})
        meant = target_object(reference)
        identity = (meant.group, meant.kind, meant.name)
        if meant.name and identity in seen:
            faults.append(errors.duplicate(path.index(position).child("target", "targetRef"), reference))
        seen.add(identity)
    return faults


def own_namespace(value: Json, path: FieldPath) -> list[FieldError]:
    """Return an error for each target outside the binding's namespace; none if that is unset."""
    own = (value.get("metadata") or {}).get("namespace")
    detail = "must be the namespace of the binding itself, or left out"
    return [
        errors.invalid(FieldPath((*path.parts, "spec", *below, "targetRef", "namespace")), namespace, detail)
        for below, target in (targets_of(value.get("spec", {})) if own else ())
        if (namespace := target.get("targetRef", {}).get("namespace")) and namespace != own
    ]


CAPACITY: Final = "stowplan.dev/capacity"
"""The annotation of a binding with the relative capacities of the replicas of heterogeneous targets.

The fields of a binding cannot express that a replica on one accelerator serves more than one on another,
which is needed to share a load among both. `llama-h100=2.5,llama-a100=1` does: the target value of a metric
applies to a replica of capacity 1, and to others in proportion.
"""

_NUMBER: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?\Z")
_SAYS: Final = "must be NAME=NUMBER,NAME=NUMBER with numbers from 0.001 to 9999, such as llama-h100=2.5"


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacities:
    """Capacities by target name, with one sentence for each invalid part of the annotation."""

    of: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def capacities_of(binding: Json) -> Capacities:
    """Return the capacities that a binding's annotation sets; without it, all replicas have capacity 1."""
    text = ((binding.get("metadata") or {}).get("annotations") or {}).get(CAPACITY)
    if not isinstance(text, str):
        return Capacities()
    entries = [part.strip().rpartition("=") for part in text.split(",") if part.strip()]
    good = {name: float(number) for name, _, number in entries if _is_capacity(name, number)}
    return Capacities(of=good, problems=tuple(_problems(binding, entries, good)))


def _is_capacity(name: str, number: str) -> bool:
    return bool(name and _NUMBER.match(number)) and float(number) > 0


def _problems(binding: Json, entries: list[tuple[str, str, str]], good: Mapping[str, float]) -> Iterator[str]:
    where = f"metadata.annotations[{CAPACITY}]"
    if any(not _is_capacity(name, number) for name, _, number in entries):
        yield f"{where}: {_SAYS}; invalid values count as 1"
    params = ((binding.get("spec") or {}).get("optimizerConfiguration") or {}).get("params") or []
    names = {param.get("target", {}).get("targetRef", {}).get("name") for param in params}
    if strangers := sorted(name for name in good if name not in names):
        yield f"{where}: optimizerConfiguration has no target named {', '.join(strangers)}"
