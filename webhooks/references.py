"""Advice that takes a look at other objects.

Never a refusal: the order in which a folder of manifests is applied is free. Until a cache is filled there
is no advice, and conversion does not even know that this module exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from apiserver.schema.kind import Reference
from webhooks.claims import Claimant

AUTOSCALER: Final = "HorizontalPodAutoscaler"
"""The kind of claimant that never stands back."""

_OF_ITS_OWN: Final = " by its own metrics: let it follow the decision, or delete it"


class Referents(Protocol):
    """What is known of the objects that ours may name."""

    def has(self, reference: Reference, namespace: str) -> bool | None:
        """Tell whether what is named is there; None where nothing can be said."""

    def place(self, reference: Reference, namespace: str) -> str:
        """Return the namespace in which a named object is looked for."""

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterable[Claimant]:
        """Return who else scales a target, by kind and name."""


class NoReferents:
    """Knows nothing: before the caches are filled, and where there is no cluster at all."""

    def has(self, reference: Reference, namespace: str) -> bool | None:
        """Return None: nothing can be said."""
        del reference, namespace
        return None

    def place(self, reference: Reference, namespace: str) -> str:
        """Return the namespace of the object itself."""
        del reference
        return namespace

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterable[Claimant]:
        """Return nobody."""
        del reference, namespace, own
        return ()


def advise(
    references: Sequence[Reference], namespace: str, referents: Referents, own: Claimant
) -> Iterator[str]:
    """Yield one warning for each named object that is not there, and for each target that others scale."""
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
