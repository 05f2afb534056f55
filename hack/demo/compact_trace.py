"""Turn a published trace (TIMESTAMP,ContextTokens,GeneratedTokens) into the form that the package ships.

Run it as `python -m hack.demo.compact_trace SOURCE.csv TARGET.csv.gz`.
"""

from __future__ import annotations

import csv
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from controller.simulation.trace import Trace, TraceEntry, encode

if TYPE_CHECKING:
    from collections.abc import Iterable

_ISO_DIGITS = len("2023-11-16 18:17:03.979960")  # the seventh decimal is more than datetime reads


def published(lines: Iterable[str]) -> Trace:
    """Read the lines of a published trace; times become offsets from the first request."""
    rows = list(csv.DictReader(lines))
    times = [datetime.fromisoformat(row["TIMESTAMP"][:_ISO_DIGITS]) for row in rows]
    return tuple(
        TraceEntry(
            offset_ms=round((time - times[0]).total_seconds() * 1000),
            prompt_tokens=int(row["ContextTokens"]),
            output_tokens=int(row["GeneratedTokens"]),
        )
        for time, row in zip(times, rows, strict=True)
    )


def main(arguments: list[str]) -> int:
    """Read the first file, write the second, say how much."""
    if len(arguments) != 2:  # noqa: PLR2004 - source and target
        print(__doc__, file=sys.stderr)
        return 2
    source, target = map(Path, arguments)
    with source.open(newline="") as lines:
        trace = published(lines)
    target.write_bytes(encode(trace))
    print(f"{target}: {len(trace)} requests, {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
