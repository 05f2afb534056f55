"""Warnings that depend on other objects.

They never cause a rejection, because manifests may be applied in any order. There are no warnings until the
caches are filled, and conversion does not use this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from apiserver.kinds.autoscalers import Autoscaler
from apiserver.kinds.following import Problem, following_problems, target_subject, variant_subject
from apiserver.kinds.metric_labels import variant_labels
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from webhooks.claims import Claimant


class Referents(Protocol):
    """The referenced objects that are known to exist, and the claimants of scale targets."""

    def has(self, reference: Reference, namespace: str) -> bool | None:
        """Tell whether the referenced object exists; None if that is unknown."""

    def place(self, reference: Reference, namespace: str) -> str:
        """Return the namespace in which the referenced object is looked up."""

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterable[Claimant]:
        """Return the other objects that decide on a target, by kind and name."""

    def autoscalers(self, reference: Reference, namespace: str) -> Sequence[Autoscaler]:
        """Return the HorizontalPodAutoscalers of a target."""


def advise(
    references: Sequence[Reference], value: Json, referents: Referents, own: Claimant
) -> Iterator[str]:
    """Yield a warning for each referenced object that is missing, and for each target that others scale.

    These include autoscalers that do not follow the decisions on this object as they are meant.
    """
    namespace = str(value["metadata"].get("namespace") or "")
    for reference in references:
        what = f'{reference.path}: {reference.kind} "{reference.name}"'
        for kind, name in referents.others(reference, namespace, own) if reference.is_scaled else ():
            yield f'{what} is already scaled by {kind} "{name}": the newer of the two is ignored'
        for problem in _misread(reference, value, referents, own) if reference.is_scaled else ():
            yield f"{what}: {problem.message}"
        if referents.has(reference, namespace) is False:
            key = f' with key "{reference.key}"' if reference.key else ""
            place = referents.place(reference, namespace)
            yield f'{what}{key} does not exist yet in namespace "{place}"'


def _misread(reference: Reference, value: Json, referents: Referents, own: Claimant) -> Iterable[Problem]:
    """Return why the autoscalers of a target do not follow the decisions on an object."""
    metadata = {"name": "", **value["metadata"]}  # a create request may have generateName only
    named = value | {"metadata": metadata}
    if own[0] == "VariantAutoscaling":
        subject = variant_subject(variant_labels(named))
    else:
        subject = target_subject(named, reference.kind, reference.name)
    autoscalers = referents.autoscalers(reference, str(metadata.get("namespace") or ""))
    return following_problems(autoscalers, subject)
