"""The user's input: files, and the scenario in them, or all of their problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.closedloop.manifests import Manifests
from controller.closedloop.scenario import Scenario
from controller.commands.check.documents import Source, read_sources

_MOST_TOLD: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A scenario, the objects of a live cluster if it is built from those, and the policies that it names.

    Without a scenario there are problems.
    """

    scenario: Scenario | None = None
    manifests: Manifests | None = None
    policies: tuple[str, ...] = ("stowplan",)
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def one_source(name: str, *, what: str = "file") -> Source:
    """Return the content of one file, which must not be a directory, or why it cannot be read."""
    if Path(name).is_dir():
        return Source(name=name, problem=f"is a directory: specify one {what}")
    (source,) = read_sources([name])
    return source


def problem_lines(problems: Sequence[str], file: str) -> list[str]:
    """Return the problems with the lines of a file; of many, the first ones and the number of the others."""
    more = len(problems) - _MOST_TOLD
    return [*problems[:_MOST_TOLD], *([f"{file}: {more} more lines are invalid"] if more > 0 else [])]
