"""Commands of `stowplan`, run in this process: a hundred starts would take a minute."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from apiserver import cli


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """The output with single spaces, however its lines are broken."""
        return " ".join(self.out.split())


def stowplan(*arguments: str) -> Ended:
    """Run a command to its end."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = cli.main(arguments)
    return Ended(code=code, out=out.getvalue(), err=err.getvalue())


def lines_of_check(output: str, path: Path) -> list[str]:
    """Return what `stowplan check` printed about a file, without positions and the list that repeats them."""
    lines = [line.removeprefix(f"{path}:").partition(": ")[2] for line in output.splitlines()]
    return [line for line in lines if not line.startswith(("* unknown", "* duplicate"))]


def lines_of_kubectl(errors: str, path: Path) -> list[str]:
    """Return what kubectl printed about a file, without its prefix and warnings that need a cluster."""
    lines = [line.rstrip().replace(f'error when creating "{path}": ', "") for line in errors.splitlines()]
    return [line for line in lines if not (line.startswith("Warning:") and "does not exist" in line)]
