"""The columns of `kubectl get` that several kinds have."""

from __future__ import annotations

from typing import Final

from apiserver.schema.kind import Column

AGE: Final = Column(
    name="Age",
    type="date",
    json_path=".metadata.creationTimestamp",
    description="Time since the object was created.",
)
"""How old the object is, which stands last among what is shown without asking for more."""


def condition(kind: str, name: str, *, description: str, member: str = "status", priority: int = 0) -> Column:
    """Return a column that shows the status of a condition of that type, or another member of it."""
    return Column(
        name=name,
        type="string",
        json_path=f'.status.conditions[?(@.type=="{kind}")].{member}',
        description=description,
        priority=priority,
    )
