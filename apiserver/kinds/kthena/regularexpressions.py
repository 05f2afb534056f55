"""Validation of user-defined regular expressions: valid in Go's RE2 syntax, and cheap to run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import re2

from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly

LONGEST_REGEX: Final = 512
"""The maximum number of characters of an expression. A longer one is rejected by the schema and never
compiled."""

_MOST_PROGRAM_BYTES: Final = 1 << 19
"""A few characters such as `\\p{L}{1000}` compile to a program of megabytes, and take 40 ms to do so."""

_UNKNOWN_TO_GO: Final = "\\C"
"""An escape for any single byte, which the C++ library supports but Go does not."""


def _compiles(value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
    fault = compile_fault(value)
    return [invalid(path, value, f"must be a regular expression in RE2 syntax: {fault}")] if fault else ()


def compile_fault(regex: str) -> str:
    """Return why a text is not a regular expression that Go compiles within bounds; empty if it is one.

    Also empty for a text that exceeds the length limit, which the schema rejects.
    """
    return "" if len(regex) > LONGEST_REGEX else _fault(regex)


@functools.lru_cache(maxsize=4096)
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
        # A filter frees its programs when it is deleted; `re2.compile` caches 128 of them.
        re2.Filter().Add(regex, options)
    except re2.error:
        return _words_of(regex, options)
    return ""


def _words_of(regex: bytes, options: re2.Options) -> str:
    """Return the reason of a failure by compiling again, since a filter does not report it."""
    try:
        re2.compile(regex, options)
    except re2.error as error:
        return str(error.args[0], "utf-8", "replace")
    re2.purge()
    return ""


COMPILES: Final = WebhookOnly(
    _compiles, "A regular expression in RE2 syntax whose program is 512 KiB at most."
)
"""The rule for a text that holds a user-defined regular expression."""
