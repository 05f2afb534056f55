"""Label selectors: the grammar of the Kubernetes API, and matching."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from apiserver.metrics.status import BadRequestError


class Operator(Enum):
    """The operator of a requirement; equality is membership in a set of one."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet the requirement; an absent label is in no set."""
        if self.operator is Operator.IN:
            return labels.get(self.key) in self.values
        if self.operator is Operator.NOT_IN:
            return labels.get(self.key) not in self.values
        return (self.key in labels) is (self.operator is Operator.EXISTS)


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements; an empty one matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet every requirement."""
        for requirement in self.requirements:  # noqa: SIM110 (twice as fast as all() for one or two items)
            if not requirement.matches(labels):
                return False
        return True

    def allowed_values(self, key: str) -> frozenset[str] | None:
        """Return the allowed values of a label, or None if any value may match."""
        allowed: frozenset[str] | None = None
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator is Operator.IN:
                allowed = requirement.values if allowed is None else allowed & requirement.values
        return allowed


_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)?", re.ASCII)
_KEY: Final = re.compile(
    r"(?:(?=.{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
_SYMBOLS: Final = frozenset(["=", "==", "!=", "!", "(", ")", ",", "<", ">"])
_END: Final = ""
_EQUALS: Final = ("=", "==")


def parse_selector(text: str) -> Selector:
    """Return the selector for a query parameter: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

    Keys must be label keys. Values are not validated: a model's identifier, for example, may contain a slash.
    Raises BadRequestError, which names the unexpected token.

    Source: `k8s.io/apimachinery/pkg/labels/selector.go`.
    """
    return _Parser(text).selector()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [token for token in _TOKEN.findall(text) if token]
        self._tokens.reverse()

    def selector(self) -> Selector:
        if not self._tokens:
            return Selector()
        requirements = [self._requirement()]
        while self._peek() != _END:
            self._expect(",", wanted="',' or the end")
            requirements.append(self._requirement())
        return Selector(tuple(requirements))

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), Operator.DOES_NOT_EXIST)
        key = self._key()
        if self._peek() in {",", _END}:
            return Requirement(key, Operator.EXISTS)
        operator = self._take()
        if operator in {*_EQUALS, "!="}:
            values = frozenset([self._value()])
            return Requirement(key, Operator.IN if operator in _EQUALS else Operator.NOT_IN, values)
        if operator in {"in", "notin"}:
            return Requirement(key, Operator(operator), self._values())
        raise self._error(f"found {operator!r}, expected one of: =, ==, !=, in, notin")

    def _key(self) -> str:
        key = self._take()
        if not _KEY.fullmatch(key):
            raise self._error(f"found {key!r}, expected a label key")
        return key

    def _value(self) -> str:
        """Return the next value; no token means the empty one."""
        if self._peek() in {",", ")", _END}:
            return ""
        value = self._take()
        if value in _SYMBOLS:
            raise self._error(f"found {value!r}, expected a value")
        return value

    def _values(self) -> frozenset[str]:
        self._expect("(", wanted="'('")
        values = [self._value()]
        while self._peek() == ",":
            self._take()
            values.append(self._value())
        self._expect(")", wanted="',' or ')'")
        return frozenset(values)

    def _peek(self) -> str:
        return self._tokens[-1] if self._tokens else _END

    def _take(self) -> str:
        return self._tokens.pop() if self._tokens else _END

    def _expect(self, token: str, *, wanted: str) -> None:
        actual = self._take()
        if actual != token:
            raise self._error(f"found {actual!r}, expected {wanted}")

    def _error(self, detail: str) -> BadRequestError:
        return BadRequestError(f"unable to parse the label selector {self._text!r}: {detail}")
