"""Findings of checks: passed, worth knowing, or a problem with its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


ACCEPTABLE: Final = ("owners", "controllers")
"""Checks whose problems a user may accept, since what they find can be intended."""


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


def with_accepted(findings: Iterable[Finding], checks: Iterable[str]) -> tuple[Finding, ...]:
    """Return the findings with problems of the given checks turned into notes."""
    names = set(checks)
    return tuple(
        replace(item, verdict=Verdict.NOTE)
        if item.check in names and item.verdict is Verdict.PROBLEM
        else item
        for item in findings
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """An object that cannot be migrated, and why; with these members in `failures`."""

    namespace: str
    name: str
    message: str
