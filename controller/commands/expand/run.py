"""Entry point of `stowplan expand`, which prints the objects of Models and ModelRoutes, without a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.annotations import PARENT_REFS
from apiserver.program import exit_code, program
from apiserver.schema.json import Json
from controller.commands.check.manifests import check_source
from controller.commands.check.namespaces import namespace_argument
from controller.commands.check.objects import as_yaml
from controller.commands.check.result import CheckResult, Verdict
from controller.commands.check.sources import read_sources
from controller.commands.check.text import Line, Tone, lines_of, write_lines
from controller.expansion.expansion import Expansion, ExpansionSettings, expand
from controller.expansion.parts import Note
from controller.gateways.annotations import is_opted_in, parent_refs
from controller.gateways.installed import Installed
from controller.gateways.translation import translate


@dataclass(frozen=True, kw_only=True, slots=True)
class Translated:
    """The translation of one route, with its origin and notes."""

    place: int
    """Index of the object that the route is or was made for."""

    route: str
    objects: Sequence[Json]
    notes: Sequence[Note]
    is_understood: bool
    """Whether its Gateways are valid."""


def translations(objects: Sequence[tuple[int, Json]], gateways: str) -> Iterator[Translated]:
    """Yield the translations of the ModelRoutes among some objects, with each pool once.

    `gateways` are those of routes that name none; empty for none. Each object comes with an index.
    """
    servers = {
        (_namespace(item), item["metadata"]["name"]): item
        for _, item in objects
        if item["kind"] == "ModelServer"
    }
    namespace = {"metadata": {"annotations": {PARENT_REFS: gateways}}}
    said: set[tuple[str, str]] = set()
    for place, route in objects:
        if route["kind"] != "ModelRoute" or not is_opted_in(route, namespace):
            continue
        name = route["metadata"]["name"]
        parents, unread = parent_refs(route, namespace)
        if unread:
            yield Translated(place=place, route=name, objects=(), notes=unread, is_understood=False)
            continue
        here = {server: item for (where, server), item in servers.items() if where == _namespace(route)}
        found = translate(route, here, parents, Installed())
        new = [item for server, item in found.pools.items() if (_namespace(route), server) not in said]
        said |= {(_namespace(route), server) for server in found.pools}
        yield Translated(
            place=place,
            route=name,
            objects=(*new, *found.objects),
            notes=found.notes,
            is_understood=True,
        )


def _namespace(item: Json) -> str:
    return str(item["metadata"].get("namespace", ""))


_DONE: Final = 0
_INCOMPLETE: Final = 1
_UNREADABLE: Final = 2

_KINDS: Final = ("Model", "ModelRoute", "ModelServer")
_REFUSED: Final = (Verdict.REFUSED, Verdict.UNREADABLE)

_EPILOG: Final = """\
Each Model is defaulted and validated as on apply. It expands to Deployments or
LeaderWorkerSets with Services, ModelServers and a ModelRoute, and with a policy
also to bindings and HorizontalPodAutoscalers. ModelRoutes that name Gateways,
or get them from --gateways, expand to HTTPRoutes and InferencePools. Fields
without effect are reported on standard error. See docs/models.md for the full
table.

examples:
  stowplan expand -f model.yaml
  stowplan expand -f model.yaml | kubectl apply --server-side -f -
  stowplan expand -f models/ -o json | jq '.[].kind'
  stowplan expand -f route.yaml -f server.yaml --gateways infra/inference

exit code: 0 done, 1 a backend cannot be expanded, 2 wrong usage, or an object
is invalid or cannot be read
"""


def main(arguments: Sequence[str]) -> int:
    """Print the objects made for the Models in some files; return the exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _run(options), unread=_DONE)


def _run(options: argparse.Namespace) -> int:
    settings = ExpansionSettings(
        s3_image=options.s3_image,
        has_autoscalers=not options.without_autoscalers,
        has_tolerance=not options.without_tolerance,
    )
    results = [
        result
        for source in read_sources(options.files)
        for result in check_source(source, options.namespace)
        if result.verdict in _REFUSED or result.kind in _KINDS
    ]
    said: set[str] = set()
    lines = [line for result in results for line in lines_of(result, said) if line.tone is not Tone.GOOD]
    if any(result.verdict in _REFUSED for result in results):
        return _tell(lines, _UNREADABLE)
    expansions = {
        place: expand(result.value, settings)
        for place, result in enumerate(results)
        if result.value is not None and result.kind == "Model"
    }
    routed = [*translations([*_routing(results, expansions)], options.gateways)]
    if not expansions and not routed:
        text = "error: contains no Model, and no ModelRoute that names Gateways"
        lines += [Line(name, 0, Tone.BAD, text) for name in options.files]
        return _tell(lines, _UNREADABLE)
    for place, expansion in expansions.items():
        lines += _note_lines(results[place], expansion)
    for found in routed:
        lines += _route_lines(results[found.place], found)
    if not all(found.is_understood for found in routed):
        return _tell(lines, _UNREADABLE)
    is_whole = all(expansion.is_whole for expansion in expansions.values())
    objects = [item for expansion in expansions.values() for item in expansion.objects]
    _print(options.output, objects + [item for found in routed for item in found.objects])
    return _tell(lines, _DONE if is_whole else _INCOMPLETE)


def _note_lines(result: CheckResult, expansion: Expansion) -> list[Line]:
    return [
        Line(
            result.file,
            result.line,
            Tone.BAD if note.prevents else Tone.ADVICE,
            f"error: {note}; this backend is omitted" if note.prevents else f"Warning: {note}",
        )
        for note in expansion.notes
    ]


def _routing(
    results: Sequence[CheckResult], expansions: Mapping[int, Expansion]
) -> Iterator[tuple[int, Json]]:
    """Yield ModelRoutes and ModelServers with an index, including those made for Models."""
    for place, result in enumerate(results):
        made = expansions[place].objects if place in expansions else (result.value,)
        yield from ((place, item) for item in made if item is not None and item["kind"] in _KINDS)


def _route_lines(result: CheckResult, found: Translated) -> list[Line]:
    tone, word = (Tone.ADVICE, "Warning") if found.is_understood else (Tone.BAD, "error")
    return [
        Line(result.file, result.line, tone, f"{word}: ModelRoute {found.route}: {note}")
        for note in found.notes
    ]


def _print(output: str, objects: Sequence[Json]) -> None:
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
        allow_abbrev=False,
        prog=program("expand"),
        description="Print the objects that Models and ModelRoutes expand to. Needs no cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-f",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="file, directory, or - for standard input; may be repeated",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        type=namespace_argument,
        default="",
        help="namespace of objects that do not specify one",
    )
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="output format (default: yaml)"
    )
    parser.add_argument(
        "--s3-image",
        default=defaults.s3_image,
        metavar="IMAGE",
        help="image with the AWS command line (default: %(default)s)",
    )
    parser.add_argument(
        "--without-autoscalers",
        action="store_true",
        help="omit HorizontalPodAutoscalers, if the controller (scaling.mode: direct) or KEDA scales the"
        " workloads",
    )
    parser.add_argument(
        "--without-tolerance",
        action="store_true",
        help="write HorizontalPodAutoscalers without tolerance, for Kubernetes before 1.33; from 10"
        " or 11 replicas on, these ignore a difference of one replica",
    )
    parser.add_argument(
        "--gateways",
        default="",
        metavar="GATEWAYS",
        help="comma-separated Gateways (NAMESPACE/NAME) for ModelRoutes that name none",
    )
    return parser
