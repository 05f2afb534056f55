"""Label selectors with the grammar and the semantics of the API server: parsing and matching."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from apiserver.schema.json import Json

_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)?", re.ASCII)
_KEY: Final = re.compile(
    r"(?:(?=.{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
_SYMBOLS: Final = frozenset(["=", "==", "!=", "!", "(", ")", ",", "<", ">"])
_OPERATORS: Final = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}
_END: Final = ""


def parse_selector(text: str) -> Json:
    """Return the selector for its text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

    Keys must be label keys. Values are not validated: a model's identifier, for example, may contain a slash.
    Raises ValueError naming the unexpected token.

    Source: `k8s.io/apimachinery/pkg/labels/selector.go`.
    """
    return {"matchExpressions": _Parser(text).requirements()}


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [token for token in _TOKEN.findall(text) if token]
        self._tokens.reverse()

    def requirements(self) -> list[Json]:
        if not self._tokens:
            return []
        requirements = [self._requirement()]
        while self._peek() != _END:
            self._expect(",", expected="',' or the end")
            requirements.append(self._requirement())
        return requirements

    def _requirement(self) -> Json:
        if self._peek() == "!":
            self._take()
            return {"key": self._key(), "operator": "DoesNotExist"}
        key = self._key()
        if self._peek() in {",", _END}:
            return {"key": key, "operator": "Exists"}
        operator = self._take()
        if operator not in _OPERATORS:
            raise _token_error(operator, "one of: =, ==, !=, in, notin")
        values = self._values() if operator.isalpha() else [self._value()]
        return {"key": key, "operator": _OPERATORS[operator], "values": values}

    def _key(self) -> str:
        key = self._take()
        if not _KEY.fullmatch(key):
            raise _token_error(key, "a label key")
        return key

    def _value(self) -> str:
        """Return the next value; no token means the empty one."""
        if self._peek() in {",", ")", _END}:
            return ""
        value = self._take()
        if value in _SYMBOLS:
            raise _token_error(value, "a value")
        return value

    def _values(self) -> list[str]:
        self._expect("(", expected="'('")
        values = [self._value()]
        while self._peek() == ",":
            self._take()
            values.append(self._value())
        self._expect(")", expected="',' or ')'")
        return values

    def _peek(self) -> str:
        return self._tokens[-1] if self._tokens else _END

    def _take(self) -> str:
        return self._tokens.pop() if self._tokens else _END

    def _expect(self, token: str, *, expected: str) -> None:
        actual = self._take()
        if actual != token:
            raise _token_error(actual, expected)


def _token_error(token: str, expected: str) -> ValueError:
    return ValueError(f"found {token!r}, expected {expected}")


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels: None matches nothing, an empty one everything."""
    if selector is None:
        return False
    match_labels = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in match_labels.items()) and all(
        _meets(item, labels.get(item["key"])) for item in selector.get("matchExpressions") or []
    )


def allowed_values(selector: Json, key: str) -> frozenset[str] | None:
    """Return the values of a label that a parsed selector allows, or None if any value may match."""
    allowed: frozenset[str] | None = None
    for item in selector["matchExpressions"]:
        if item["key"] == key and item["operator"] == "In":
            allowed = frozenset(item["values"]) if allowed is None else allowed.intersection(item["values"])
    return allowed


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
