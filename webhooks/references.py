"""Warnings that depend on other objects.

They never cause a rejection, because manifests may be applied in any order. There are no warnings until the
caches are filled, and conversion does not use this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from apiserver.schema.kind import Reference
from webhooks.claims import Claimant

AUTOSCALER: Final = "HorizontalPodAutoscaler"
"""The kind of claimant that never yields a target to another one."""

_OF_ITS_OWN: Final = " by its own metrics: let it follow the decision, or delete it"


class Referents(Protocol):
    """The referenced objects that are known to exist, and the claimants of scale targets."""

    def has(self, reference: Reference, namespace: str) -> bool | None:
        """Tell whether the referenced object exists; None if that is unknown."""

    def place(self, reference: Reference, namespace: str) -> str:
        """Return the namespace in which the referenced object is looked up."""

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterable[Claimant]:
        """Return the other objects that scale a target, by kind and name."""


def advise(
    references: Sequence[Reference], namespace: str, referents: Referents, own: Claimant
) -> Iterator[str]:
    """Yield a warning for each referenced object that is missing and each target that others scale."""
    for reference in references:
        for kind, name in referents.others(reference, namespace, own) if reference.is_scaled else ():
            what = (
                f'{reference.path}: {reference.kind} "{reference.name}" is already scaled by {kind} "{name}"'
            )
            yield (
                f"{what}{_OF_ITS_OWN}" if kind == AUTOSCALER else f"{what}: the newer of the two is ignored"
            )
        if referents.has(reference, namespace) is False:
            what = f'{reference.kind} "{reference.name}"'
            what += f' with key "{reference.key}"' if reference.key else ""
            place = referents.place(reference, namespace)
            yield f'{reference.path}: {what} does not exist yet in namespace "{place}"'
