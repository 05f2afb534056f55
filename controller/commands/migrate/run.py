"""`stowplan migrate`: manifests for later releases of other projects, and back, without a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.program import command_parser, exit_code
from apiserver.schema.json import Json, JsonValue, same
from controller.commands.check.documents import STANDARD_INPUT, read_sources
from controller.commands.check.tree import Tree
from controller.commands.convert.documents import ConvertedFile, LineNote, edit_file, read_file, trees_of
from controller.commands.convert.objects import Conversion
from controller.commands.convert.output import (
    DIFFERENT,
    UNREADABLE,
    add_file_options,
    print_notes,
    write_output,
)
from controller.commands.migrate.migration import Side, bystanders, migrate, name_of
from controller.commands.migrate.objects import MigrationResult
from controller.commands.migrate.variants import HPA, SCALED_OBJECT

_AUTOSCALERS: Final[Mapping[str, str]] = {"hpa": HPA, "scaledobject": SCALED_OBJECT}
_LIST: Final = "List"

_EPILOG: Final = """\
shapes:
  stowplan                                released
  VariantAutoscaling and its autoscaler   autoscaler with annotations of llm-d.ai
  AutoscalingPolicy and its binding       AutoscalingPolicy of Kthena 1.0
  Model                                   ModelBooster of Kthena 1.0
  ModelRoute, ModelServer                 the same of networking.serving.volcano.sh
  InferenceObjective                      the same of llm-d.ai

Objects that need each other are looked for in all files together. Every field
that has no place in the other shape, and every object that is left as it is,
is named on standard error. Other objects, order and comments do not change.

examples:
  stowplan migrate -f deploy/ --to released --diff      print the changes
  stowplan migrate -f deploy/ --to released --in-place  rewrite the files
  kubectl get va,hpa -o yaml | stowplan migrate -f - --to released --strict

exit code: 0 done, 1 --diff found changes or --strict a loss, 2 wrong usage or
unreadable input
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _InputObject:
    """An object of the input with its lines, and its file."""

    tree: Tree
    file: ConvertedFile


def main(arguments: Sequence[str]) -> int:
    """Migrate the given files; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if options.in_place and STANDARD_INPUT in options.files:
        made.error("--in-place cannot be used with standard input (-)")
    return exit_code(lambda: _run(options), unread=DIFFERENT)


def _run(options: argparse.Namespace) -> int:
    pairs = [(source, read_file(source)) for source in read_sources(options.files)]
    entries = [entry for _, file in pairs for entry in _entries(file)]
    objects = [entry.tree.value for entry in entries]
    migrated: Mapping[int, MigrationResult] = {}
    if not any(file.problems for _, file in pairs):
        migrated = migrate(objects, Side(options.to), _AUTOSCALERS[options.autoscaler])
        _edit([file for _, file in pairs], entries, migrated)
    for source, file in pairs:
        print_notes(source, file)
    if any(file.problems for _, file in pairs):
        # Objects that need each other may be in a file that cannot be read.
        sys.stderr.write("nothing is written because of the errors above\n")
        return UNREADABLE
    if others := bystanders(objects, migrated):
        sys.stderr.write(f"not changed, as --to {options.to} is not about them: {others}\n")
    losses = sum(note.is_loss for result in migrated.values() for note in result.notes)
    if losses and options.strict:
        sys.stderr.write(f"nothing is written because of --strict: losses: {losses}\n")
        return DIFFERENT
    return write_output(pairs, options)


def _entries(file: ConvertedFile) -> Iterator[_InputObject]:
    for part in file.parts if not file.problems else ():
        for tree in trees_of(part):
            yield from (_InputObject(tree=item, file=file) for item in _objects(tree))


def _objects(tree: Tree) -> Iterator[Tree]:
    """Yield the objects of a document: those of a list, or itself."""
    value = tree.value
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return
    if not _is_list(value):
        yield tree
        return
    lines = tree.marks_of(value["items"]).lines
    for place, item in enumerate(value["items"]):
        yield from _objects(tree.part(_with_kind(item, value), lines[place]))


def _is_list(value: Json) -> bool:
    return value["kind"].endswith(_LIST) and isinstance(value.get("items"), list)


def _with_kind(item: JsonValue, within: Json) -> JsonValue:
    """Return an item of a list such as VariantAutoscalingList, whose items need not say their kind."""
    kind = within["kind"].removesuffix(_LIST)
    if not kind or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": within.get("apiVersion"), "kind": kind} | item


def _edit(
    files: Sequence[ConvertedFile], entries: Sequence[_InputObject], migrated: Mapping[int, MigrationResult]
) -> None:
    """Give each file its text after migration, and the notes on its objects."""
    for place, entry in enumerate(entries):
        name = name_of(entry.tree.value)
        entry.file.notes += [
            LineNote(line=entry.tree.line_of(note.path), text=f"{name}: {note.path}: {note.text}")
            for note in (migrated[place].notes if place in migrated else ())
        ]
    results = iter([migrated.get(place) for place in range(len(entries))])
    for file in files:
        edit_file(file, lambda value: _conversion(value, results))
        file.notes.sort(key=lambda note: note.line)


def _conversion(value: JsonValue, results: Iterator[MigrationResult | None]) -> Conversion:
    first, *added = _after(value, results) or [None]
    return Conversion(value=first, added=tuple(added), count=int(first is not value))


def _after(value: JsonValue, results: Iterator[MigrationResult | None]) -> list[JsonValue]:
    """Return what takes the place of a document or of an item, with the next results."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return [value]
    if not _is_list(value):
        result = next(results)
        return [value] if result is None else list(result.objects)
    items: list[JsonValue] = []
    for item in value["items"]:
        part = _with_kind(item, value)
        items += [item if same(it, part) else it for it in _after(part, results)]
    if same(items, value["items"]):
        return [value]
    generic = {"apiVersion": "v1", "kind": _LIST} if value["kind"] != _LIST else {}
    return [value | generic | {"items": items}]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "migrate",
        "Rewrite manifests for later releases of llm-d and Kthena, or back. Needs no cluster.",
        usage="%(prog)s -f FILE [-f ...] --to SIDE [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add("--to", choices=[*Side], required=True, help="whose shapes to write, see below")
    add(
        "--autoscaler",
        choices=list(_AUTOSCALERS),
        default="hpa",
        help="what to write for a VariantAutoscaling whose target nothing scales (default hpa)",
    )
    add("--strict", action="store_true", help="write nothing if something is lost or left as it is")
    add_file_options(made)
    return made
