"""The frame of subcommands that change a cluster: connect, inspect, plan, execute on request, and report."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TextIO, TypeAlias

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, explain
from apiserver.program import command_parser
from apiserver.schema.json import Json
from controller.commands.status.options import add_kubeconfig
from controller.commands.upgrade.calls import Failure, Pace, StoppedError
from controller.commands.upgrade.report import (
    PERMISSIONS,
    Line,
    Run,
    RunOutcome,
    end_lines,
    plan_lines,
    printable,
)
from controller.planning.wording import count

_DEFAULT_RATE: Final = 100.0
_PROGRESS_SECONDS: Final = 1.0
_DONE, _STOPPED, _USAGE, _INTERRUPTED = 0, 1, 2, 130
_EPILOG: Final = """
If a run is interrupted, run the command again: it continues with the
remaining work.

exit code: 0 done, planned, or nothing to do; 1 a check found a problem, or the
run stopped; 2 wrong usage, or no usable connection to a cluster; 130
interrupted
"""


class Progress:
    """Writes a line for each start, intermediate state and end of a step, flushed at once."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._position = ""
        self._written_at = clock()

    def begin(self, position: str, title: str) -> None:
        """Report that a step begins. Its position is among all steps, such as `1/9`."""
        self._position = position
        self._written_at = self._clock()
        self._write(title)

    def tell(self, done: int, total: int, what: str) -> None:
        """Report how many of a kind are done, once a second and at the end."""
        now = self._clock()
        if done == total or now - self._written_at >= _PROGRESS_SECONDS:
            self._written_at = now
            self._write(f"{done} of {total} {what}")

    def end(self, result: str) -> None:
        """Report the result of the step."""
        self._write(f"done: {result}")

    def _write(self, text: str) -> None:
        self._stream.write(f"[{self._position}] {text}\n")
        self._stream.flush()


def migration_parser(
    verb: str, description: str, epilog: str, *, acceptable: Sequence[str]
) -> argparse.ArgumentParser:
    """Return a parser with the common options; `acceptable` are the checks for `--accept`."""
    made = command_parser(verb, description, epilog=epilog + _EPILOG)
    made.add_argument(
        "--apply", action="store_true", help="execute the plan; without this option, only print it"
    )
    add_kubeconfig(made)
    made.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    made.add_argument(
        "--accept",
        action="append",
        choices=acceptable,
        default=[],
        metavar="CHECK",
        help=f"continue despite the problems that this check finds ({' or '.join(acceptable)}); may be"
        " repeated",
    )
    made.add_argument(
        "--rate",
        type=_rate,
        default=_DEFAULT_RATE,
        metavar="N",
        help=f"process at most N objects per second (default: {_DEFAULT_RATE:g})",
    )
    return made


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be a number of objects greater than 0, such as 50 or 0.5"
        )
    return rate


Planner: TypeAlias = Callable[[Cluster, Pace], Awaitable[Run]]
"""Reads a cluster and returns the plan, whose steps keep to the pace."""


def run(options: argparse.Namespace, plan: Planner) -> int:
    """Run a subcommand and return its exit code."""
    try:
        return asyncio.run(_run(options, plan))
    except ClusterError as error:
        message = explain(error, action="do this")
        code = _STOPPED if isinstance(error, Forbidden) else _USAGE
        if options.output == "json":
            _print_json({"outcome": RunOutcome.STOPPED.value, "error": message})
    except KeyboardInterrupt:
        message, code = "interrupted; run this command again to continue", _INTERRUPTED
    print(f"stowplan: {message}", file=sys.stderr)  # noqa: T201 (prints for users)
    return code


async def _run(options: argparse.Namespace, plan: Planner) -> int:
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        is_text = options.output == "text"
        progress = Progress(sys.stdout if is_text else sys.stderr)
        report = await plan(cluster, Pace(per_second=options.rate, tell=progress.tell))
        if is_text:
            _print(plan_lines(report))
        if report.steps and options.apply and not report.problems:
            report = await _execute(report, progress)
        report = _conclude(report)
    if is_text:
        _print(end_lines(report))
    else:
        _print_json(report.as_json())
    return _STOPPED if report.outcome is RunOutcome.STOPPED else _DONE


def _conclude(report: Run) -> Run:
    """Return the report with the reason why nothing was executed, if so."""
    if report.problems:
        problems = count(len(report.problems), "problem")
        error = f"{problems} to solve first; nothing was changed"
        if any(item.check == PERMISSIONS for item in report.problems):
            error = f"{problems} to solve first; nothing else was checked, and nothing was changed"
        elif not report.steps:
            error = f"there is nothing to change, but the checks found {problems} to solve"
        return replace(report, outcome=RunOutcome.STOPPED, error=error)
    return report if report.steps else replace(report, outcome=RunOutcome.NOTHING_TO_DO)


async def _execute(report: Run, progress: Progress) -> Run:
    """Return the report after executing its steps, with their results or the error."""
    failures: tuple[Failure, ...] = ()
    done: list[Json] = []
    try:
        for number, step in enumerate(report.steps, start=1):
            began = time.monotonic()
            progress.begin(f"{number}/{len(report.steps)}", step.title)
            result = await step.act()
            progress.end(result)
            seconds = round(time.monotonic() - began, 2)
            done.append(step.as_json() | {"result": result, "seconds": seconds})
    except StoppedError as error:
        message, failures = str(error), error.failures
    except ClusterError as error:
        message = f"{error.message}; run this command again to continue where it stopped"
    else:
        return replace(report, outcome=RunOutcome.DONE, done=tuple(done))
    stopped = replace(report, outcome=RunOutcome.STOPPED, done=tuple(done), advice=())
    return replace(stopped, error=message, failures=failures)


def _print_json(document: Json) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _print(lines: Iterable[Line]) -> None:
    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sys.stdout.writelines(printable(line, is_coloured=is_coloured) + "\n" for line in lines)
    sys.stdout.flush()
