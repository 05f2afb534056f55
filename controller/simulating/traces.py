"""Load traces by name or file, for scenarios and for --trace."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from apiserver.checking.sources import Source, read_sources
from controller.simulation.recorded import read_trace
from controller.simulation.trace import Trace, load_trace, shipped_traces

_MOST_TOLD: Final = 20


def trace_of(name: str, *, folder: Path) -> tuple[Trace, list[str]]:
    """Return a trace that is shipped, or in a file of a folder; or its problems."""
    if name in shipped_traces():
        return load_trace(name), []
    path = folder / name
    if not path.exists():
        known = ", ".join(shipped_traces())
        return (), [f"trace {name!r}: there is no file {path}, and no such included trace; there are {known}"]
    (source,) = _files(path)
    if source.problem:
        return (), [f"{source.name}: {source.problem}"]
    found = read_trace(source.data, file=source.name)
    told = [str(problem) for problem in found.problems]
    if len(told) > _MOST_TOLD:
        told = [*told[:_MOST_TOLD], f"{path}: {len(told) - _MOST_TOLD} more lines are invalid"]
    return found.trace, told


def _files(path: Path) -> list[Source]:
    if path.is_dir():
        return [Source(name=str(path), problem="is a directory: specify one file")]
    return list(read_sources([str(path)]))
