"""Printer columns for `kubectl get` that several kinds share."""

from __future__ import annotations

from typing import Final

from apiserver.schema.kind import Column

AGE: Final = Column("Age", "date", ".metadata.creationTimestamp", "Time since the object was created.")
"""The age of the object. It is the last of the columns that are shown without `-o wide`."""


def condition(kind: str, name: str, *, description: str, member: str = "status", priority: int = 0) -> Column:
    """Return a column that shows the status, or another member, of the condition of type `kind`."""
    return Column(
        name, "string", f'.status.conditions[?(@.type=="{kind}")].{member}', description, priority=priority
    )


READY: Final = (
    Column(
        "Ready",
        "string",
        '.status.conditions[?(@.type=="Ready")].status',
        "Whether nothing prevents it from working.",
    ),
    Column(
        "Reason",
        "string",
        '.status.conditions[?(@.type=="Ready")].reason',
        "Reason of the worst problem, of any condition.",
    ),
)
"""Whether an object is ready, and why not. kubectl prints the reason of a problem even if it is."""
