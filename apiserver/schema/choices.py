"""Rules on fields that depend on the value of another field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.schema.errors import FieldError, forbidden, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, cel_member


@dataclass(frozen=True, slots=True)
class RequiredWhen(Demand):
    """A field must be set and not empty if another field has one of some values."""

    name: str
    other: str
    values: tuple[str, ...]

    def is_broken(self, value: Json) -> bool:
        """Tell whether the other field requires this one and it is unset or empty."""
        return value.get(self.other) in self.values and not value.get(self.name)

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return required(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule. The field is a text, a list or a map."""
        some = f"has({cel_member(self.name)}) && size({cel_member(self.name)}) > 0"
        return [_when(self.name, self.other, self.values, then=some, message=self._message())]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` is required when `{self.other}` is {_any(self.values)}."

    def _message(self) -> str:
        return f"must be set when `{self.other}` is {_any(self.values)}"


@dataclass(frozen=True, slots=True)
class ForbiddenWhen(Demand):
    """A field must be unset or empty if another field has one of some values."""

    name: str
    other: str
    values: tuple[str, ...]

    def is_broken(self, value: Json) -> bool:
        """Tell whether the field is set although the other field forbids it."""
        return value.get(self.other) in self.values and bool(value.get(self.name))

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return forbidden(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule. The field is a text, a list or a map."""
        none = f"!has({cel_member(self.name)}) || size({cel_member(self.name)}) == 0"
        rule = _when(self.name, self.other, self.values, then=none, message=self._message())
        return [
            CelRule(
                rule=rule.rule,
                message=rule.message,
                reason="FieldValueForbidden",
                field_name=rule.field_name,
            )
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` may not be set when `{self.other}` is {_any(self.values)}."

    def _message(self) -> str:
        return f"may not be set when `{self.other}` is {_any(self.values)}"


@dataclass(frozen=True, slots=True)
class ForbiddenBesideText(Demand):
    """A field may not be set if a text field is not empty."""

    name: str
    text: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether the field is set and the text is not empty."""
        return self.name in value and bool(value.get(self.text))

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return forbidden(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        name, text = cel_member(self.name), cel_member(self.text)
        return [
            CelRule(
                rule=f"!has({name}) || !has({text}) || size({text}) == 0",
                message=self._message(),
                reason="FieldValueForbidden",
                field_name=self.name,
            )
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` may not be set when `{self.text}` is not empty."

    def _message(self) -> str:
        return f"may not be set when `{self.text}` is not empty"


def _when(name: str, other: str, values: Sequence[str], *, then: str, message: str) -> CelRule:
    choices = ", ".join(f"'{value}'" for value in values)
    return CelRule(
        rule=f"!has({cel_member(other)}) || !({cel_member(other)} in [{choices}]) || ({then})",
        message=message,
        reason="FieldValueRequired",
        field_name=name,
    )


def _any(values: Sequence[str]) -> str:
    return " or ".join(f"'{value}'" for value in values)
