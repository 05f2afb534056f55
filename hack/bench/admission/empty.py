"""Handlers without any logic: their cost is the minimum for a server on the same HTTP library."""

from __future__ import annotations

from collections.abc import Mapping

from hack.bench.in_process import Answerer


def answers() -> Mapping[str, Answerer]:
    """Return the handlers of reviews, by path."""
    return {"/mutate": lambda _: b"{}"}
