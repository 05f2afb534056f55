"""The autoscalers of scale targets: HorizontalPodAutoscalers, and ScaledObjects of KEDA. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from apiserver.kinds.autoscalers import KEDA_LABEL, Autoscaler, autoscaler_of
from apiserver.kinds.following import Problem, following_problems, variant_subject
from apiserver.kinds.identity import Key, key_of
from apiserver.kinds.metric_labels import variant_labels
from apiserver.schema.json import Json, as_object
from controller.observe.scales import is_reference
from controller.observe.targets import TargetKey, target_key

_DEFAULTS: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}
"""What a ScaledObject scales if its reference does not say."""

RESTING: Final = "is disabled because the workload was set to 0 replicas: scale it to 1"
"""What is wrong with autoscalers that are switched off, after their names."""


def is_resting(autoscalers: Sequence[Autoscaler], replicas: int) -> bool:
    """Tell whether nothing starts a target that has no replicas, whatever is decided."""
    return replicas == 0 and bool(autoscalers) and all(item.is_switched_off for item in autoscalers)


def autoscalers_by_target(
    autoscalers: Sequence[Json], scaled_objects: Sequence[Json] = ()
) -> Mapping[TargetKey, tuple[Autoscaler, ...]]:
    """Return the autoscalers of each target, the oldest first.

    A ScaledObject counts once, whether or not KEDA has created its HorizontalPodAutoscaler.
    """
    declared: dict[str, dict[str, Json]] = {}
    for item in scaled_objects:
        namespace, name = key_of(item)
        declared.setdefault(namespace, {})[name] = item
    found: dict[TargetKey, list[Autoscaler]] = {}
    for item in (*autoscalers, *_to_come(autoscalers, scaled_objects)):
        reference = as_object(item.get("spec")).get("scaleTargetRef")
        if is_reference(reference):
            namespace = item["metadata"]["namespace"]
            record = autoscaler_of(item, declared.get(namespace))
            found.setdefault(target_key(namespace, reference), []).append(record)
    return {key: tuple(sorted(items, key=_seniority)) for key, items in found.items()}


def _seniority(autoscaler: Autoscaler) -> tuple[str, str]:
    return autoscaler.created, autoscaler.name


def _to_come(autoscalers: Sequence[Json], scaled_objects: Sequence[Json]) -> Iterator[Json]:
    """Yield the HorizontalPodAutoscalers that KEDA has not created yet, as in files or while paused."""
    made = {
        (item["metadata"]["namespace"], as_object(item["metadata"].get("labels")).get(KEDA_LABEL))
        for item in autoscalers
    }
    for item in scaled_objects:
        metadata, spec = item["metadata"], as_object(item.get("spec"))
        if key_of(item) not in made:
            labels = {KEDA_LABEL: metadata["name"]}
            yield {
                "metadata": {**metadata, "name": f"keda-hpa-{metadata['name']}", "labels": labels},
                "spec": {"scaleTargetRef": _DEFAULTS | as_object(spec.get("scaleTargetRef"))},
            }


class VariantScalers:
    """The autoscalers of all targets, and whether they follow a VariantAutoscaling."""

    def __init__(
        self, autoscalings: Sequence[Json], autoscalers: Mapping[TargetKey, tuple[Autoscaler, ...]]
    ) -> None:
        """Index the labels of all metrics; `autoscalings` may be malformed."""
        self._autoscalers = autoscalers
        self._labels: dict[str, dict[str, Mapping[str, str]]] = {}
        for item in autoscalings:
            namespace, name = key_of(item)
            self._labels.setdefault(namespace, {})[name] = variant_labels(item)

    def of(self, target: TargetKey) -> tuple[Autoscaler, ...]:
        """Return the autoscalers of a target, the oldest first."""
        return self._autoscalers.get(target, ())

    def problems(self, key: Key, target: TargetKey) -> tuple[Problem, ...]:
        """Return why the target's autoscalers do not follow the decision on a VariantAutoscaling.

        Empty for variants of other objects, whose decisions are not published by this metric.
        """
        labels = self._labels.get(key[0], {})
        if key[1] not in labels:
            return ()
        return following_problems(self.of(target), variant_subject(labels[key[1]], labels.values()))
