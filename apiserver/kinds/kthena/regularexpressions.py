"""Regular expressions that users write: in Go's RE2 dialect, and small enough to run on every request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import re2

from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.remembering import remembered
from apiserver.schema.rules import WebhookOnly

LONGEST_REGEX: Final = 512
"""Most characters of an expression. A longer one is the schema's to refuse, and is never compiled."""

_MOST_PROGRAM_BYTES: Final = 1 << 19
"""A few characters such as `\\p{L}{1000}` compile to a program of megabytes, and take 40 ms to do so."""

_UNKNOWN_TO_GO: Final = "\\C"
"""One byte of whatever text: the C++ library knows it, Go does not."""


def _compiles(value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
    fault = compile_fault(value)
    if fault:
        yield invalid(path, value, f"must be a regular expression in RE2 syntax: {fault}")


def compile_fault(regex: str) -> str:
    """Return why a text is no regular expression that Go compiles within bounds; empty when it is one.

    Empty too for a text beyond the bound of its field.
    """
    return "" if len(regex) > LONGEST_REGEX else _fault(regex)


@remembered
def _fault(regex: str) -> str:
    if _UNKNOWN_TO_GO in regex.replace("\\\\", ""):
        return f"invalid escape sequence: {_UNKNOWN_TO_GO}"
    try:
        encoded = regex.encode()
    except UnicodeEncodeError:
        return "invalid UTF-8"
    return _compile_error(encoded)


def _compile_error(regex: bytes) -> str:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_PROGRAM_BYTES
    try:
        # A filter keeps what it compiled no longer than itself; `re2.compile` keeps 128 programs.
        re2.Filter().Add(regex, options)
    except re2.error:
        return _words_of(regex, options)
    return ""


def _words_of(regex: bytes, options: re2.Options) -> str:
    """Ask again for the reason, which a filter does not tell; what fails to compile is not kept."""
    try:
        re2.compile(regex, options)
    except re2.error as error:
        return str(error.args[0], "utf-8", "replace")
    re2.purge()
    return ""


COMPILES: Final = WebhookOnly(
    _compiles, "A regular expression in RE2 syntax whose program is 512 KiB at most."
)
"""Stands on a text that the user wrote as a regular expression."""
