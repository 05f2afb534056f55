"""The frame of subcommands that change a cluster: connect, inspect, plan, execute, and report."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, explained
from apiserver.schema.json import Json
from apiserver.upgrading.counting import counted
from apiserver.upgrading.permission_checks import PERMISSIONS
from apiserver.upgrading.progress import Progress
from apiserver.upgrading.runs import Done, Run, RunOutcome, S, StoppedError
from apiserver.upgrading.text import Line, end_lines, plan_lines, printed

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
        message = explained(error, action="do this")
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
            report = await _applied(cluster, report, options, start)
        report = _ended(report)
    if is_text:
        _print(end_lines(report))
    else:
        _print_json(report.as_json())
    return _STOPPED if report.outcome is RunOutcome.STOPPED else _DONE


def _ended(report: Run[S]) -> Run[S]:
    if report.problems:
        problems = counted(len(report.problems), "problem")
        error = f"{problems} to solve first; nothing was changed"
        if any(item.check == PERMISSIONS for item in report.problems):
            error = f"{problems} to solve first; nothing else was checked, and nothing was changed"
        elif not report.steps:
            error = f"there is nothing to change, but the checks found {problems} to solve"
        return replace(report, outcome=RunOutcome.STOPPED, error=error)
    return report if report.steps else replace(report, outcome=RunOutcome.NOTHING_TO_DO)


async def _applied(
    cluster: Cluster, report: Run[S], options: argparse.Namespace, start: Starter[S]
) -> Run[S]:
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
    sys.stdout.writelines(printed(line, is_coloured=is_coloured) + "\n" for line in lines)
    sys.stdout.flush()
