"""Conditions on requests: on headers, path and body. All of them must hold.

Limits on the length of text and on the number of headers are ours.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Annotated, Final

import re2

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.markers import Length, Properties
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import AtMostOneOf, WebhookOnly

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


ServedModelName = Annotated[str, Length(maximum=256)]
"""The name of a model in requests. The length limit is that of a ModelServer's `model`."""

_LONGEST_HEADER: Final = 256
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header name: `token` of RFC 9110, section 5.6.2."""


@declaration(AtMostOneOf(("exact", "prefix", "regex")))
class StringMatch:
    """A condition on a text. If no field is set, it matches every text."""

    exact: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """The exact text, case-sensitive."""

    prefix: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """A prefix of the text."""

    regex: Maybe[Annotated[str, Length(maximum=LONGEST_REGEX), COMPILES]] = UNSET
    """A regular expression in RE2 syntax that matches any part of the text. Anchor it with ^ and $ to match
    the whole text."""


@declaration()
class BodyMatch:
    """Conditions on the JSON body of a request."""

    model: Maybe[ServedModelName] = UNSET
    """The model or LoRA adapter named in the request. If unset, any name matches."""


def _header_names(value: Json, path: FieldPath) -> list[FieldError]:
    return [
        invalid(path, name, "must be a header name of letters, digits and any of !#$%&'*+.^_`|~-")
        for name in value
        if len(name) > _LONGEST_HEADER or not _TOKEN.fullmatch(name)
    ]


HeaderMatches = Annotated[
    dict[str, StringMatch],
    Properties(maximum=16),
    WebhookOnly(_header_names, "Each key is the name of a header."),
]


@declaration()
class ModelMatch:
    """Conditions on a request, all of which must hold. Without conditions, every request matches."""

    headers: Maybe[HeaderMatches] = UNSET
    """Conditions on headers, by header name. A missing header is treated as empty."""

    uri: Maybe[StringMatch] = UNSET
    """A condition on the path, without the query. If unset, every path matches."""

    body: Maybe[BodyMatch] = UNSET
    """Conditions on the JSON body of the request."""
