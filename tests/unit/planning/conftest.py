"""Lets the tests of planning share their builders: in importlib mode a test's folder is on no path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from controller.planning.columns import exact

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search over columns answer alone where the textbook model would have the last word."""
    monkeypatch.setattr(exact, "MOST_PLACES", 0)
