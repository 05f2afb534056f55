"""The autoscalers of scale targets: HorizontalPodAutoscalers, and ScaledObjects of KEDA. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from apiserver.kinds.annotated import reference_of
from apiserver.kinds.autoscalers import KEDA_LABEL, Autoscaler, autoscaler_of
from apiserver.kinds.following import Problem, following_problems, variant_subject
from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json, as_object
from controller.observe.claim import Claimant
from controller.observe.scales import is_reference
from controller.observe.targets import TargetKey, target_key

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
    by_target: dict[TargetKey, list[Autoscaler]] = {}
    to_come = tuple(_to_come(autoscalers, scaled_objects))
    for item, is_created in (*((item, True) for item in autoscalers), *((item, False) for item in to_come)):
        reference = as_object(item.get("spec")).get("scaleTargetRef")
        if is_reference(reference):
            namespace = item["metadata"]["namespace"]
            record = replace(autoscaler_of(item, declared.get(namespace)), is_created=is_created)
            by_target.setdefault(target_key(namespace, reference), []).append(record)
    return {key: tuple(sorted(items, key=_seniority)) for key, items in by_target.items()}


def _seniority(autoscaler: Autoscaler) -> tuple[str, str]:
    return autoscaler.created, autoscaler.name


def _to_come(autoscalers: Sequence[Json], scaled_objects: Sequence[Json]) -> Iterator[Json]:
    """Yield the HorizontalPodAutoscalers that KEDA has not created yet, as in files or while paused."""
    autoscalers_of = {
        (item["metadata"]["namespace"], as_object(item["metadata"].get("labels")).get(KEDA_LABEL))
        for item in autoscalers
    }
    for item in scaled_objects:
        metadata = item["metadata"]
        if key_of(item) not in autoscalers_of:
            labels = {KEDA_LABEL: metadata["name"]}
            yield {
                "metadata": {**metadata, "name": f"keda-hpa-{metadata['name']}", "labels": labels},
                "spec": {"scaleTargetRef": reference_of(item)},
            }


class VariantScalers:
    """The autoscalers of all targets, and whether they follow a variant."""

    def __init__(
        self, claimants: Iterable[Claimant], autoscalers: Mapping[TargetKey, tuple[Autoscaler, ...]]
    ) -> None:
        """Index the labels of the metrics of all variants that are published by this metric."""
        self._autoscalers = autoscalers
        self._labels: dict[str, dict[str, Mapping[str, str]]] = {}
        for item in claimants:
            if item.labels:
                namespace, name = item.key
                self._labels.setdefault(namespace, {})[name] = item.labels

    def of(self, target: TargetKey) -> tuple[Autoscaler, ...]:
        """Return the autoscalers of a target, the oldest first."""
        return self._autoscalers.get(target, ())

    def problems(self, key: Key, target: TargetKey) -> tuple[Problem, ...]:
        """Return why the target's autoscalers do not follow the decision on a variant.

        Empty for those of bindings, whose decisions are not published by this metric.
        """
        labels = self._labels.get(key[0], {})
        if key[1] not in labels:
            return ()
        return following_problems(self.of(target), variant_subject(labels[key[1]], labels.values()))
