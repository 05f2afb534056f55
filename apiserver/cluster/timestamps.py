"""Timestamps in the format of the Kubernetes API: UTC, RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current time, with time zone."""
    return datetime.now(UTC)


def rfc3339_micro(moment: datetime) -> str:
    """Return a `MicroTime`, with the six decimals that its parser requires."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
