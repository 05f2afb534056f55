"""Rules that require a text, list or map to be set and not empty, always or unless another field is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from apiserver.schema.rules import Demand, has, has_some, name_list


@dataclass(frozen=True, slots=True)
class NotEmpty(Demand):
    """A text, list or map that is optional in its type must be set and not empty."""

    name: str
    reason: ClassVar[str] = "FieldValueRequired"

    def _python(self, value: str) -> str:
        return f"not {value}.get({self.name!r})"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` is set and not empty."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        return has_some(self.name)

    def _message(self) -> str:
        return "must be set and not empty"


@dataclass(frozen=True, slots=True)
class NotEmptyUnless(Demand):
    """A text, list or map must be set and not empty unless another field is set."""

    name: str
    other: str
    reason: ClassVar[str] = "FieldValueRequired"

    def _python(self, value: str) -> str:
        return f"not {value}.get({self.name!r}) and {self.other!r} not in {value}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` is set and not empty unless `{self.other}` is set."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        return f"{has(self.other)} || ({has_some(self.name)})"

    def _message(self) -> str:
        return f"must be set and not empty unless `{self.other}` is set"


@dataclass(frozen=True, slots=True)
class SomeNotEmpty(Demand):
    """At least one of some texts, lists or maps must be set and not empty. The error is at the first."""

    names: tuple[str, ...]
    reason: ClassVar[str] = "FieldValueRequired"

    def _python(self, value: str) -> str:
        return " and ".join(f"not {value}.get({name!r})" for name in self.names)

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"At least one of {name_list(self.names, 'and')} is set and not empty."

    def _field(self) -> str:
        return self.names[0]

    def _cel(self) -> str:
        return " || ".join(f"({has_some(name)})" for name in self.names)

    def _message(self) -> str:
        return f"at least one of {name_list(self.names, 'and')} must be set and not empty"
