"""Rules on fields that depend on the value of another field.

An unset field has none of the values, even if its default is one of them. A map has keys of any name; an
object with declared fields has no size in CEL, so these rules cannot require or forbid it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from apiserver.schema.conditions import Chosen
from apiserver.schema.rules import Demand, cel_member, has, has_some


@dataclass(frozen=True, slots=True)
class RequiredWhen(Demand):
    """A text, list or map must be set and not empty if another field has one of some values."""

    name: str
    other: str
    values: tuple[str, ...]
    reason: ClassVar[str] = "FieldValueRequired"

    def _python(self, value: str) -> str:
        return f"{Chosen(self.other, self.values).python(value)} and not {value}.get({self.name!r})"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` is required {Chosen(self.other, self.values)}."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        return f"{Chosen(self.other, self.values).cel()} || ({has_some(self.name)})"

    def _message(self) -> str:
        return f"must be set {Chosen(self.other, self.values)}"


@dataclass(frozen=True, slots=True)
class ForbiddenWhen(Demand):
    """A text, list or map must be unset or empty if another field has one of some values."""

    name: str
    other: str
    values: tuple[str, ...]
    reason: ClassVar[str] = "FieldValueForbidden"

    def _python(self, value: str) -> str:
        return f"{Chosen(self.other, self.values).python(value)} and {value}.get({self.name!r})"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` {self._message()}."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        none = f"!{has(self.name)} || size({cel_member(self.name)}) == 0"
        return f"{Chosen(self.other, self.values).cel()} || ({none})"

    def _message(self) -> str:
        return f"may not be set {Chosen(self.other, self.values)}"


@dataclass(frozen=True, slots=True)
class ForbiddenBesideText(Demand):
    """A field may not be set if a text field is not empty."""

    name: str
    text: str
    reason: ClassVar[str] = "FieldValueForbidden"

    def _python(self, value: str) -> str:
        return f"{self.name!r} in {value} and {value}.get({self.text!r})"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` {self._message()}."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        return f"!{has(self.name)} || !{has(self.text)} || size({cel_member(self.text)}) == 0"

    def _message(self) -> str:
        return f"may not be set when `{self.text}` is not empty"
