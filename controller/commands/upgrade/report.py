"""Findings of checks, and the steps and results of a run, as a JSON document and as text.

`doctor` and `uninstall` report their findings in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Final

from apiserver.schema.json import Json
from controller.commands.plan.terminal import Tone
from controller.commands.upgrade.calls import Failure
from controller.planning.wording import count

PERMISSIONS: Final = "permissions"
"""The name of the check for permissions; if it fails, nothing else is checked."""

_MOST_OBJECTS_SHOWN: Final = 20
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that was checked, and what to do if it is a problem; with these members in `checks`."""

    check: str
    verdict: Verdict
    message: str
    remedy: str = ""


def ok(check: str, message: str) -> Finding:
    """Return a finding that the check passed."""
    return Finding(check=check, verdict=Verdict.OK, message=message)


def note(check: str, message: str, remedy: str = "") -> Finding:
    """Return a finding that is worth knowing but stops nothing."""
    return Finding(check=check, verdict=Verdict.NOTE, message=message, remedy=remedy)


def problem(check: str, message: str, remedy: str) -> Finding:
    """Return a finding that stops the run until it is fixed or accepted."""
    return Finding(check=check, verdict=Verdict.PROBLEM, message=message, remedy=remedy)


def check_permissions(missing: Sequence[str]) -> Finding:
    """Return whether the user lacks permissions."""
    if not missing:
        return ok(PERMISSIONS, "you have all required permissions")
    return problem(
        PERMISSIONS,
        f"you are not allowed to {', '.join(missing)}",
        "run this command as a user with these permissions, such as cluster-admin",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A step of a run: what it says, and what it does. It is planned only as long as it is not done."""

    action: str
    """A word for what it does, such as `store`."""
    subject: str = ""
    """The name of the object that it changes, if it is a single one."""
    title: str
    """What it does, as users read it."""
    act: Callable[[], Awaitable[str]]
    """Does it, waits until it is done, and returns the result in one sentence. It can be repeated.

    Raises StoppedError and ClusterError."""

    def as_json(self) -> Json:
        """Return the step as JSON."""
        return {"action": self.action, "subject": self.subject}


class RunOutcome(StrEnum):
    """The outcome of a run."""

    NOTHING_TO_DO = "nothing to do"
    PLANNED = "planned"
    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """The checks, steps and results of a run."""

    verb: str
    cluster: str
    checks: tuple[Finding, ...]
    steps: tuple[Step, ...]
    state: Json = field(default_factory=dict)
    """More members of the document: `definitions`, `objects` and `changes` of an upgrade or a downgrade."""
    outcome: RunOutcome = RunOutcome.PLANNED
    done: tuple[Json, ...] = ()
    """The steps that were executed, each with its result in one sentence, and its duration in seconds."""
    error: str = ""
    failures: tuple[Failure, ...] = ()
    advice: tuple[str, ...] = ()
    """What to do next, one command or sentence each."""

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that prevent the run from starting."""
        return tuple(item for item in self.checks if item.verdict is Verdict.PROBLEM)

    def as_json(self) -> Json:
        """Return the document that `-o json` prints."""
        return {
            "verb": self.verb,
            "cluster": self.cluster,
            "outcome": self.outcome.value,
            "checks": [asdict(item) for item in self.checks],
            "steps": [step.as_json() | {"title": step.title} for step in self.steps],
            "done": list(self.done),
            "error": self.error,
            "failures": [asdict(item) for item in self.failures],
            "advice": list(self.advice),
        } | self.state


def plan_run(
    verb: str,
    cluster: str,
    parts: Sequence[Finding | Step],
    *,
    accept: Collection[str],
    state: Json | None = None,
    advice: tuple[str, ...] = (),
) -> Run:
    """Return a run of these checks and steps; problems of the checks in `accept` become notes."""
    checks = tuple(
        replace(part, verdict=Verdict.NOTE)
        if part.verdict is Verdict.PROBLEM and part.check in accept
        else part
        for part in parts
        if isinstance(part, Finding)
    )
    steps = tuple(part for part in parts if isinstance(part, Step))
    return Run(verb=verb, cluster=cluster, checks=checks, steps=steps, state=state or {}, advice=advice)


Line = tuple[Tone, str]
_COLOURS: Final = {Tone.GOOD: "32", Tone.BAD: "31", Tone.ADVICE: "33", Tone.HEADING: "1"}
_TONES: Final = {Verdict.OK: Tone.GOOD, Verdict.NOTE: Tone.ADVICE, Verdict.PROBLEM: Tone.BAD}


def printable(line: Line, *, is_coloured: bool) -> str:
    """Return a line as printed, with control characters from objects replaced."""
    tone, text = line
    text = _CONTROL_CHARACTERS.sub("�", text)
    return f"\x1b[{_COLOURS[tone]}m{text}\x1b[0m" if is_coloured and tone in _COLOURS else text


def plan_lines(run: Run) -> Iterator[Line]:
    """Yield what was read, checked and planned."""
    yield Tone.HEADING, f"stowplan {run.verb} of {run.cluster}"
    if run.state.get("definitions"):
        yield from _state_lines(run.state)
    yield Tone.HEADING, "checks"
    for finding in run.checks:
        yield _TONES[finding.verdict], f"  {finding.verdict.value:<8} {finding.check:<13} {finding.message}"
        if finding.remedy:
            yield Tone.PLAIN, f"{'':<25}{finding.remedy}"
    if run.steps:
        yield Tone.HEADING, "steps"
        yield from (
            (Tone.PLAIN, f"  {position}. {step.title}") for position, step in enumerate(run.steps, start=1)
        )
    yield from _change_lines(run.state.get("changes") or [])


def _state_lines(state: Json) -> Iterator[Line]:
    yield Tone.HEADING, "found"
    missing = [item["name"] for item in state["definitions"] if not item["isInstalled"]]
    for item in state["definitions"]:
        if item["isInstalled"]:
            served, stored = ", ".join(item["served"]), ", ".join(item["storedVersions"])
            text = f"  {item['name']}: serves {served}; stores {item['storage']}; stored so far: {stored}"
            yield Tone.PLAIN, text + ("" if item["isOurs"] else ", not ours")
    if missing:
        yield Tone.PLAIN, f"  not installed: {', '.join(missing)}"
    shapes = ", ".join(f"{number} {name}" for name, number in sorted(state["objects"]["byShape"].items()))
    total = count(state["objects"]["total"], "object")
    yield Tone.PLAIN, f"  {total}" + (f": {shapes}" if shapes else "")


def _change_lines(changes: Sequence[Json]) -> Iterator[Line]:
    if changes:
        text = "values that the shape cannot express (-) and placeholders for values that it requires (+)"
        yield Tone.HEADING, text
    for item in changes[:_MOST_OBJECTS_SHOWN]:
        yield Tone.PLAIN, f"  {item['namespace']}/{item['name']}"
        yield from ((Tone.ADVICE, f"    - {sentence}") for sentence in item["lost"])
        yield from ((Tone.BAD, f"    + {sentence}") for sentence in item["madeUp"])
    yield from _rest(len(changes))


def end_lines(run: Run) -> Iterator[Line]:
    """Yield the outcome, and what to do next."""
    match run.outcome:
        case RunOutcome.NOTHING_TO_DO:
            yield Tone.GOOD, "nothing to do"
        case RunOutcome.DONE:
            yield Tone.GOOD, f"done in {sum(item['seconds'] for item in run.done):.1f} s"
        case RunOutcome.STOPPED:
            yield Tone.BAD, f"stopped: {run.error}"
        case RunOutcome.PLANNED:
            yield Tone.ADVICE, "nothing was changed; use --apply to execute the plan"
    for failure in run.failures[:_MOST_OBJECTS_SHOWN]:
        place = f"{failure.namespace}/{failure.name}".lstrip("/")
        yield Tone.BAD, f"  {place}: {failure.message}"
    yield from _rest(len(run.failures))
    if run.outcome in {RunOutcome.DONE, RunOutcome.NOTHING_TO_DO}:
        yield from ((Tone.PLAIN, sentence) for sentence in run.advice)


def _rest(total: int) -> Iterator[Line]:
    if total > _MOST_OBJECTS_SHOWN:
        yield Tone.PLAIN, f"  and {total - _MOST_OBJECTS_SHOWN} more; -o json lists all"
