"""Lets the tests of planning share their builders: in importlib mode a test's folder is on no path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
