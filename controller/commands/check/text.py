"""Formatting of results as lines: kubectl's messages, each preceded by its place in the file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

from controller.commands.check.result import CheckResult, Finding, Verdict


class Tone(StrEnum):
    """The meaning of a line, shown as its color on a terminal. The value is the SGR parameter."""

    GOOD = "32"
    BAD = "31"
    ADVICE = "33"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text about a place in a file; line 0 means the whole file."""

    file: str
    line: int
    tone: Tone
    text: str

    def __str__(self) -> str:
        return self.printed(is_coloured=False)

    def printed(self, *, is_coloured: bool) -> str:
        """Return the line as printed, with control characters from the file escaped."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = _harmless(self.text)
        return (
            f"{_harmless(place)}: \x1b[{self.tone}m{text}\x1b[0m"
            if is_coloured
            else _harmless(f"{place}: {text}")
        )


def write_lines(lines: Iterable[Line], file: TextIO) -> None:
    """Write lines, in color if the output is a terminal."""
    is_coloured = file.isatty() and "NO_COLOR" not in os.environ
    file.writelines(line.printed(is_coloured=is_coloured) + "\n" for line in lines)


def lines_of(result: CheckResult, said: set[str]) -> Iterator[Line]:
    """Yield the lines for one object; none for an object of another kind.

    A deprecation is reported for the first object only; `said` keeps track of that.
    """

    def say(tone: Tone, text: str, line: int = result.line) -> Line:
        return Line(result.file, line, tone, text)

    for warning in result.warnings:
        if warning == result.deprecation and warning in said:
            continue
        said.add(warning)
        yield say(Tone.ADVICE, f"Warning: {warning}")
    match result.verdict:
        case Verdict.VALID:
            yield say(Tone.GOOD, f"{result.kind}/{result.name} valid")
        case Verdict.UNREADABLE:
            yield from (say(Tone.BAD, f"error: {error.message}", error.line) for error in result.errors)
        case Verdict.REFUSED:
            yield from (say(Tone.BAD, text, line) for text, line in _refusal(result))
        case Verdict.SKIPPED if result.unchecked:
            yield say(Tone.ADVICE, f"Warning: {result.unchecked}")
        case Verdict.SKIPPED:
            pass


def skipped_kinds(results: Iterable[CheckResult]) -> str:
    """Return a note on ignored objects by kind; empty if there are none."""
    skipped = [result for result in results if result.verdict is Verdict.SKIPPED and not result.unchecked]
    kinds = Counter(f"{result.kind} ({result.api_version})" for result in skipped if result.kind)
    parts = [f"{count} {kind}" for kind, count in sorted(kinds.items())]
    others = sum(not result.kind for result in skipped)
    if others:
        parts.append(
            "1 document that is not a manifest"
            if others == 1
            else f"{others} documents that are not manifests"
        )
    return ", ".join(parts)


def _refusal(result: CheckResult) -> Iterator[tuple[str, int]]:
    yield from _undecodable(result)
    whole = [error for error in result.errors if not error.reason.startswith("Field")]
    yield from ((f"error: {error.message}", error.line) for error in whole)
    listed = [error for error in result.errors if error.reason.startswith("Field")]
    head = f'The {result.kind} "{result.name}" is invalid:'
    if len(listed) == 1:
        yield f"{head} {_error_text(listed[0])}", listed[0].line
    elif listed:
        yield head, result.line
        yield from ((f"* {_error_text(error)}", error.line) for error in listed)


def _undecodable(result: CheckResult) -> Iterator[tuple[str, int]]:
    found = result.undecodable
    if not found:
        return
    version = result.api_version.rpartition("/")[2]
    yield (
        (
            f'Error from server (BadRequest): {result.kind} in version "{version}" cannot be handled as a'
            f" {result.kind}: strict decoding error: {_join(found)}"
        ),
        found[0].line,
    )
    if len(found) > 1:
        yield from ((f"* {error.message}", error.line) for error in found)


def _join(found: Sequence[Finding]) -> str:
    return ", ".join(error.message for error in found)


def _error_text(error: Finding) -> str:
    return f"{error.field}: {error.message}"


def _harmless(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
