"""Parse and evaluate label selectors with the semantics of the API server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.schema.json import Json

_KEY: Final = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_VALUE: Final = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?"
_LONGEST_CHARACTERS: Final = 4096
_SHOWN_CHARACTERS: Final = 80
_VALUES_OR_COMMA: Final = re.compile(r"\([^()]*\)|,")
_SET: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_PRESENT: Final = re.compile(rf"(!?)\s*({_KEY})")


def parse_selector(text: str) -> Json:
    """Return the selector for its text form, as in a scale's status.

    Raises ValueError naming the part that is invalid, or if the text is too long to match many pods with it.
    """
    if len(text) > _LONGEST_CHARACTERS:
        raise ValueError(f"it has {len(text)} characters, of at most {_LONGEST_CHARACTERS}")
    return {"matchExpressions": [_demand(part.strip()) for part in _parts(text)]}


def _parts(text: str) -> Iterator[str]:
    """Yield the requirements; a comma in parentheses separates values."""
    start = 0
    for match in _VALUES_OR_COMMA.finditer(text):
        if match[0] == ",":
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _demand(part: str) -> Json:
    if match := _SET.fullmatch(part):
        values = [value.strip() for value in match[3].split(",")]
        return {"key": match[1], "operator": "In" if match[2] == "in" else "NotIn", "values": values}
    if match := _EQUAL.fullmatch(part):
        return {"key": match[1], "operator": "NotIn" if match[2] == "!=" else "In", "values": [match[3]]}
    if match := _PRESENT.fullmatch(part):
        return {"key": match[2], "operator": "DoesNotExist" if match[1] else "Exists"}
    raise ValueError(f"{part[:_SHOWN_CHARACTERS]!r} is not a label requirement")


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels: None matches nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(item, labels.get(item["key"])) for item in selector.get("matchExpressions") or []
    )


def selected_keys(selector: Json) -> frozenset[str]:
    """Return the label keys that a selector uses."""
    expressions = selector.get("matchExpressions") or []
    return frozenset({*(selector.get("matchLabels") or {}), *(item["key"] for item in expressions)})


def _meets(item: Json, value: str | None) -> bool:
    match item["operator"]:
        case "In":
            return value in (item.get("values") or ())
        case "NotIn":
            return value not in (item.get("values") or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            # An unknown operator is assumed to match: that errs towards fewer evictions, and more rules.
            return True
