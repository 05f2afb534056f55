"""What every run measures, whatever its subject."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hack.bench.goals import Goal
from hack.bench.machine import Machine, busyness
from hack.bench.pace import Pace


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How much to measure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundSettings(Settings):
    """How often and how long to measure, where CPU time is what is measured."""

    rounds: int
    seconds: float
    """Of each case, server and round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement(ABC):
    """What came of it."""

    settings: Settings
    machine: tuple[Machine, ...]
    """Before and after."""
    pace: Pace
    failure: str = ""
    """What is missing though it was asked for, and why."""

    @property
    @abstractmethod
    def goals(self) -> list[Goal]:
        """The goals that were measured."""

    @abstractmethod
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""

    @abstractmethod
    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""

    def report(self) -> Iterator[str]:
        """Yield everything that was measured, line by line."""
        yield f"busy: {busyness(self.machine)}"
        yield from (f"machine: {state.line()}" for state in self.machine)
        yield f"pace: {self.pace.line()}"
        yield ""
        for table in self.printed_tables():
            yield from table
            yield ""
