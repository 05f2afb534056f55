"""Conditions on requests: on headers, path and body. All of them must hold.

Limits on the length of text and on the number of headers are ours.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from apiserver.kinds.kthena.regularexpressions import COMPILES, LONGEST_REGEX
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import Json
from apiserver.schema.markers import Length, Properties
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import AtMostOneOf, WebhookOnly

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
