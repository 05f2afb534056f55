"""Recorded requests: their times and lengths, without their text."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_COLUMNS = ("gap_ms", "prompt_tokens", "output_tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceEntry:
    """One recorded request; the offset is relative to the start of the trace."""

    offset_ms: int
    prompt_tokens: int
    output_tokens: int


Trace = tuple[TraceEntry, ...]
"""Recorded requests, sorted by offset."""


def encode(trace: Trace) -> bytes:
    """Return a trace as gzipped CSV with the gaps between requests. Equal traces give equal bytes."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    offsets_ms = [0, *(entry.offset_ms for entry in trace)]
    for (before_ms, offset_ms), entry in zip(pairwise(offsets_ms), trace, strict=True):
        writer.writerow((offset_ms - before_ms, entry.prompt_tokens, entry.output_tokens))
    return gzip.compress(text.getvalue().encode(), mtime=0)


def decode(content: bytes) -> Trace:
    """Return the trace in the result of `encode`. Raises ValueError for another header."""
    header, *rows = csv.reader(StringIO(gzip.decompress(content).decode()))
    if tuple(header) != _COLUMNS:
        raise ValueError(f"the first line must be {','.join(_COLUMNS)}, not {','.join(header)}")
    numbers = [(int(gap), int(prompt), int(output)) for gap, prompt, output in rows]
    offsets_ms = accumulate(gap for gap, _, _ in numbers)
    return tuple(
        TraceEntry(offset_ms=offset_ms, prompt_tokens=prompt, output_tokens=output)
        for offset_ms, (_, prompt, output) in zip(offsets_ms, numbers, strict=True)
    )


def shipped_traces() -> tuple[str, ...]:
    """Return the names of the traces in the package."""
    folder = files("controller.simulation") / "traces"
    return tuple(
        sorted(f.name.removesuffix(".csv.gz") for f in folder.iterdir() if f.name.endswith(".csv.gz"))
    )


@cache
def load_trace(name: str) -> Trace:
    """Return a trace of the package. Raises ValueError with the known names."""
    if name not in shipped_traces():
        raise ValueError(f"there is no trace {name!r}; supported values: {', '.join(shipped_traces())}")
    return decode((files("controller.simulation") / "traces" / f"{name}.csv.gz").read_bytes())


def piece(trace: Iterable[TraceEntry], *, from_seconds: float, to_seconds: float) -> Trace:
    """Return the entries with an offset in [from, to), relative to the start of the piece."""
    from_ms, to_ms = round(from_seconds * 1000), round(to_seconds * 1000)
    return tuple(
        TraceEntry(
            offset_ms=entry.offset_ms - from_ms,
            prompt_tokens=entry.prompt_tokens,
            output_tokens=entry.output_tokens,
        )
        for entry in trace
        if from_ms <= entry.offset_ms < to_ms
    )
