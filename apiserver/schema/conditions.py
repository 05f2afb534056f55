"""Conditions under which a rule applies: a field is set or not, or has one of some values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.schema.rules import cel_member, has


@dataclass(frozen=True, slots=True)
class Beside:
    """The condition that a field is set, or is not. `shown` is the name of the field in messages."""

    name: str
    shown: str
    is_set: bool

    def python(self, value: str) -> str:
        """Return the condition in Python, on the variable `value`."""
        return f"{self.name!r} {'in' if self.is_set else 'not in'} {value}"

    def cel(self) -> str:
        """Return the negated condition in CEL, to be combined with the rule by `||`."""
        return f"{'!' if self.is_set else ''}{has(self.name)}"

    def __str__(self) -> str:
        return f"when `{self.shown}` is {'' if self.is_set else 'not '}set"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The condition that a field has one of some values. `whose` precedes its name in messages."""

    name: str
    values: tuple[str, ...]
    whose: str = ""

    def python(self, value: str) -> str:
        """Return the condition in Python, on the variable `value`."""
        return f"{value}.get({self.name!r}) in {self.values!r}"

    def cel(self) -> str:
        """Return the negated condition in CEL, to be combined with the rule by `||`."""
        return f"!{has(self.name)} || !({cel_member(self.name)} in {cel_list(self.values)})"

    def __str__(self) -> str:
        return f"when {self.whose}`{self.name}` is {any_of(self.values)}"


def cel_list(values: Sequence[str]) -> str:
    """Return a list of texts in CEL."""
    return str(list(values))  # CEL has the literals of Python


def any_of(values: Sequence[str]) -> str:
    """Return texts in quotes, joined as in a sentence."""
    return " or ".join(f"'{value}'" for value in values)
