"""`stowplan convert`: conversion of manifests to another version or shape, without a cluster."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import Final

from apiserver.kinds.llmd.shapes import RELEASES, SHAPES
from apiserver.program import command_parser, exit_code
from controller.commands.check.documents import STANDARD_INPUT, read_sources
from controller.commands.convert.documents import convert_file
from controller.commands.convert.objects import ConversionOptions, convert_value
from controller.commands.convert.output import DIFFERENT, add_file_options, print_notes, write_output

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


def main(arguments: Sequence[str]) -> int:
    """Convert the given files; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if problem := _problem(options):
        made.error(problem)
    return exit_code(lambda: _run(options), unread=DIFFERENT)


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
    pairs = [(source, convert_file(source, convert)) for source in read_sources(options.files)]
    for source, file in pairs:
        print_notes(source, file)
    if not any(file.count for _, file in pairs) and not any(file.problems for _, file in pairs):
        sys.stderr.write("nothing to convert: no VariantAutoscaling was found\n")
    return write_output(pairs, options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "convert",
        "Convert VariantAutoscaling manifests to another API version. Needs no cluster.",
        usage="%(prog)s -f FILE [-f ...] --to VERSION [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add("--to", choices=_VERSIONS, required=True, help="target API version")
    add("--shape", choices=[*SHAPES, *RELEASES], metavar="SHAPE", help="target shape, see below")
    add(
        "--drop-kept",
        action="store_true",
        help="do not write the annotation; notes list the values that are lost",
    )
    add_file_options(made)
    return made
