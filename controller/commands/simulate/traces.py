"""Load traces by name or file, for scenarios and for --trace."""

from __future__ import annotations

from pathlib import Path

from controller.commands.simulate.given import one_source, problem_lines
from controller.simulation.recorded import read_trace
from controller.simulation.trace import Trace, load_trace, shipped_traces


def trace_of(name: str, *, folder: Path) -> tuple[Trace, list[str]]:
    """Return a trace that is shipped, or in a file of a folder; or its problems."""
    if name in shipped_traces():
        return load_trace(name), []
    path = folder / name
    if not path.exists():
        known = ", ".join(shipped_traces())
        return (), [f"trace {name!r}: there is no file {path}, and no such included trace; there are {known}"]
    source = one_source(str(path))
    if source.problem:
        return (), [f"{source.name}: {source.problem}"]
    found = read_trace(source.data, file=source.name)
    return found.trace, problem_lines(found.problems, str(path))
