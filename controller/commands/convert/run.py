"""`stowplan convert`: conversion of manifests to another version or shape, without a cluster."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from apiserver.kinds.llmd.shapes import RELEASES, SHAPES
from apiserver.program import exit_code, program
from controller.commands.check.documents import STANDARD_INPUT, Source, read_sources
from controller.commands.check.result import FileLine, Severity, write_lines
from controller.commands.check.yaml_values import as_yaml
from controller.commands.convert.documents import Convert, ConvertedFile, LineNote, convert_file
from controller.commands.convert.objects import ConversionOptions, convert_value

_DONE: Final = 0
_DIFFERENT: Final = 1
_UNREADABLE: Final = 2

_VERSIONS: Final = ("v1alpha1", "v1alpha2")

_EPILOG: Final = f"""\
Every VariantAutoscaling is converted as by the webhook. Other documents, order
and comments do not change, but comments in a rewritten part are lost. Values
that the new version cannot express are kept in the annotation
llmd.ai/kept-by-conversion. Notes about all this go to standard error.

shapes, for --to v1alpha1: {", ".join(SHAPES)}; or a release:
{", ".join(list(RELEASES)[:5])},
{", ".join(list(RELEASES)[5:])}.
With --shape no annotation is written: notes list lost values and placeholders.

examples:
  stowplan convert -f va.yaml --to v1alpha2            print it converted
  stowplan convert -f deploy/ --to v1alpha2 --diff     print the changes
  stowplan convert -f deploy/ --to v1alpha2 --in-place rewrite the files
  kubectl get va -o yaml | stowplan convert -f - --to v1alpha1 --shape v0.4.2

exit code: 0 done, 1 --diff found changes, 2 wrong usage or unreadable input
"""

_Pair = tuple[Source, ConvertedFile]


def main(arguments: Sequence[str]) -> int:
    """Convert the given files; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if problem := _problem(options):
        parser.error(problem)
    return exit_code(lambda: _run(options), unread=_DIFFERENT)


def _problem(options: argparse.Namespace) -> str:
    if options.shape and options.to != "v1alpha1":
        return "--shape requires --to v1alpha1: v1alpha2 has only one shape"
    if options.in_place and STANDARD_INPUT in options.files:
        return "--in-place cannot be used with standard input (-)"
    return ""


def _run(options: argparse.Namespace) -> int:
    shape = {**SHAPES, **RELEASES}.get(options.shape)
    target = ConversionOptions(version=options.to, shape=shape, drops_kept=options.drop_kept)
    convert = functools.partial(convert_value, options=target)
    pairs = [(source, _convert(source, convert)) for source in read_sources(options.files)]
    for source, file in pairs:
        _print_notes(source, file)
    if not any(file.count for _, file in pairs) and not any(file.problems for _, file in pairs):
        sys.stderr.write("nothing to convert: no VariantAutoscaling was found\n")
    is_complete = not any(file.problems for _, file in pairs)
    code = _DONE
    if options.diff:
        code = _DIFFERENT if _print_differences(pairs) else _DONE
    elif options.in_place:
        is_complete = _write(pairs) and is_complete
    elif not is_complete:
        sys.stderr.write("nothing is printed because of the errors above\n")
    else:
        _PRINTERS[options.output]([pair for pair in pairs if pair[0].is_named or pair[1].count])
    sys.stdout.flush()
    return code if is_complete else _UNREADABLE


def _convert(source: Source, convert: Convert) -> ConvertedFile:
    if source.problem:
        return ConvertedFile(problems=[LineNote(line=0, text=source.problem)])
    return convert_file(source.data, convert)


def _print_notes(source: Source, file: ConvertedFile) -> None:
    lines = [FileLine(source.name, note.line, Severity.WARNING, note.text) for note in file.notes]
    lines += [
        FileLine(source.name, note.line, Severity.ERROR, f"error: {note.text}") for note in file.problems
    ]
    write_lines(lines, sys.stderr)


def _print_differences(pairs: Iterable[_Pair]) -> bool:
    is_different = False
    for source, file in pairs:
        before, after = (text.splitlines(keepends=True) for text in (file.before, file.after))
        for line in difflib.unified_diff(before, after, source.name, f"{source.name} (converted)"):
            is_different = True
            sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return is_different


def _write(pairs: Iterable[_Pair]) -> bool:
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


def _print_as_it_is(pairs: Sequence[_Pair]) -> None:
    _print_texts([file.after for _, file in pairs])


def _print_yaml(pairs: Sequence[_Pair]) -> None:
    _print_texts([_yaml(file) for _, file in pairs])


def _yaml(file: ConvertedFile) -> str:
    return "".join(map(as_yaml, file.values)) if file.before.lstrip().startswith("{") else file.after


def _print_texts(texts: Sequence[str]) -> None:
    for position, text in enumerate(texts):
        is_joined = position == 0 or text.startswith("---")
        end = "" if text.endswith("\n") or not text else "\n"
        sys.stdout.write(("" if is_joined else "---\n") + text + end)


def _print_json(pairs: Sequence[_Pair]) -> None:
    values = [value for _, file in pairs for value in file.values]
    whole = values[0] if len(values) == 1 else {"apiVersion": "v1", "kind": "List", "items": values}
    sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


_PRINTERS: Final[Mapping[str | None, Callable[[Sequence[_Pair]], None]]] = {
    None: _print_as_it_is,
    "yaml": _print_yaml,
    "json": _print_json,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog=program("convert"),
        description="Convert VariantAutoscaling manifests to another API version. Needs no cluster.",
        usage="%(prog)s -f FILE [-f ...] --to VERSION [options]",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "-f",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="file, directory, or -; may be repeated",
    )
    add("--to", choices=_VERSIONS, required=True, help="target API version")
    add("--shape", choices=[*SHAPES, *RELEASES], metavar="SHAPE", help="target shape, see below")
    add(
        "--drop-kept",
        action="store_true",
        help="do not write the annotation; notes list the values that are lost",
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
    return parser
