"""Advice that takes a look at other objects.

Never a refusal: the order in which a folder of manifests is applied is free. Until the cache of targets is
filled there is no advice at all, and conversion does not even know that this module exists.
"""

from __future__ import annotations

from typing import Final, Protocol

from apiserver.kinds.llmd.conversion import implied_target, names_deployment
from apiserver.schema.json import Json
from webhooks.admission import Subject

_LABEL_VALUE_CHARACTERS: Final = 63


class Targets(Protocol):
    """What is known of Deployments; the cache of a cluster, or nothing yet."""

    def is_filled(self) -> bool:
        """Tell whether an absence means anything."""

    def has(self, namespace: str, name: str) -> bool:
        """Tell whether a Deployment of that name is there."""


class NoTargets:
    """Knows nothing: before the cache is filled, and where there is no cluster at all."""

    def is_filled(self) -> bool:
        """Return False: nothing can be said."""
        return False

    def has(self, namespace: str, name: str) -> bool:
        """Return False, which means nothing here."""
        del namespace, name
        return False


def advise(subject: Subject, targets: Targets) -> list[str]:
    """Return warnings about a VariantAutoscaling whose target or name will not work as it is."""
    if subject.kind.kind != "VariantAutoscaling":
        return []
    target = subject.value["spec"].get("scaleTargetRef") or implied_target(subject.value)
    return [*_kind_advice(target), *_target_advice(subject, target, targets), *_name_advice(subject)]


def _kind_advice(target: Json) -> list[str]:
    if names_deployment(target):
        return []
    return [f"spec.scaleTargetRef: only apps/v1 Deployments are planned for, not {target['kind']}"]


def _target_advice(subject: Subject, target: Json, targets: Targets) -> list[str]:
    if not targets.is_filled() or targets.has(subject.namespace, target["name"]):
        return []
    if not names_deployment(target):
        return []
    where = f'in namespace "{subject.namespace}"'
    return [f'spec.scaleTargetRef: Deployment "{target["name"]}" does not exist yet {where}']


def _name_advice(subject: Subject) -> list[str]:
    if len(subject.name) <= _LABEL_VALUE_CHARACTERS:
        return []
    limit = f"longer than {_LABEL_VALUE_CHARACTERS} characters"
    return [f"metadata.name: {limit}: no HorizontalPodAutoscaler can select its metric by it"]
