"""The raw-JSON border: the only place where `Any` is at home."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object as the wire carries it: unknown members survive, nothing is typed yet."""

JsonValue = Any
"""Any JSON value: object, array, text, number, boolean or null."""
