"""Types of raw JSON: the only place where `Any` is used."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object as received: untyped, with unknown members preserved."""

JsonValue = Any
"""Any JSON value: object, array, string, number, boolean or null."""
