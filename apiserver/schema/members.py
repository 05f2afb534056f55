"""Rules on one member of an object or a map, for uses that require more than the shared type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.schema.errors import FieldError, forbidden, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, cel_member


@dataclass(frozen=True, slots=True)
class NotEmpty(Demand):
    """A text, list or map that is optional in its type must be set and not empty."""

    name: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether the member is unset or empty."""
        return not value.get(self.name)

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return required(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        member = cel_member(self.name)
        return [
            CelRule(
                rule=f"has({member}) && size({member}) > 0",
                message=self._message(),
                reason="FieldValueRequired",
                field_name=self.name,
            )
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` is set and not empty."

    def _message(self) -> str:
        return "must be set and not empty"


@dataclass(frozen=True, slots=True)
class WithoutKey(Demand):
    """A map may not have a certain key. Applies to the map; `because` ends the sentence."""

    key: str
    because: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether the key is present."""
        return self.key in value

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return forbidden(path, self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        return [
            CelRule(rule=f"!('{self.key}' in self)", message=self._message(), reason="FieldValueForbidden")
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"May not have the key `{self.key}`, {self.because}."

    def _message(self) -> str:
        return f"may not have the key `{self.key}`, {self.because}"
