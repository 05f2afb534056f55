"""The results file of a benchmark: one JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hack.bench.goals import Goal
from hack.bench.machine import Machine
from hack.bench.pace import Pace


def results(
    benchmark: str,
    *,
    began: datetime,
    machine: Sequence[Machine],
    pace: Pace,
    settings: Mapping[str, Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    goals: Sequence[Goal],
) -> dict[str, Any]:
    """Return the document: `machine` at each time that it was looked at, `tables` by name, goals last."""
    return {
        "benchmark": benchmark,
        "began": began.isoformat(timespec="seconds"),
        "machine": [state.as_json() for state in machine],
        "pace": pace.as_json(),
        "settings": dict(settings),
        "tables": {name: [dict(row) for row in rows] for name, rows in tables.items()},
        "goals": [goal.as_json() for goal in goals],
    }


def write_results(path: Path, document: Mapping[str, Any]) -> None:
    """Write the document; raises OSError, and ValueError for a number that JSON does not have."""
    path.write_text(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n", "utf-8")
