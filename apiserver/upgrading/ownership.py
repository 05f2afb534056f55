"""The label by which objects are recognized as ours."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json

PART_OF: Final = "app.kubernetes.io/part-of"
"""The label that names the application of an object."""
OURS: Final = "stowplan"
"""Its value on our objects."""


def is_ours(live: Json) -> bool:
    """Tell whether an object has our label."""
    return (live["metadata"].get("labels") or {}).get(PART_OF) == OURS


def without_label(live: Json) -> Json:
    """Return a definition without our label."""
    metadata = live["metadata"]
    if not is_ours(live):
        return live
    labels = {name: value for name, value in metadata["labels"].items() if name != PART_OF}
    return live | {"metadata": metadata | {"labels": labels}}
