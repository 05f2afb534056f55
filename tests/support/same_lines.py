"""The lines of `stowplan check` and of kubectl for the same manifest, in the same form."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from apiserver import cli


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """The exit code and the output of a run of `stowplan check` on a file."""

    code: int
    text: str
    path: Path

    @property
    def lines(self) -> list[str]:
        """The lines without file positions and without the list that repeats them."""
        lines = [line.removeprefix(f"{self.path}:").partition(": ")[2] for line in self.text.splitlines()]
        return [line for line in lines if not line.startswith(("* unknown", "* duplicate"))]


def check(path: Path, *flags: str) -> Said:
    """Run `stowplan check` on a file, in this process: a hundred starts would take a minute."""
    with redirect_stdout(StringIO()) as out:
        code = cli.main(["check", str(path), *flags])
    return Said(code=code, text=out.getvalue(), path=path)


def lines_of_kubectl(errors: str, path: Path) -> list[str]:
    """Return what kubectl printed about a file, without its prefix and warnings that need a cluster."""
    lines = [line.rstrip().replace(f'error when creating "{path}": ', "") for line in errors.splitlines()]
    return [line for line in lines if not (line.startswith("Warning:") and "does not exist" in line)]
