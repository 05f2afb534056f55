"""Formatting of a report as text: what was found, checked, planned and done, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from apiserver.upgrading.accounts import Account
from apiserver.upgrading.counting import counted
from apiserver.upgrading.findings import Finding, Verdict
from apiserver.upgrading.report import Report
from apiserver.upgrading.runs import Run, RunOutcome, S

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


def printed(line: Line, *, is_coloured: bool) -> str:
    """Return a line as printed, with control characters from objects replaced."""
    tone, text = line
    text = _STEERING.sub("�", text)
    return f"\x1b[{tone}m{text}\x1b[0m" if is_coloured and tone else text


def plan_lines(report: Run[S]) -> Iterator[Line]:
    """Yield what was found, checked and planned."""
    yield Tone.HEADING, f"stowplan {report.verb} of {report.cluster}"
    if isinstance(report, Report) and report.definitions:
        yield from _found(report)
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


def _found(report: Report) -> Iterator[Line]:
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
    yield Tone.PLAIN, f"  {counted(report.objects, 'object')}" + (f": {shapes}" if shapes else "")


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
