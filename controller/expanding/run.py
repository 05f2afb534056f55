"""`stowplan expand`: print what Models become, without a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from apiserver.checking.manifests import check_source
from apiserver.checking.objects import as_yaml
from apiserver.checking.outcome import Outcome, Verdict
from apiserver.checking.sources import read_sources
from apiserver.checking.text import Line, Tone, lines_of, write_lines
from apiserver.program import exit_code, program
from controller.models.expansion import Expansion, ExpansionSettings, expand

_DONE: Final = 0
_INCOMPLETE: Final = 1
_UNREADABLE: Final = 2

_REFUSED: Final = (Verdict.REFUSED, Verdict.UNREADABLE)

_EPILOG: Final = """\
A Model is defaulted and checked as on apply, and becomes Deployments or
LeaderWorkerSets with Services, ModelServers and a ModelRoute, and with a policy
also bindings and HorizontalPodAutoscalers. Fields without effect are told on
standard error. docs/models.md has the whole table.

examples:
  stowplan expand -f model.yaml
  stowplan expand -f model.yaml | kubectl apply --server-side -f -
  stowplan expand -f models/ -o json | jq '.[].kind'

exit code: 0 done, 1 a backend cannot be made, 2 wrong usage, or a Model is
invalid or could not be read
"""


def main(arguments: Sequence[str]) -> int:
    """Print what the Models of some files become; the exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _run(options), unread=_DONE)


def _run(options: argparse.Namespace) -> int:
    settings = ExpansionSettings(s3_image=options.s3_image, has_autoscalers=not options.without_autoscalers)
    outcomes = [
        outcome
        for source in read_sources(options.files)
        for outcome in check_source(source, options.namespace)
        if outcome.verdict in _REFUSED or outcome.kind == "Model"
    ]
    said: set[str] = set()
    lines = [line for outcome in outcomes for line in lines_of(outcome, said) if line.tone is not Tone.GOOD]
    if any(outcome.verdict in _REFUSED for outcome in outcomes):
        return _tell(lines, _UNREADABLE)
    expansions = {
        place: expand(outcome.value, settings)
        for place, outcome in enumerate(outcomes)
        if outcome.value is not None
    }
    if not expansions:
        lines += [Line(name, 0, Tone.BAD, "error: there is no Model in it") for name in options.files]
        return _tell(lines, _UNREADABLE)
    for place, expansion in expansions.items():
        lines += _note_lines(outcomes[place], expansion)
    is_whole = all(expansion.is_whole for expansion in expansions.values())
    _print(options.output, expansions.values())
    return _tell(lines, _DONE if is_whole else _INCOMPLETE)


def _note_lines(outcome: Outcome, expansion: Expansion) -> list[Line]:
    return [
        Line(
            outcome.file,
            outcome.line,
            Tone.BAD if note.prevents else Tone.ADVICE,
            f"error: {note}; this backend is left out" if note.prevents else f"Warning: {note}",
        )
        for note in expansion.notes
    ]


def _print(output: str, expansions: Iterable[Expansion]) -> None:
    objects = [item for expansion in expansions for item in expansion.objects]
    if output == "json":
        sys.stdout.write(json.dumps(objects, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("".join(map(as_yaml, objects)))
    sys.stdout.flush()


def _tell(lines: Iterable[Line], code: int) -> int:
    write_lines(lines, sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    defaults = ExpansionSettings()
    parser = argparse.ArgumentParser(
        prog=program("expand"),
        description="Print the workloads, Services, routes and policies that Models become.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-f",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="file, folder or -",
    )
    parser.add_argument("-n", "--namespace", default="", help="namespace of Models that name none")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--s3-image",
        default=defaults.s3_image,
        metavar="IMAGE",
        help="AWS command line (%(default)s)",
    )
    parser.add_argument(
        "--without-autoscalers",
        action="store_true",
        help="no HorizontalPodAutoscalers: the controller scales by itself (scaling.mode: direct), or KEDA",
    )
    return parser
