"""Rules about one member of an object or a map: demands that a use makes and the shared type does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apiserver.schema.errors import FieldError, forbidden, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Rule, cel_member


@dataclass(frozen=True, slots=True)
class NotEmpty(Rule):
    """A text, list or map that its type leaves optional must be set and not empty here."""

    name: str

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when the member is absent or empty."""
        if not value.get(self.name):
            yield required(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
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
        """Return the demand as a sentence."""
        return f"`{self.name}` is set and not empty."

    def _message(self) -> str:
        return "must be set and not empty"


@dataclass(frozen=True, slots=True)
class WithoutKey(Rule):
    """A map may not have a certain key. Stands on the map; `because` ends the sentence."""

    key: str
    because: str

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error, at the map, when the key is there."""
        if self.key in value:
            yield forbidden(path, self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        return [
            CelRule(rule=f"!('{self.key}' in self)", message=self._message(), reason="FieldValueForbidden")
        ]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"May not have the key `{self.key}`, {self.because}."

    def _message(self) -> str:
        return f"may not have the key `{self.key}`, {self.because}"
