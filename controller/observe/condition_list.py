"""Conditions as a status lists them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeVar

from apiserver.schema.json import Json

_LONGEST_MESSAGE: Final = 1024

C = TypeVar("C", bound=StrEnum)
R = TypeVar("R", bound=StrEnum)


def condition_list(
    value: Json, findings: Mapping[C, tuple[bool | None, R, str]], *, now: datetime
) -> list[Json]:
    """Return what was found of an object, as conditions (None: unknown). Times change where these do."""
    known = {item.get("type"): item for item in (value.get("status") or {}).get("conditions") or []}
    return [
        {
            "type": str(kind),
            "status": _status(holds),
            "reason": str(reason),
            "message": text,
            "observedGeneration": value["metadata"].get("generation", 0),
            "lastTransitionTime": _transition_time(known.get(str(kind)), _status(holds), now=now),
        }
        for kind, (holds, reason, text) in findings.items()
    ]


def shortened(message: str) -> str:
    """Return a message of the length that a status takes."""
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"


def moment(time: datetime) -> str:
    """Return a time as Kubernetes writes it: RFC 3339, whole seconds, UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(holds: bool | None) -> str:
    return "Unknown" if holds is None else str(holds)


def _transition_time(known: Json | None, status: str, *, now: datetime) -> str:
    if known is not None and known.get("status") == status and known.get("lastTransitionTime"):
        return str(known["lastTransitionTime"])
    return moment(now)
