"""The result of checking an object, and its output: JSON with everything, or lines as kubectl prints them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TextIO

from apiserver.schema.json import Json


class CheckVerdict(StrEnum):
    """The result for an object, or for a document without one."""

    VALID = "valid"
    REFUSED = "refused"
    SKIPPED = "skipped"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Defect:
    """An error: the field, the machine-readable reason, the message without the field, and the line.

    These are the members of an entry of `errors`.
    """

    field: str
    reason: str
    message: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """The result for one object of a file. Lines count from 1; 0 means that the file cannot be opened.

    `undecodable` has the errors of strict decoding, `errors` those of validation; `value` is a valid object
    with its defaults filled in, and None for an annotated autoscaler, of which only annotations are checked.
    """

    file: str
    line: int
    verdict: CheckVerdict
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    undecodable: tuple[Defect, ...] = ()
    errors: tuple[Defect, ...] = ()
    warnings: tuple[str, ...] = ()
    deprecation: str = ""
    """The warning about a deprecated version, which is the same for every object of that version."""

    unchecked: str = ""
    """Why something was not checked that may have been meant to be; empty for other skipped objects."""

    value: Json | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """What another version of the same object has, too."""
        return self.api_version.partition("/")[0], self.kind, self.namespace, self.name

    def strict(self) -> CheckResult:
        """Return the result where everything must be checked."""
        if not self.unchecked:
            return self
        finding = Defect(field="", reason="NotChecked", message=self.unchecked, line=self.line)
        return replace(self, verdict=CheckVerdict.REFUSED, errors=(finding,), unchecked="")

    def as_json(self) -> Json:
        """Return the result as an entry of `objects`."""
        return {
            "file": self.file,
            "line": self.line,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "verdict": self.verdict.value,
            "errors": [asdict(finding) for finding in (*self.undecodable, *self.errors)],
            "warnings": [*self.warnings, *([self.unchecked] if self.unchecked else [])],
            "object": self.value,
        }


class LineSeverity(StrEnum):
    """The meaning of a line, shown as its color on a terminal. The value is the SGR parameter."""

    SUCCESS = "32"
    WARNING = "33"
    ERROR = "31"


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of text about a place in a file; line 0 means the whole file."""

    file: str
    line: int
    severity: LineSeverity
    text: str


def write_lines(lines: Iterable[FileLine], file: TextIO) -> None:
    """Write lines, in color if the output is a terminal; control characters from files are escaped."""
    is_coloured = file.isatty() and "NO_COLOR" not in os.environ
    for line in lines:
        place = _escape(f"{line.file}:{line.line}" if line.line else line.file)
        text = _escape(line.text)
        file.write(f"{place}: \x1b[{line.severity}m{text}\x1b[0m\n" if is_coloured else f"{place}: {text}\n")


def _escape(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def lines_of(result: CheckResult, reported: set[str]) -> Iterator[FileLine]:
    """Yield the lines for one object; none for an object of another kind.

    A deprecation is reported for the first object only; `reported` keeps track of that.
    """
    warnings = [text for text in result.warnings if text != result.deprecation or text not in reported]
    reported.update(warnings)
    if result.verdict is CheckVerdict.SKIPPED and result.unchecked:
        warnings.append(result.unchecked)
    for text in warnings:
        yield FileLine(result.file, result.line, LineSeverity.WARNING, f"Warning: {text}")
    if result.verdict is CheckVerdict.VALID:
        text = " valid" if result.value is not None else ": annotations checked"
        yield FileLine(result.file, result.line, LineSeverity.SUCCESS, f"{result.kind}/{result.name}{text}")
    for text, line in _refusal(result):
        yield FileLine(result.file, line, LineSeverity.ERROR, text)


def _refusal(result: CheckResult) -> Iterator[tuple[str, int]]:
    """Yield the errors of an object with their lines, in the format of kubectl."""
    yield from _strict_refusal(result)
    whole = [error for error in result.errors if not error.reason.startswith("Field")]
    yield from ((f"error: {error.message}", error.line) for error in whole)
    of_fields = [error for error in result.errors if error.reason.startswith("Field")]
    head = f'The {result.kind} "{result.name}" is invalid:'
    if len(of_fields) == 1:
        yield f"{head} {of_fields[0].field}: {of_fields[0].message}", of_fields[0].line
    elif of_fields:
        yield head, result.line
        yield from ((f"* {error.field}: {error.message}", error.line) for error in of_fields)


def _strict_refusal(result: CheckResult) -> Iterator[tuple[str, int]]:
    errors = result.undecodable
    if not errors:
        return
    version = result.api_version.rpartition("/")[2]
    text = (
        f'Error from server (BadRequest): {result.kind} in version "{version}" cannot be handled as a'
        f" {result.kind}: strict decoding error: {', '.join(error.message for error in errors)}"
    )
    yield text, errors[0].line
    if len(errors) > 1:
        yield from ((f"* {error.message}", error.line) for error in errors)


def skipped_kinds(results: Iterable[CheckResult]) -> str:
    """Return a note on ignored objects by kind; empty if there are none."""
    skipped = [
        result for result in results if result.verdict is CheckVerdict.SKIPPED and not result.unchecked
    ]
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
