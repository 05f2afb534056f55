"""Output of files after conversion: notes, differences, texts, and the files themselves; their options."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from controller.commands.check.documents import Source
from controller.commands.check.result import FileLine, LineSeverity, write_lines
from controller.commands.check.yaml_values import as_yaml
from controller.commands.convert.documents import ConvertedFile

Pair: TypeAlias = tuple[Source, ConvertedFile]
"""A file and its conversion."""


DONE: Final = 0
DIFFERENT: Final = 1
UNREADABLE: Final = 2


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the files to read, and for the output."""
    parser.add_argument(
        "-f",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="file, directory, or -; may be repeated",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        help="print in this format instead of the format of the input",
    )
    how.add_argument("--diff", action="store_true", help="print only the changes")
    how.add_argument("--in-place", action="store_true", help="write the files instead of printing them")


def write_output(pairs: Sequence[Pair], options: argparse.Namespace) -> int:
    """Print the files or their differences, or write them, as the options say; return the exit code.

    Files with problems are not written, and keep all others from being printed.
    """
    is_complete = not any(file.problems for _, file in pairs)
    code = DONE
    if options.diff:
        code = DIFFERENT if _print_differences(pairs) else DONE
    elif options.in_place:
        is_complete = _write_files(pairs) and is_complete
    elif not is_complete:
        sys.stderr.write("nothing is printed because of the errors above\n")
    else:
        files = [file for source, file in pairs if source.is_named or file.count]
        _print([file for file in files if file.values or not file.count], options.output)
    sys.stdout.flush()
    return code if is_complete else UNREADABLE


def print_notes(source: Source, file: ConvertedFile) -> None:
    """Write the notes on a file, and its problems as errors, to standard error."""
    lines = [FileLine(source.name, note.line, LineSeverity.WARNING, note.text) for note in file.notes]
    lines += [
        FileLine(source.name, note.line, LineSeverity.ERROR, f"error: {note.text}") for note in file.problems
    ]
    write_lines(lines, sys.stderr)


def _print_differences(pairs: Iterable[Pair]) -> bool:
    """Print the changes of all files as a unified diff; return whether there are any."""
    is_different = False
    for source, file in pairs:
        before, after = (text.splitlines(keepends=True) for text in (file.before, file.after))
        for line in difflib.unified_diff(before, after, source.name, f"{source.name} (converted)"):
            is_different = True
            sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return is_different


def _write_files(pairs: Iterable[Pair]) -> bool:
    """Write each changed file in place, atomically; return whether all could be written."""
    is_written = True
    for source, file in pairs:
        if file.after == file.before or file.problems:
            continue
        try:
            _replace(Path(source.name).resolve(), file.after.encode(file.encoding))
        except OSError as error:
            is_written = False
            sys.stderr.write(f"{source.name}: error: cannot be written: {error.strerror or error}\n")
    return is_written


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically: concurrent readers see either the old or the new content."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _copy_ownership(handle, path.stat())
            # A full disk may be reported only here, while the old file still exists.
            os.fsync(handle)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def _copy_ownership(handle: int, status: os.stat_result) -> None:
    """Set the owner, group and mode of a file to those of another, as far as permitted."""
    for owner, group in ((-1, status.st_gid), (status.st_uid, -1)):
        with contextlib.suppress(OSError):
            os.fchown(handle, owner, group)
    # Last, because a change of owner clears bits of the mode.
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _print(files: Sequence[ConvertedFile], output: str | None) -> None:
    """Print files in the format of the input, or as `yaml` or `json`."""
    if output == "json":
        values = [value for file in files for value in file.values]
        whole = values[0] if len(values) == 1 else {"apiVersion": "v1", "kind": "List", "items": values}
        sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
        return
    for position, file in enumerate(files):
        text = file.after
        if output == "yaml" and file.before.lstrip().startswith("{"):
            text = "".join(map(as_yaml, file.values))
        is_joined = position == 0 or text.startswith("---")
        end = "" if text.endswith("\n") or not text else "\n"
        sys.stdout.write(("" if is_joined else "---\n") + text + end)
