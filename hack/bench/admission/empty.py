"""Answers that decide nothing: what they cost, any server of ours on the same library costs too."""

from __future__ import annotations

from collections.abc import Mapping

from hack.bench.in_process import Answerer


def answers() -> Mapping[str, Answerer]:
    """Return how reviews are answered, by path."""
    return {"/mutate": lambda _: b"{}"}
