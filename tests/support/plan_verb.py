"""Types of the fixtures that run `stowplan plan` and `simulate`, from the `conftest.py` of their tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Plan = Callable[..., tuple[int, str, list[str]]]
"""A function that writes files and runs the command; it returns exit code, output, and error lines."""

Simulate = Callable[..., tuple[int, str, list[str]]]
"""A function that runs the command; it returns exit code, output, and error lines."""

Parts = Callable[..., list[dict[str, Any]]]
"""A function that returns the objects of a small cluster."""

World = Callable[..., str]
"""A function that returns these objects as one document."""

Granted = Callable[[str], dict[str, int]]
"""A function that returns the replicas of each variant in JSON output."""
