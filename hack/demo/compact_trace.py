"""Turn a published trace (TIMESTAMP,ContextTokens,GeneratedTokens) into the form that the package ships.

Run it as `python -m hack.demo.compact_trace SOURCE.csv TARGET.csv.gz`.
"""

from __future__ import annotations

import csv
import gzip
import sys
from io import StringIO
from itertools import pairwise
from pathlib import Path

from controller.commands.simulate.recordings import read_trace
from controller.simulation.workload import Trace


def main(arguments: list[str]) -> int:
    """Convert the first file into the second, and print its size."""
    if len(arguments) != 2:  # noqa: PLR2004 (source and target)
        print(__doc__, file=sys.stderr)
        return 2
    source, target = map(Path, arguments)
    trace, problems = read_trace(source.read_bytes(), file=str(source))
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 2
    target.write_bytes(encode(trace))
    print(f"{target}: {len(trace)} requests, {target.stat().st_size} bytes")
    return 0


def encode(trace: Trace) -> bytes:
    """Return a trace as gzipped CSV with the gaps between requests. Equal traces give equal bytes."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("gap_ms", "prompt_tokens", "output_tokens"))
    offsets_ms = [0, *(entry.offset_ms for entry in trace)]
    for (before_ms, offset_ms), entry in zip(pairwise(offsets_ms), trace, strict=True):
        writer.writerow((offset_ms - before_ms, entry.prompt_tokens, entry.output_tokens))
    return gzip.compress(text.getvalue().encode(), mtime=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
