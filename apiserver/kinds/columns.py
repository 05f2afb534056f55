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


def problem(*, priority: int = 0) -> Column:
    """Return a column that shows why something is wrong: the reason of the first condition that is False.

    The API server shows the first of several results only.
    """
    return Column(
        "Problem",
        "string",
        '.status.conditions[?(@.status=="False")].reason',
        "Reason of the first condition that is False; empty if none is.",
        priority=priority,
    )
