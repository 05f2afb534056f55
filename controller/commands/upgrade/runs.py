"""A run of a subcommand that inspects a cluster, plans steps, and executes them only on request."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from apiserver.schema.json import Json
from controller.commands.upgrade.findings import Failure, Finding, Verdict
from controller.commands.upgrade.progress import Progress


class RunOutcome(StrEnum):
    """The outcome of a run."""

    NOTHING_TO_DO = "nothing to do"
    PLANNED = "planned"
    DONE = "done"
    STOPPED = "stopped"


class StoppedError(Exception):
    """A step could not be completed; the message says how to continue."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class Task(Protocol):
    """A step as shown in output."""

    @property
    def title(self) -> str:
        """A description of the step."""

    def as_json(self) -> Json:
        """Return the step as JSON."""


S = TypeVar("S", bound=Task)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The result of a step, in one sentence, and its duration in seconds."""

    step: Task
    result: str
    seconds: float

    def as_json(self) -> Json:
        """Return the result as an entry of `done`."""
        return self.step.as_json() | {"result": self.result, "seconds": round(self.seconds, 2)}


async def perform(step: S, work: Callable[[S], Awaitable[str]], progress: Progress) -> Done:
    """Execute one step and report its progress. Raises what the work raises."""
    began = time.monotonic()
    progress.begin(step.title)
    result = await work(step)
    progress.end(result)
    return Done(step=step, result=result, seconds=time.monotonic() - began)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run(Generic[S]):
    """The checks, steps and results of a run."""

    verb: str
    cluster: str
    checks: tuple[Finding, ...]
    steps: tuple[S, ...]
    outcome: RunOutcome = RunOutcome.PLANNED
    done: tuple[Done, ...] = ()
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
            "done": [item.as_json() for item in self.done],
            "error": self.error,
            "failures": [asdict(item) for item in self.failures],
            "advice": list(self.advice),
        }
