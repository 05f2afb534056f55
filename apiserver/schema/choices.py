"""Rules on fields that depend on the value of another field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from apiserver.schema.conditions import Chosen
from apiserver.schema.json import Json
from apiserver.schema.rules import Demand, cel_member, has, has_some


@dataclass(frozen=True, slots=True)
class RequiredWhen(Demand):
    """A text, list or map must be set and not empty if another field has one of some values."""

    name: str
    other: str
    values: tuple[str, ...]
    reason: ClassVar[str] = "FieldValueRequired"

    def is_broken(self, value: Json) -> bool:
        """Tell whether the other field requires this one and it is unset or empty."""
        return value.get(self.other) in self.values and not value.get(self.name)

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

    def is_broken(self, value: Json) -> bool:
        """Tell whether the field is set although the other field forbids it."""
        return value.get(self.other) in self.values and bool(value.get(self.name))

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

    def is_broken(self, value: Json) -> bool:
        """Tell whether the field is set and the text is not empty."""
        return self.name in value and bool(value.get(self.text))

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` {self._message()}."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        return f"!{has(self.name)} || !{has(self.text)} || size({cel_member(self.text)}) == 0"

    def _message(self) -> str:
        return f"may not be set when `{self.text}` is not empty"
