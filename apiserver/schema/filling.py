"""Rules that require a text, list or map to be set and not empty, unless another field is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.schema.errors import FieldError, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, cel_member, has, listed


@dataclass(frozen=True, slots=True)
class NotEmptyUnless(Demand):
    """A text, list or map must be set and not empty unless another field is set."""

    name: str
    other: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether the field is unset or empty and the other is unset."""
        return not value.get(self.name) and self.other not in value

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return required(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        return [
            CelRule(
                rule=f"{has(self.other)} || ({_has_some(self.name)})",
                message=self._message(),
                reason="FieldValueRequired",
                field_name=self.name,
            )
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` is set and not empty unless `{self.other}` is set."

    def _message(self) -> str:
        return f"must be set and not empty unless `{self.other}` is set"


@dataclass(frozen=True, slots=True)
class SomeNotEmpty(Demand):
    """At least one of some texts, lists or maps must be set and not empty. The error is at the first."""

    names: tuple[str, ...]

    def is_broken(self, value: Json) -> bool:
        """Tell whether all are unset or empty."""
        return not any(value.get(name) for name in self.names)

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return required(path.child(self.names[0]), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        return [
            CelRule(
                rule=" || ".join(f"({_has_some(name)})" for name in self.names),
                message=self._message(),
                reason="FieldValueRequired",
                field_name=self.names[0],
            )
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"At least one of {listed(self.names, 'and')} is set and not empty."

    def _message(self) -> str:
        return f"at least one of {listed(self.names, 'and')} must be set and not empty"


def _has_some(name: str) -> str:
    return f"{has(name)} && size({cel_member(name)}) > 0"
