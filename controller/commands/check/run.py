"""`stowplan check`: default and validate manifests without a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from apiserver.program import command_parser, exit_code
from controller.commands.check.documents import read_sources
from controller.commands.check.judge import check_source
from controller.commands.check.matching import namespace_argument
from controller.commands.check.result import (
    CheckResult,
    CheckVerdict,
    LineSeverity,
    lines_of,
    skipped_kinds,
    write_lines,
)
from controller.commands.check.yaml_values import as_yaml

_VALID: Final = 0
_REFUSED: Final = 1
_UNREADABLE: Final = 2

_EPILOG: Final = """\
A directory stands for all *.yaml, *.yml and *.json files below it. Objects of
other kinds are skipped. A FILE in which nothing is checked, kinds of other
releases and misspelt names of settings cause a warning, or errors by --strict.

Not checked without a cluster: permissions, whether referenced objects exist and
names are free, other webhooks, and which kinds can be scaled.

examples:
  stowplan check model.yaml -o yaml         print the object with all defaults
  stowplan check manifests/ -o json         print all errors as JSON
  helm template . | stowplan check -        check the output of a Helm chart

exit code: 0 all checked objects are valid, 1 an object was refused (--strict:
or not checked), 2 wrong usage or unreadable input
"""


def main(arguments: Sequence[str]) -> int:
    """Check the given files; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if not options.files:  # after unknown options, which are the more likely mistake
        made.error("at least one FILE is required, or - for standard input")
    return exit_code(lambda: _run(options), unread=_REFUSED)


def _run(options: argparse.Namespace) -> int:
    sources = read_sources(options.files)
    results = (result for source in sources for result in check_source(source, options.namespace))
    if options.strict:
        results = (result.strict() for result in results)
    verdicts = _print_json(results) if options.output == "json" else _print_lines(results, options.output)
    sys.stdout.flush()
    if options.strict and verdicts <= {CheckVerdict.SKIPPED}:
        return _REFUSED
    if CheckVerdict.UNREADABLE in verdicts:
        return _UNREADABLE
    return _REFUSED if CheckVerdict.REFUSED in verdicts else _VALID


def _print_lines(results: Iterable[CheckResult], output: str) -> set[CheckVerdict]:
    """Print each result when it is known: its lines, or as YAML the valid objects and lines about others."""
    printed = []
    reported: set[str] = set()
    for result in results:
        lines = lines_of(result, reported)
        if output == "yaml":
            write_lines((line for line in lines if line.severity is not LineSeverity.SUCCESS), sys.stderr)
            sys.stdout.write("" if result.value is None else as_yaml(result.value))
        else:
            write_lines(lines, sys.stdout)
        printed.append(result)
    if kinds := skipped_kinds(printed):
        sys.stderr.write(f"skipped: {kinds}\n")
    if all(result.verdict is CheckVerdict.SKIPPED and not result.unchecked for result in printed):
        sys.stderr.write("nothing to check: no object is of a supported kind\n")
    return {result.verdict for result in printed}


def _print_json(results: Iterable[CheckResult]) -> set[CheckVerdict]:
    objects = list(results)
    counts = Counter(result.verdict for result in objects)
    document = {
        "summary": {verdict.value: counts[verdict] for verdict in CheckVerdict},
        "objects": [result.as_json() for result in objects],
    }
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return set(counts)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "check",
        "Default and validate manifests as the admission webhooks do. Needs no cluster.",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add(
        "-n",
        "--namespace",
        type=namespace_argument,
        default="",
        metavar="NS",
        help="namespace of objects without one (default: unknown)",
    )
    add("files", nargs="*", metavar="FILE", help="file, directory, or - for standard input")
    add("--strict", action="store_true", help="refuse what is not checked (see below)")
    add(
        "-o",
        "--output",
        choices=("text", "yaml", "json"),
        default="text",
        help="text: one line per object and error (default); yaml: objects with defaults; json: everything",
    )
    return made
