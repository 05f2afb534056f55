"""The columns of `kubectl get` that every kind has."""

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
