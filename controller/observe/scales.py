"""Targets that are known only by their scale subresource: replicas and pod selector. Pure functions.

The requirements of a pod are taken from an existing pod. So a target that never had one is not planned; one
that had is planned by the last one seen. The rest of planning sees a workload with a template, and pods
marked with their target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from apiserver.kinds.core.selecting import parse_selector, selects
from apiserver.kinds.llmd.identity import is_planned
from apiserver.schema.json import Json, JsonValue
from controller.observe.pods import SELECTED_BY, is_present, target_of_pod
from controller.observe.targets import NODE_LABELS, POD_LABELS, REVISION_LABELS, TargetKey, target_key

_LONGEST_SELECTOR: Final = 4096

ADDED_LABELS: Final = REVISION_LABELS | POD_LABELS | NODE_LABELS
"""Labels that a pod gets after its template: they say nothing about the next pod of the target."""

NO_POD: Final = (
    "its scale is read, but no pod has shown yet what one needs: scale it to 1 once, and check that its"
    " scale's status.selector selects its pods and those of no other target"
)
"""Why a target without a pod is not planned."""


class UnreadableScaleError(Exception):
    """A scale subresource that cannot be planned with; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """The content of a scale subresource."""

    replicas: int
    selector: Json
    """The selector as a label selector with labels and expressions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleTargets:
    """The targets that are known by their scale, and why others are not."""

    workloads: Mapping[TargetKey, Json] = field(default_factory=dict)
    pods: Sequence[Json] = ()
    """All pods; those of these targets are marked."""

    unread: Mapping[TargetKey, str] = field(default_factory=dict)


ScaleReference = tuple[str, Json]
"""A namespace, and a valid reference to an object in it that is to be scaled."""


def scale_references(autoscalings: Iterable[Json]) -> Iterator[ScaleReference]:
    """Yield the references of VariantAutoscalings to their targets; invalid ones are omitted."""
    for item in autoscalings:
        reference = (item.get("spec") or {}).get("scaleTargetRef")
        if is_reference(reference):
            yield item["metadata"]["namespace"], reference


def scaled_targets(references: Iterable[ScaleReference]) -> Mapping[TargetKey, str]:
    """Return the targets of other kinds, with the API version for requesting their scale."""
    versions: dict[TargetKey, str] = {}
    for namespace, reference in references:
        if not is_planned(reference):
            key = target_key(namespace, reference)
            versions.setdefault(key, str(reference.get("apiVersion") or "apps/v1"))
    return versions


def is_reference(value: JsonValue) -> TypeGuard[Json]:
    """Return whether a value is a valid reference: the object may have bypassed admission."""
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("kind", "name"))


def scale_of(value: Json) -> Scale:
    """Return the content of an `autoscaling/v1` Scale. Raises UnreadableScaleError."""
    replicas = (value.get("spec") or {}).get("replicas", 0)
    text = (value.get("status") or {}).get("selector")
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        raise UnreadableScaleError(f"its scale requests {replicas!r} replicas")
    if not isinstance(text, str) or not text.strip():
        raise UnreadableScaleError(
            "its scale has no status.selector, by which its pods are found: its CustomResourceDefinition"
            " must set labelSelectorPath, and its controller must fill it"
        )
    if len(text) > _LONGEST_SELECTOR:  # every pod is matched with it
        limit = f"it has {len(text)} characters, of at most {_LONGEST_SELECTOR}"
        raise UnreadableScaleError(f"its scale's status.selector cannot be read: {limit}")
    try:
        return Scale(replicas=replicas, selector=parse_selector(text))
    except ValueError as error:
        raise UnreadableScaleError(f"its scale's status.selector cannot be read: {error}") from error


def with_scales(
    scales: Mapping[TargetKey, Scale | str],
    pods: Sequence[Json],
    templates: Mapping[TargetKey, Json],
    *,
    claimed: Collection[TargetKey],
) -> ScaleTargets:
    """Return the combination of scales and pods.

    `scales` has a message for each that could not be read, `templates` those of earlier pods, `claimed` the
    scaled targets of other kinds, whose pods belong to no one else.
    """
    workloads: dict[TargetKey, Json] = {}
    unread = {key: item for key, item in scales.items() if isinstance(item, str)}
    known = {key: item for key, item in scales.items() if isinstance(item, Scale)}
    at_home: dict[str, list[TargetKey]] = {}
    for key in sorted(known):
        at_home.setdefault(key.namespace, []).append(key)
    marked: list[Json] = []
    seen: dict[TargetKey, Json] = {}
    for pod in pods:
        owner = _selecting_target(pod, at_home, known) if target_of_pod(pod) not in claimed else None
        if owner is None:
            marked.append(pod)
            continue
        marked.append(pod | {"metadata": pod["metadata"] | {SELECTED_BY: owner}})
        if is_present(pod):
            seen.setdefault(owner, pod)
    for key, scale in known.items():
        template = template_of(seen[key]) if key in seen else templates.get(key)
        if template is None:
            unread[key] = NO_POD
        else:
            workloads[key] = {
                "metadata": {"namespace": key.namespace, "name": key.name},
                "spec": {"replicas": scale.replicas, "template": template},
            }
    return ScaleTargets(workloads=workloads, pods=marked if workloads or seen else pods, unread=unread)


def template_of(pod: Json) -> Json:
    """Return a template from which such a pod could have been created."""
    labels = pod["metadata"].get("labels") or {}
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {
        "metadata": {"labels": {name: text for name, text in labels.items() if name not in ADDED_LABELS}},
        "spec": spec,
    }


def _selecting_target(
    pod: Json, at_home: Mapping[str, Sequence[TargetKey]], scales: Mapping[TargetKey, Scale]
) -> TargetKey | None:
    metadata = pod["metadata"]
    candidates = at_home.get(metadata["namespace"], ())
    labels = metadata.get("labels") or {}
    return next((key for key in candidates if selects(scales[key].selector, labels)), None)
