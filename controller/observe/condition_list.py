"""Build the list of conditions of a status."""

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
    value: Json,
    findings: Mapping[C, tuple[bool | None, R, str]],
    *,
    now: datetime,
    published: Json | None = None,
) -> list[Json]:
    """Return findings as conditions (None: Unknown). Transition times change with the status only.

    `published` is the published status of an object without one of its own.
    """
    status = value.get("status") if published is None else published
    known = {item.get("type"): item for item in (status or {}).get("conditions") or []}
    return [
        {
            "type": str(kind),
            "status": _status(holds),
            "reason": str(reason),
            "message": shorten(text),
            "observedGeneration": value["metadata"].get("generation", 0),
            "lastTransitionTime": _transition_time(known.get(str(kind)), _status(holds), now=now),
        }
        for kind, (holds, reason, text) in findings.items()
    ]


def shorten(message: str) -> str:
    """Return a message shortened to the maximum length in a status."""
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"


def moment(time: datetime) -> str:
    """Return a time as Kubernetes formats it: RFC 3339, whole seconds, UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(holds: bool | None) -> str:
    return "Unknown" if holds is None else str(holds)


def _transition_time(known: Json | None, status: str, *, now: datetime) -> str:
    if known is not None and known.get("status") == status and known.get("lastTransitionTime"):
        return str(known["lastTransitionTime"])
    return moment(now)
