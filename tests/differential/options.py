"""The number of objects to judge."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

ENOUGH: Final = 500
"""Every known difference occurs with this many objects of each kind, and those of `TELLING` numbers."""

ENOUGH_AT_SERVER: Final = 200
"""The same for differences from an API server, which takes longer for an object than all other judges."""

TELLING: Final[Mapping[str, Sequence[int]]] = {
    "AutoscalingPolicy/v1alpha1": (1293,),  # leap second
    "AutoscalingPolicyBinding/v1alpha1": (2826,),  # a list for a formatted text
    "VariantAutoscaling/v1alpha1": (567, 993),  # items without keys; a spec among faults of the schema
}
"""Numbers of objects with a difference that occurs in less than one of `ENOUGH` objects."""


def judged_count(enough: int = ENOUGH) -> int:
    """Return the number of objects of each kind and version to judge: STOWPLAN_JUDGED, or else `enough`."""
    return int(os.environ.get("STOWPLAN_JUDGED", enough))


def judged_numbers(name: str, enough: int = ENOUGH) -> Sequence[int]:
    """Return the numbers of the objects of a version to judge."""
    count = judged_count(enough)
    return [*range(count), *(number for number in TELLING.get(name, ()) if number >= count)]
