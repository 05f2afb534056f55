"""Timestamps in the format of the Kubernetes API: UTC, RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apiserver.schema.json import JsonValue


def utc_now() -> datetime:
    """Return the current time, with time zone."""
    return datetime.now(UTC)


def rfc3339_micro(moment: datetime) -> str:
    """Return a `MicroTime`, with the six decimals that its parser requires."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: JsonValue) -> datetime | None:
    """Return the time of a timestamp in UTC, or None if it is missing or invalid."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
