"""Moments as the Kubernetes API writes them: UTC, RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the present moment, aware of its zone."""
    return datetime.now(UTC)


def rfc3339_micro(moment: datetime) -> str:
    """Write a `MicroTime`: always six decimals, which its parser insists on."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
