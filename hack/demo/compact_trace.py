"""Turn a published trace (TIMESTAMP,ContextTokens,GeneratedTokens) into the form that the package ships.

Run it as `python -m hack.demo.compact_trace SOURCE.csv TARGET.csv.gz`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from controller.simulation.recorded import read_trace
from controller.simulation.trace import encode


def main(arguments: list[str]) -> int:
    """Convert the first file into the second, and print its size."""
    if len(arguments) != 2:  # noqa: PLR2004 (source and target)
        print(__doc__, file=sys.stderr)
        return 2
    source, target = map(Path, arguments)
    found = read_trace(source.read_bytes(), file=str(source))
    for problem in found.problems:
        print(problem, file=sys.stderr)
    if found.problems:
        return 2
    target.write_bytes(encode(found.trace))
    print(f"{target}: {len(found.trace)} requests, {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
