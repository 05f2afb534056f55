"""Reading of the inputs given on the command line: files, directories, standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

STANDARD_INPUT: Final = "-"
EXTENSIONS: Final = frozenset({".yaml", ".yml", ".json"})
_LARGEST_FILE_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file: its bytes, or why it cannot be read. `is_named` is False for one found in a directory."""

    name: str
    data: bytes = b""
    problem: str = ""
    is_named: bool = True


def read_sources(names: Sequence[str]) -> Iterator[Source]:
    """Yield the files for some names, one at a time; an unreadable one has a `problem`."""
    for name in names:
        if name == STANDARD_INPUT:
            yield _read(sys.stdin.buffer, "<stdin>")
        elif (path := Path(name)).is_dir():
            yield from _directory(path)
        else:
            yield _file(path, is_named=True)


def _directory(directory: Path) -> Iterator[Source]:
    found = [path for path in sorted(directory.rglob("*")) if path.suffix in EXTENSIONS]
    files = [path for path in found if path.is_file() and not _is_hidden(path.relative_to(directory))]
    if not files:
        yield Source(name=str(directory), problem="no *.yaml, *.yml or *.json in this directory")
    for path in files:
        yield _file(path, is_named=False)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _file(path: Path, *, is_named: bool) -> Source:
    try:
        with path.open("rb") as file:
            return _read(file, str(path), is_named=is_named)
    except OSError as error:
        return Source(name=str(path), problem=f"cannot be read: {error.strerror or error}", is_named=is_named)


def _read(file: IO[bytes], name: str, *, is_named: bool = True) -> Source:
    data = file.read(_LARGEST_FILE_BYTES + 1)
    if len(data) > _LARGEST_FILE_BYTES:
        problem = f"larger than {_LARGEST_FILE_BYTES // 1024**2} MiB"
        return Source(name=name, problem=problem, is_named=is_named)
    return Source(name=name, data=data, is_named=is_named)
