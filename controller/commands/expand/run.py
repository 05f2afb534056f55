"""Entry point of `stowplan expand`, which prints the objects of Models and ModelRoutes, without a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.annotations import PARENT_REFS
from apiserver.kinds.kthena.groups import NETWORKING, SERVING
from apiserver.program import command_parser, exit_code
from apiserver.schema.json import Json
from controller.commands.check.documents import read_sources
from controller.commands.check.judge import check_source
from controller.commands.check.matching import namespace_argument
from controller.commands.check.result import (
    CheckResult,
    CheckVerdict,
    FileLine,
    LineSeverity,
    lines_of,
    write_lines,
)
from controller.commands.check.yaml_values import as_yaml
from controller.expansion.expansion import Expansion, ExpansionSettings, expand
from controller.expansion.parts import Note
from controller.gateways.inputs import InstalledDefinitions, is_opted_in, parent_refs
from controller.gateways.translation import translate

_DONE: Final = 0
_INCOMPLETE: Final = 1
_UNREADABLE: Final = 2

_KINDS: Final = ("Model", "ModelRoute", "ModelServer")
_REFUSED: Final = (CheckVerdict.REFUSED, CheckVerdict.UNREADABLE)

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

exit code: 0 done, 1 a backend or a route cannot be expanded, 2 wrong usage, or
an object is invalid or cannot be read
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Route:
    """The translation of a ModelRoute, and the result of the object that it is, or was made for."""

    result: CheckResult
    name: str
    notes: Sequence[Note]
    objects: Sequence[Json] = ()
    code: int = _DONE
    """The exit code that it causes: 1 if its objects are not printed, 2 if its Gateways are invalid."""


def main(arguments: Sequence[str]) -> int:
    """Print the objects made for the Models in some files; return the exit code."""
    options = parser().parse_args(arguments)
    return exit_code(lambda: _run(options), unread=_DONE)


def _run(options: argparse.Namespace) -> int:
    code, lines, objects = _expand_all(options)
    if objects is not None:
        _print(options.output, objects)
    write_lines(lines, sys.stderr)
    return code


def _expand_all(options: argparse.Namespace) -> tuple[int, list[FileLine], Sequence[Json] | None]:
    """Return the exit code, lines for standard error, and the objects: None if anything is invalid."""
    results = [
        result
        for source in read_sources(options.files)
        for result in check_source(source, options.namespace)
        if result.verdict in _REFUSED or result.kind in _KINDS
    ]
    reported: set[str] = set()
    lines = [line for result in results for line in lines_of(result, reported)]
    lines = [line for line in lines if line.severity is not LineSeverity.SUCCESS]
    if any(result.verdict in _REFUSED for result in results):
        return _UNREADABLE, lines, None
    expansions = _expansions(results, options)
    routes = list(_routes(list(_traffic_objects(results, expansions)), options.gateways))
    made = [expansion for expansion in expansions if expansion is not None]
    if not made and not routes:
        text = "error: contains no Model, and no ModelRoute that names Gateways"
        lines += [FileLine(name, 0, LineSeverity.ERROR, text) for name in options.files]
        return _UNREADABLE, lines, None
    for result, expansion in zip(results, expansions, strict=True):
        lines += _model_lines(result, expansion) if expansion is not None else ()
    for route in routes:
        lines += _route_lines(route)
    code = max((route.code for route in routes), default=_DONE)
    if code == _UNREADABLE:
        return code, lines, None
    if not all(expansion.is_whole for expansion in made):
        code = _INCOMPLETE
    objects = [item for expansion in made for item in expansion.objects]
    objects += [item for route in routes for item in route.objects]
    return code, lines, objects


def _expansions(results: Sequence[CheckResult], options: argparse.Namespace) -> list[Expansion | None]:
    """Return the expansion of each Model, and None for each other object."""
    settings = ExpansionSettings(
        s3_image=options.s3_image,
        has_autoscalers=not options.without_autoscalers,
        has_tolerance=not options.without_tolerance,
        routing_group=options.routing_group,
    )
    return [
        expand(result.value, settings) if result.value is not None and result.kind == "Model" else None
        for result in results
    ]


def _traffic_objects(
    results: Sequence[CheckResult], expansions: Sequence[Expansion | None]
) -> Iterator[tuple[CheckResult, Json]]:
    """Yield ModelRoutes and ModelServers, including those made for Models, with the object in a file."""
    for result, expansion in zip(results, expansions, strict=True):
        made = (result.value,) if expansion is None else expansion.objects
        yield from ((result, item) for item in made if item is not None and item["kind"] in _KINDS)


def _routes(objects: Sequence[tuple[CheckResult, Json]], gateways: str) -> Iterator[_Route]:
    """Yield the translations of the ModelRoutes among some objects, with each pool once.

    `gateways` are those of routes that name none; empty for none.
    """
    servers = {
        (item["apiVersion"], *_key(item)): item for _, item in objects if item["kind"] == "ModelServer"
    }
    namespace = {"metadata": {"annotations": {PARENT_REFS: gateways}}}
    versions: dict[tuple[str, str, str], str] = {}
    for result, route in objects:
        if route["kind"] != "ModelRoute" or not is_opted_in(route, namespace):
            continue
        (where, name), version = _key(route), str(route["apiVersion"])
        parents, faults = parent_refs(route, namespace)
        if faults:
            yield _Route(result=result, name=name, notes=faults, code=_UNREADABLE)
            continue
        here = {server: item for (*place, server), item in servers.items() if place == [version, where]}
        translation = translate(route, here, parents, InstalledDefinitions())
        objects_of_route = (*translation.pools.values(), *translation.objects)
        made = {(item["kind"], *_key(item)): item for item in objects_of_route}
        if conflicts := [key for key in made if versions.get(key, version) != version]:
            kind, _, twin = conflicts[0]
            text = f"not translated: {kind} {twin} is printed for a ModelRoute of {versions[conflicts[0]]}"
            note = Note(path="metadata.name", text=text)
            yield _Route(result=result, name=name, notes=[note], code=_INCOMPLETE)
            continue
        new = [item for key, item in made.items() if key not in versions]
        versions.update((key, version) for key in made)
        yield _Route(result=result, name=name, notes=translation.notes, objects=new)


def _key(item: Json) -> tuple[str, str]:
    return str(item["metadata"].get("namespace", "")), item["metadata"]["name"]


def _model_lines(result: CheckResult, expansion: Expansion) -> Iterator[FileLine]:
    for note in expansion.notes:
        severity = LineSeverity.ERROR if note.prevents else LineSeverity.WARNING
        text = f"error: {note}; this backend is omitted" if note.prevents else f"Warning: {note}"
        yield FileLine(result.file, result.line, severity, text)


def _route_lines(route: _Route) -> Iterator[FileLine]:
    severity, word = (LineSeverity.ERROR, "error") if route.code else (LineSeverity.WARNING, "Warning")
    for note in route.notes:
        text = f"{word}: ModelRoute {route.name}: {note}"
        yield FileLine(route.result.file, route.result.line, severity, text)


def _print(output: str, objects: Sequence[Json]) -> None:
    if output == "json":
        sys.stdout.write(json.dumps(objects, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("".join(map(as_yaml, objects)))
    sys.stdout.flush()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    defaults = ExpansionSettings()
    made = command_parser(
        "expand",
        "Print the objects that Models and ModelRoutes expand to. Needs no cluster.",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add(
        "-f",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="file, directory, or - for standard input; may be repeated",
    )
    add(
        "-n",
        "--namespace",
        type=namespace_argument,
        default="",
        help="namespace of objects that do not specify one",
    )
    add("-o", "--output", choices=("yaml", "json"), default="yaml", help="output format (default: yaml)")
    add(
        "--s3-image",
        default=defaults.s3_image,
        metavar="IMAGE",
        help="image with the AWS command line (default: %(default)s)",
    )
    add(
        "--without-autoscalers",
        action="store_true",
        help="omit HorizontalPodAutoscalers, if the controller (scaling.mode: direct) or KEDA scales the"
        " workloads",
    )
    add(
        "--without-tolerance",
        action="store_true",
        help="write HorizontalPodAutoscalers without tolerance, for Kubernetes before 1.33; from 10"
        " or 11 replicas on, these ignore a difference of one replica",
    )
    add(
        "--routing-group",
        choices=(NETWORKING, SERVING),
        default=defaults.routing_group,
        metavar="GROUP",
        help="API group of ModelServers and ModelRoutes: %(default)s (the default), which Stowplan"
        f" defines, or {SERVING}, which the releases of Kthena define and read",
    )
    add(
        "--gateways",
        default="",
        metavar="GATEWAYS",
        help="comma-separated Gateways (NAMESPACE/NAME) for ModelRoutes that name none",
    )
    return made
