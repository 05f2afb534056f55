"""The frame of subcommands that change a cluster: connect, inspect, plan, execute, and report.

A report says what was found, checked, planned and done, and what to do next.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Final, TypeAlias

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, explain
from apiserver.schema.json import Json
from controller.commands.upgrade.accounts import Account
from controller.commands.upgrade.counting import count_text
from controller.commands.upgrade.findings import Finding, Verdict
from controller.commands.upgrade.permission_checks import PERMISSIONS
from controller.commands.upgrade.progress import Progress
from controller.commands.upgrade.report import Report
from controller.commands.upgrade.runs import Done, Run, RunOutcome, S, StoppedError

_MOST_OBJECTS_SHOWN: Final = 20
_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Tone(StrEnum):
    """The meaning of a line; the value is the parameter of its color."""

    PLAIN = ""
    GOOD = "32"
    BAD = "31"
    ADVICE = "33"
    HEADING = "1"


Line = tuple[Tone, str]
_TONES: Final = {Verdict.OK: Tone.GOOD, Verdict.NOTE: Tone.ADVICE, Verdict.PROBLEM: Tone.BAD}


def printable(line: Line, *, is_coloured: bool) -> str:
    """Return a line as printed, with control characters from objects replaced."""
    tone, text = line
    text = _STEERING.sub("�", text)
    return f"\x1b[{tone}m{text}\x1b[0m" if is_coloured and tone else text


def plan_lines(report: Run[S]) -> Iterator[Line]:
    """Yield what was found, checked and planned."""
    yield Tone.HEADING, f"stowplan {report.verb} of {report.cluster}"
    if isinstance(report, Report) and report.definitions:
        yield from _found_lines(report)
    yield Tone.HEADING, "checks"
    for finding in report.checks:
        yield from _check(finding)
    if report.steps:
        yield Tone.HEADING, "steps"
        for position, step in enumerate(report.steps, start=1):
            yield Tone.PLAIN, f"  {position}. {step.title}"
    if isinstance(report, Report):
        yield from _changes(report.accounts)


def end_lines(report: Run[S]) -> Iterator[Line]:
    """Yield the outcome, and what to do next."""
    match report.outcome:
        case RunOutcome.NOTHING_TO_DO:
            yield Tone.GOOD, "nothing to do"
        case RunOutcome.DONE:
            yield Tone.GOOD, f"done in {sum(item.seconds for item in report.done):.1f} s"
        case RunOutcome.STOPPED:
            yield Tone.BAD, f"stopped: {report.error}"
        case RunOutcome.PLANNED:
            yield Tone.ADVICE, "nothing was changed; use --apply to execute the plan"
    for failure in report.failures[:_MOST_OBJECTS_SHOWN]:
        yield Tone.BAD, f"  {failure.namespace}/{failure.name}: {failure.message}"
    yield from _rest(len(report.failures))
    if report.outcome in {RunOutcome.DONE, RunOutcome.NOTHING_TO_DO}:
        yield from ((Tone.PLAIN, sentence) for sentence in report.advice)


def _found_lines(report: Report) -> Iterator[Line]:
    yield Tone.HEADING, "found"
    missing = [item.name for item in report.definitions if not item.served]
    for item in report.definitions:
        if item.served:
            whose = "" if item.is_ours else ", not ours"
            served, stored = ", ".join(item.served), ", ".join(item.stored)
            yield (
                Tone.PLAIN,
                f"  {item.name}: serves {served}; stores {item.storage}; stored so far: {stored}{whose}",
            )
    if missing:
        yield Tone.PLAIN, f"  not installed: {', '.join(missing)}"
    shapes = ", ".join(f"{count} {name}" for name, count in sorted(report.shapes.items()))
    yield Tone.PLAIN, f"  {count_text(report.objects, 'object')}" + (f": {shapes}" if shapes else "")


def _check(finding: Finding) -> Iterator[Line]:
    yield _TONES[finding.verdict], f"  {finding.verdict.value:<8} {finding.check:<13} {finding.message}"
    if finding.remedy:
        yield Tone.PLAIN, f"{'':<25}{finding.remedy}"


def _changes(accounts: tuple[Account, ...]) -> Iterator[Line]:
    changed = [item for item in accounts if item.lost or item.made_up]
    if changed:
        yield (
            Tone.HEADING,
            ("values that the shape cannot express (-) and placeholders for values that it requires (+)"),
        )
    for item in changed[:_MOST_OBJECTS_SHOWN]:
        yield Tone.PLAIN, f"  {item.namespace}/{item.name}"
        yield from ((Tone.ADVICE, f"    - {sentence}") for sentence in item.lost)
        yield from ((Tone.BAD, f"    + {sentence}") for sentence in item.made_up)
    yield from _rest(len(changed))


def _rest(count: int) -> Iterator[Line]:
    if count > _MOST_OBJECTS_SHOWN:
        yield Tone.PLAIN, f"  and {count - _MOST_OBJECTS_SHOWN} more; -o json lists all"


_DONE: Final = 0
_STOPPED: Final = 1
_USAGE: Final = 2
_INTERRUPTED: Final = 130

Planner: TypeAlias = Callable[[Cluster], Awaitable[Run[S]]]
Doer: TypeAlias = Callable[[S], Awaitable[Done]]
Starter: TypeAlias = Callable[[Cluster, Progress], Awaitable[Doer[S]]]


def run(options: argparse.Namespace, plan: Planner[S], start: Starter[S]) -> int:
    """Run a subcommand and return its exit code; `start` returns the executor of the planned steps."""
    try:
        return asyncio.run(_run(options, plan, start))
    except ClusterError as error:
        message = explain(error, action="do this")
        code = _STOPPED if isinstance(error, Forbidden) else _USAGE
        if options.output == "json":
            _print_json({"outcome": RunOutcome.STOPPED.value, "error": message})
    except KeyboardInterrupt:
        message, code = "interrupted; run this command again to continue", _INTERRUPTED
    print(f"stowplan: {message}", file=sys.stderr)  # noqa: T201 (prints for users)
    return code


async def _run(options: argparse.Namespace, plan: Planner[S], start: Starter[S]) -> int:
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        report = await plan(cluster)
        is_text = options.output == "text"
        if is_text:
            _print(plan_lines(report))
        if report.steps and options.apply and not report.problems:
            report = await _apply(cluster, report, options, start)
        report = _with_advice(report)
    if is_text:
        _print(end_lines(report))
    else:
        _print_json(report.as_json())
    return _STOPPED if report.outcome is RunOutcome.STOPPED else _DONE


def _with_advice(report: Run[S]) -> Run[S]:
    if report.problems:
        problems = count_text(len(report.problems), "problem")
        error = f"{problems} to solve first; nothing was changed"
        if any(item.check == PERMISSIONS for item in report.problems):
            error = f"{problems} to solve first; nothing else was checked, and nothing was changed"
        elif not report.steps:
            error = f"there is nothing to change, but the checks found {problems} to solve"
        return replace(report, outcome=RunOutcome.STOPPED, error=error)
    return report if report.steps else replace(report, outcome=RunOutcome.NOTHING_TO_DO)


async def _apply(cluster: Cluster, report: Run[S], options: argparse.Namespace, start: Starter[S]) -> Run[S]:
    """Return the report after executing its steps, with their results or the error."""
    stream = sys.stdout if options.output == "text" else sys.stderr
    progress = Progress(stream, steps=len(report.steps))
    do = await start(cluster, progress)
    done: list[Done] = []
    try:
        for step in report.steps:
            done.append(await do(step))  # noqa: PERF401 (on an error, the steps done so far are needed)
    except StoppedError as error:
        stopped = replace(report, outcome=RunOutcome.STOPPED, done=tuple(done), advice=())
        return replace(stopped, error=str(error), failures=error.failures)
    except ClusterError as error:
        message = f"{error.message}; run this command again to continue where it stopped"
        return replace(report, outcome=RunOutcome.STOPPED, done=tuple(done), error=message, advice=())
    return replace(report, outcome=RunOutcome.DONE, done=tuple(done))


def _print_json(document: Json) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _print(lines: Iterable[Line]) -> None:
    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sys.stdout.writelines(printable(line, is_coloured=is_coloured) + "\n" for line in lines)
    sys.stdout.flush()
