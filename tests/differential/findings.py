"""Findings of judges: paths and reasons, in one notation for all judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json

_NOWHERE: Final = "<nil>"
_UNCHECKED: Final = "some validation rules were not checked"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One error: the path of a field, and the reason of a status cause."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} ({self.reason.removeprefix('FieldValue')})"


Findings = frozenset[Finding]


def of_error(error: FieldError) -> Finding:
    """Return the finding for an error of our judge."""
    return Finding(plain(str(error.path)), error.reason)


def of_causes(causes: Sequence[Json]) -> Findings:
    """Return the findings for the causes in a server's Status, without causes that have no field."""
    return frozenset(
        Finding(plain(cause["field"]), cause["reason"]) for cause in causes if cause["field"] != _NOWHERE
    )


def are_rules_unchecked(causes: Sequence[Json]) -> bool:
    """Tell whether a server reports that it checked no rules because of errors by the schema."""
    return any(cause["field"] == _NOWHERE and _UNCHECKED in cause["message"] for cause in causes)


def plain(path: str) -> str:
    """Return a path with dots only, because judges write map keys differently."""
    return path.replace("[", ".").replace("]", "")


def shown(findings: Findings) -> str:
    """Return findings as a line of text."""
    return ", ".join(map(str, sorted(findings))) or "nothing"
