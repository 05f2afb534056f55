"""What became of one object: a record that every form of output reads, and that `-o json` prints as it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apiserver.schema.json import Json


class Verdict(StrEnum):
    """What became of an object, or of a document in which none was found."""

    VALID = "valid"
    REFUSED = "refused"
    PASSED_OVER = "passed over"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing wrong: the field, the machine-readable reason, the message without the field, the line."""

    field: str
    reason: str
    message: str
    line: int

    def as_json(self) -> Json:
        """Return the finding as an entry of `errors`."""
        return {"field": self.field, "reason": self.reason, "message": self.message, "line": self.line}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One object of one file. Lines count from 1 and are 0 where a file could not even be opened.

    `undecodable` is what strict decoding refuses, `errors` what validation does; a valid object comes back in
    `value` with its defaults filled in.
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
    """Which of the warnings is about the version, and the same for every object of it."""

    value: Json | None = None

    def as_json(self) -> Json:
        """Return the outcome as an entry of `objects`."""
        return {
            "file": self.file,
            "line": self.line,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "verdict": self.verdict.value,
            "errors": [finding.as_json() for finding in (*self.undecodable, *self.errors)],
            "warnings": list(self.warnings),
            "object": self.value,
        }
