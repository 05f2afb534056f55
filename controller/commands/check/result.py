"""The result of checking an object, from which all output formats are made; `-o json` prints all of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from apiserver.schema.json import Json


class Verdict(StrEnum):
    """The result for an object, or for a document without one."""

    VALID = "valid"
    REFUSED = "refused"
    SKIPPED = "skipped"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
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
    with its defaults filled in.
    """

    file: str
    line: int
    verdict: Verdict
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    undecodable: tuple[Finding, ...] = ()
    errors: tuple[Finding, ...] = ()
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
        finding = Finding(field="", reason="NotChecked", message=self.unchecked, line=self.line)
        return replace(self, verdict=Verdict.REFUSED, errors=(finding,), unchecked="")

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
