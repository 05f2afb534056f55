"""The record of a decision on an annotated autoscaler, which has no status of its own to write to.

All records of a namespace are in one ConfigMap there, since permissions can only be limited to names of
objects: one entry for each autoscaler, by its uid, in the form of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Final

from apiserver.kinds.llmd.v1alpha2 import VariantAutoscalingStatus
from apiserver.kinds.meta import ObjectName
from apiserver.schema.declaration import declaration
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length
from apiserver.schema.validation import validate

CONFIG_MAP: Final = "stowplan-decisions"
"""Name of the ConfigMap with the records of its namespace."""

MOST_BYTES: Final = 1_000_000
"""The maximum size of all records of a namespace in bytes, somewhat below that of a ConfigMap."""


@declaration()
class DecisionRecord:
    """What was published about one annotated autoscaler."""

    kind: Annotated[str, Length(1, 63)]
    """The kind of the autoscaler."""

    name: ObjectName
    """The name of the autoscaler."""

    labels: Annotated[dict[str, str], Items(maximum=16)]
    """The labels of its external metrics; empty if it has none."""

    status: VariantAutoscalingStatus
    """The decision, in the form of the status of a VariantAutoscaling."""


def record_text(value: Json, labels: Mapping[str, str], status: Json) -> str:
    """Return the record of a raw autoscaler as text, one byte for each character."""
    record = {
        "kind": value["kind"],
        "name": value["metadata"]["name"],
        "labels": dict(labels),
        "status": status,
    }
    return json.dumps(record, separators=(",", ":"))


def read_record(text: str | None) -> Json:
    """Return a record, or an empty one if the text is none: users of the namespace may have edited it."""
    try:
        record = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and not validate(DecisionRecord, record) else {}
