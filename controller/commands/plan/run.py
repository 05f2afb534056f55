"""Entry point of `stowplan plan`: the plan for given files, with its reasons, without a cluster."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from apiserver.cluster.namespaces import DEFAULT
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.program import exit_code
from apiserver.schema.json import Json
from controller.commands.check.documents import read_sources
from controller.commands.check.result import FileLine, LineSeverity, write_lines
from controller.commands.plan.arguments import parser
from controller.commands.plan.assumptions import (
    NOTHING_ASKS,
    Assumptions,
    asks_for_decisions,
    with_assumptions,
)
from controller.commands.plan.changes import Changes, apply_changes
from controller.commands.plan.configuring import ConfigurationResult, read_configuration
from controller.commands.plan.gaps import estimated_capacities, information_gaps, useless_nodes
from controller.commands.plan.gathering import InputsResult, gather_objects
from controller.commands.plan.layout import NodeLayout, layouts
from controller.commands.plan.page import page
from controller.commands.plan.reading import InputProblem, read
from controller.commands.plan.statuses import with_capacities
from controller.commands.plan.terminal import present, terminal, write_file
from controller.commands.plan.text import Shown, conclusion, text_parts
from controller.planning.decision import BoundBy
from controller.planning.inputs import PlanningInputs, to_json
from controller.planning.snapshot import Snapshot
from controller.variants.solver_worker import without_collection

_ENOUGH: Final = 0
_SHORT: Final = 1
_UNREADABLE: Final = 2


def main(arguments: Sequence[str]) -> int:
    """Plan with the given files; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if len(options.budget) > 1:
        made.error("argument --budget: must be given once only")
    return exit_code(lambda: _run(options), unread=_SHORT)


def _run(options: argparse.Namespace) -> int:
    if unwritable := [*_unwritable([path for path in (options.save, options.html) if path])]:
        _tell(unwritable)
        return _UNREADABLE
    configuring = read_configuration(options.config)
    contents = read(list(read_sources(options.files)), namespace=options.namespace or DEFAULT)
    assumed = with_assumptions(contents)
    given = _gather(options, configuring, assumed)
    changes = Changes(
        demands=options.demand,
        capacities=options.capacity,
        additions=options.add_node,
        drained=options.drain,
        budget=options.budget[0] if options.budget else None,
        scales_to_zero=options.scale_to_zero,
    )
    inputs, mistakes = apply_changes(given.inputs, changes) if not given.problems else (given.inputs, ())
    if given.facts is not None:
        snapshot = with_capacities(inputs.snapshot, given.facts, configuring.sizing)
        inputs = replace(inputs, snapshot=snapshot)
    # A name may be unknown because its object is omitted.
    why = given.warnings if mistakes and given.omitted else ()
    texts = (InputProblem(file="stowplan plan", line=0, text=text) for text in (*mistakes, *why))
    _tell([*given.problems, *texts])
    if given.problems or mistakes:
        return _UNREADABLE
    warnings = (
        *assumed.warnings,
        *given.warnings,
        *useless_nodes(inputs.snapshot, changes.additions),
        *estimated_capacities(inputs.snapshot, given.facts or {}),
    )
    shown = _plan(inputs, warnings, given)
    # Before anything is printed: the reader of the output may stop early.
    is_written = _write_files(options, inputs, shown)
    present(
        options.output,
        lambda: as_document(shown, assumed.workloads),
        text_parts(shown, columns=terminal().width),
    )
    if not is_written:
        return _UNREADABLE
    return _ENOUGH if shown.is_enough else _SHORT


def _unwritable(paths: Sequence[Path]) -> Iterator[InputProblem]:
    """Yield problems with output files that are evident before anything is computed."""
    if len({path.resolve() for path in paths}) < len(paths):
        yield InputProblem(file=str(paths[0]), line=0, text="--save and --html must name different files")
    for path in paths:
        try:
            why = _obstacle(path)
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            yield InputProblem(file=str(path), line=0, text=f"cannot be written: {why}")


def _obstacle(path: Path) -> str:
    """Return why a file cannot be written; empty if no reason is evident. Raises OSError."""
    if path.is_dir():
        return "Is a directory"
    if not path.parent.is_dir():
        return "its directory does not exist"
    return "" if os.access(path if path.exists() else path.parent, os.W_OK) else "Permission denied"


def _gather(
    options: argparse.Namespace, configuring: ConfigurationResult, assumed: Assumptions
) -> InputsResult:
    if configuring.problems:
        nothing = PlanningInputs(snapshot=Snapshot(nodes=(), variants=()))
        return InputsResult(inputs=nothing, problems=configuring.problems)
    content = assumed.objects
    sys.stderr.write(content.skipped_note)
    if content.saved and not content.problems:
        inputs = configuring.over(content.saved[0])
        return InputsResult(inputs=inputs) if inputs.snapshot.variants else _without_variants(inputs)
    namespace = options.settings_namespace or configuring.namespace or INSTALLATION
    given = gather_objects(
        content,
        configuring=configuring,
        settings_namespace=namespace,
        are_assumed=bool(assumed.workloads),
    )
    if given.problems or any(map(asks_for_decisions, content.manifests)):
        return given
    broken = tuple(chain.from_iterable(content.broken.values()))
    return replace(given, problems=broken) if broken else _without_variants(given.inputs, assumed.warnings)


def _without_variants(inputs: PlanningInputs, reasons: Sequence[str] = ()) -> InputsResult:
    problems = (
        InputProblem(file="stowplan plan", line=0, text=text)
        for text in (f"nothing to plan: {NOTHING_ASKS}", *reasons)
    )
    return InputsResult(inputs=inputs, problems=tuple(problems))


def _plan(inputs: PlanningInputs, warnings: Sequence[str], given: InputsResult) -> Shown:
    from controller.planning.plan import plan  # noqa: PLC0415 (loading the solver takes a second)

    with without_collection():
        # Whoever can read the files may know all names in them.
        made = plan(inputs.snapshot, replace(inputs.settings, names_all=True))
        excess = dict.fromkeys(text for decision in made.decisions for text in decision.excess)
        answered = made.decisions if made.solver.is_answered else ()
        unsolved = (f"{d.namespace}/{d.name}" for d in answered if d.bound_by is BoundBy.SOLVER)
        return Shown(
            snapshot=inputs.snapshot,
            plan=made,
            warnings=(*warnings, *information_gaps(inputs.snapshot, made), *excess, *made.omissions),
            omitted=(*given.omitted, *unsolved),
            left_out=given.left_out,
            cost_sources=given.cost_sources,
        )


def _write_files(options: argparse.Namespace, inputs: PlanningInputs, shown: Shown) -> bool:
    """Write the files requested besides the output; return whether all could be written."""
    contents: dict[Path, bytes] = {options.save: to_json(inputs)} if options.save else {}
    if options.html:
        contents[options.html] = page(shown).encode()
    problems = [
        InputProblem(file=str(path), line=0, text=problem)
        for path, content in contents.items()
        if (problem := write_file(path, content))
    ]
    _tell(problems)
    return not problems


def _tell(problems: Iterable[InputProblem]) -> None:
    lines = (FileLine(item.file, item.line, LineSeverity.ERROR, f"error: {item.text}") for item in problems)
    write_lines(lines, sys.stderr)


def as_document(shown: Shown, assumed: Sequence[str] = ()) -> Json:
    """Return the plan, the pods on each node after it, and the warnings.

    `assumed` are the workloads for which variants are assumed.
    """
    return {
        "is_enough": shown.is_enough,
        "conclusion": conclusion(shown),
        "warnings": list(shown.warnings),
        "assumed": list(assumed),
        "plan": msgspec.to_builtins(shown.plan),
        "nodes": [_node(item) for item in layouts(shown.snapshot, shown.plan)],
    }


def _node(item: NodeLayout) -> Json:
    return {
        "name": item.node.name,
        "accelerator": item.node.accelerator,
        "accelerators": item.node.accelerators_allocatable,
        "accelerators_free": item.free,
        "accelerators_used_by_others": item.others,
        "is_schedulable": item.node.schedulable,
        "variants": [
            {
                "namespace": holding.variant[0],
                "name": holding.variant[1],
                "pods": holding.stays + holding.comes,
                "new_pods": holding.comes,
            }
            for holding in item.holdings
        ],
    }
