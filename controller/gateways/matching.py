"""Conversion of a rule's conditions to matches of an HTTPRoute, in an order that Gateways keep.

Sources: `HTTPRouteMatch` and `HTTPRouteRule.matches` of gateway.networking.k8s.io/v1;
`apiserver/kinds/kthena/modelmatch.py` for the meaning of a ModelRoute's conditions. There are three
differences. A Gateway compares path prefixes by whole elements. Most Gateways anchor regular expressions, so
ours, which match anywhere, are enclosed in `.*`. And a missing header does not count as an empty one.

Gateways prefer the most specific match instead of the first one: exact paths to prefixes, longer prefixes to
shorter ones, then more headers to fewer. Only among equals the order of the rules decides. If a Gateway would
prefer a later rule to an earlier one, the earlier rule also gets a match with the conditions of both, which
is at least as specific as the later rule and comes first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

import re2

from apiserver.schema.json import Json
from controller.expansion.parts import Note

MODEL_HEADER: Final = "x-gateway-model-name"
"""The header in which body-based routing of the Inference Extension writes the model of a request's body."""

_MOST_HEADERS: Final = 15
"""Maximum number of headers in one match, in addition to that of the model."""

_PATH: Final = re.compile(r"/([-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*\Z")
_REFUSED_IN_PATHS: Final = re.compile(r"//|/\./|/\.\./|%2[fF]|/\.\.?\Z")
_HEADER_VALUE: Final = re.compile(r"[!-~]+([\t ][!-~]+)*\Z")
_ESCAPE: Final = re.compile(r"\\Q.*?(?P<end>\\E|\Z)|\\.", re.DOTALL)
_LEFT_OUT: Final = "; the rule is omitted"


class Comparison(StrEnum):
    """How a text is compared."""

    EXACT = "Exact"
    PREFIX = "PathPrefix"
    REGEX = "RegularExpression"


@dataclass(frozen=True, slots=True)
class Text:
    """A condition on a text."""

    comparison: Comparison
    value: str

    @property
    def manifest(self) -> Json:
        """The condition in the format of an HTTPRoute."""
        return {"type": str(self.comparison), "value": self.value}


EVERY_PATH: Final = Text(Comparison.PREFIX, "/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """Conditions on a request that must all hold. Header names are in lower case."""

    path: Text = EVERY_PATH
    headers: tuple[tuple[str, Text], ...] = ()

    @property
    def manifest(self) -> Json:
        """The match in the format of an HTTPRoute."""
        headers = [{"name": name, **text.manifest} for name, text in self.headers]
        return {"path": self.path.manifest} | ({"headers": headers} if headers else {})


class Incompatibility(Enum):
    """Why two conditions cannot be combined."""

    APART = "no text meets both"
    UNKNOWN = "a Gateway has no condition for both"


def can_be_header(value: str) -> bool:
    """Tell whether a Gateway accepts a text as the value of a header."""
    return bool(_HEADER_VALUE.match(value))


def match_of(conditions: Json, path: str) -> tuple[Match | None, list[Note]]:
    """Return the conditions of the rule at `path`, without those on the body.

    Return None if no request meets them, or if a note reports a condition that a Gateway does not support.
    """
    notes: list[Note] = []
    headers: dict[str, Text] = {}
    is_met = True
    for name, condition in (conditions.get("headers") or {}).items():
        here = f"{path}.headers[{name}]"
        text = _header(condition, here, notes)
        if text is not None:
            both = _both(headers.get(name.lower(), text), text)
            if isinstance(both, Text):
                headers[name.lower()] = both
            elif both is Incompatibility.APART:
                is_met = False
            else:
                notes.append(_note(here, "a Gateway supports one condition on a header"))
    if len(headers.keys() - {MODEL_HEADER}) > _MOST_HEADERS:
        detail = f"a Gateway supports {_MOST_HEADERS} headers in addition to that of the model"
        notes.append(_note(f"{path}.headers", detail))
    place = _path(conditions.get("uri") or {}, f"{path}.uri", notes)
    if place is None or not is_met or any(note.prevents for note in notes):
        return None, notes
    return Match(path=place, headers=tuple(sorted(headers.items()))), notes


def match_without_model(match: Match, name: str) -> Match | None:
    """Return a match without its condition on the model's name; None if the name does not meet it."""
    model_pattern = dict(match.headers).get(MODEL_HEADER)
    if model_pattern is not None and not _holds(model_pattern, name):
        return None
    return Match(path=match.path, headers=tuple(item for item in match.headers if item[0] != MODEL_HEADER))


def meet(some: Match, others: Match) -> Match | Incompatibility:
    """Return the conjunction of two matches."""
    path = _both(some.path, others.path)
    headers: dict[str, Text | Incompatibility] = {**dict(others.headers)}
    for name, text in some.headers:
        other = headers.get(name)
        headers[name] = text if not isinstance(other, Text) else _both(text, other)
    conditions = [path, *headers.values()]
    if Incompatibility.APART in conditions:
        return Incompatibility.APART
    texts = [(name, text) for name, text in sorted(headers.items()) if isinstance(text, Text)]
    if Incompatibility.UNKNOWN in conditions or not isinstance(path, Text) or len(texts) > _MOST_HEADERS:
        return Incompatibility.UNKNOWN
    return Match(path=path, headers=tuple(texts))


def _both(some: Text, other: Text) -> Text | Incompatibility:
    """Return the conjunction of two conditions on the same text."""
    if some == other:
        return some
    for first, second in ((some, other), (other, some)):
        if first.comparison is Comparison.EXACT:
            return first if _holds(second, first.value) else Incompatibility.APART
        if first == EVERY_PATH:
            return second
    if Comparison.REGEX in (some.comparison, other.comparison):
        return Incompatibility.UNKNOWN
    for first, second in ((some, other), (other, some)):
        if _holds(second, first.value):
            return first
    return Incompatibility.APART


def _holds(condition: Text, value: str) -> bool:
    match condition.comparison:
        case Comparison.EXACT:
            return condition.value == value
        case Comparison.PREFIX:
            return f"{value}/".startswith(f"{condition.value.rstrip('/')}/")
        case Comparison.REGEX:
            return re2.fullmatch(condition.value, value) is not None


def _path(uri: Mapping[str, str], path: str, notes: list[Note]) -> Text | None:
    if regex := uri.get("regex"):
        return Text(Comparison.REGEX, _anywhere(regex))
    for name, comparison in (("exact", Comparison.EXACT), ("prefix", Comparison.PREFIX)):
        value = uri.get(name)
        if value is None or (name, value) == ("prefix", ""):
            continue
        if not value.startswith("/"):
            return None  # every path begins with it
        if not _PATH.match(value) or _REFUSED_IN_PATHS.search(value):
            notes.append(_note(f"{path}.{name}", "a Gateway does not support such a path"))
            return None
        if comparison is Comparison.EXACT:
            return Text(comparison, value)
        if not value.endswith("/"):
            text = f"a Gateway compares whole elements of a path: not {value}x; end it with / to mean that"
            notes.append(Note(path=f"{path}.{name}", text=text))
        return Text(comparison, value.rstrip("/") or "/")
    return EVERY_PATH


def _header(condition: Mapping[str, str], path: str, notes: list[Note]) -> Text | None:
    """Return a condition on a header; None if it always holds or cannot be expressed."""
    text: Text
    if "exact" in condition:
        text = Text(Comparison.EXACT, condition["exact"])
        is_met_by_nothing = not text.value
    elif prefix := condition.get("prefix"):
        text = Text(Comparison.REGEX, f"^{re2.escape(prefix)}.*")
        is_met_by_nothing = False
    elif regex := condition.get("regex"):
        text = Text(Comparison.REGEX, _anywhere(regex))
        is_met_by_nothing = _holds(text, "")
    else:
        return None
    if is_met_by_nothing:
        notes.append(_note(path, "a Gateway has no condition that matches a missing header"))
    elif not can_be_header(text.value):
        notes.append(_note(path, "a Gateway does not support such a value of a header"))
    else:
        return text
    return None


def _anywhere(regex: str) -> str:
    """Return an expression for texts that contain a match; an open quotation would quote what follows."""
    ends = [escape["end"] for escape in _ESCAPE.finditer(regex)]  # of quotations; None for other escapes
    closed = f"{regex}\\E" if "" in ends else regex
    return f".*(?:{closed}).*"


def _note(path: str, text: str) -> Note:
    return Note(path=path, text=f"{text}{_LEFT_OUT}", prevents=True)


MOST_MATCHES: Final = 64
"""Maximum number of matches of one rule."""

MOST_MATCHES_IN_ROUTE: Final = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchOrder:
    """The matches of each rule, and pairs of rules whose order cannot be preserved."""

    matches: tuple[tuple[Match, ...], ...]
    unkept: tuple[tuple[int, int], ...]


@functools.lru_cache(maxsize=128)  # an entry may have 300 KB of texts
def in_order(rules: tuple[Match, ...]) -> MatchOrder:
    """Return matches with which a Gateway selects the first rule that applies to a request.

    The result is cached, as it is the same for most names of a route and in each reconciliation.
    """
    matches: list[list[Match]] = [[] for _ in rules]
    unkept: list[tuple[int, int]] = []
    # From the last rule on, so that an earlier rule also comes before combinations that later rules added.
    for position in reversed(range(len(rules))):
        own = [rules[position]]
        for later in range(position + 1, len(rules)):
            is_kept = [_stay_ahead(own, match) for match in matches[later]]
            if not all(is_kept):
                unkept.append((position, later))
        matches[position] = own
        if sum(map(len, matches)) > MOST_MATCHES_IN_ROUTE:  # now, as each combination costs time
            pairs = tuple((first, second) for second in range(len(rules)) for first in range(second))
            return MatchOrder(matches=tuple((match,) for match in rules), unkept=pairs)
    return MatchOrder(matches=tuple(map(tuple, matches)), unkept=tuple(sorted(unkept)))


def _stay_ahead(own: list[Match], later: Match) -> bool:
    """Put a rule before a match of a later one, if needed with another match; tell whether that works."""
    together = meet(own[0], later)
    if together is Incompatibility.APART or _is_ahead(own[0], later):
        return True
    if together is Incompatibility.UNKNOWN or not _is_ahead(together, later):
        return False
    if together in own:
        return True
    if len(own) == MOST_MATCHES:
        return False
    own.append(together)
    return True


def _is_ahead(some: Match, later: Match) -> bool:
    """Tell whether a Gateway certainly prefers a match to one of a later rule."""
    if some.path == later.path:
        return len(some.headers) >= len(later.headers)
    kinds = some.path.comparison, later.path.comparison
    if Comparison.EXACT in kinds:
        return some.path.comparison is Comparison.EXACT
    if Comparison.REGEX in kinds:
        return False  # the preference depends on the implementation
    return len(some.path.value) > len(later.path.value)
