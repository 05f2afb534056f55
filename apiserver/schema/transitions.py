"""Rules over a stored object and its successor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Transition, cel_member

_IMMUTABLE: Final = "field is immutable: to change it, delete the object and create it anew"


@dataclass(frozen=True, slots=True)
class Immutable(Transition):
    """A field keeps its first value: it can be neither changed nor added nor removed.

    Stands on the object that has the field. `empty` is how CEL writes the value that an absent field
    counts as, such as `[]`; without it, absence is a value of its own. A list map (`is_map`) is the same in
    any order, as it is to the server.
    """

    name: str
    empty: str = ""
    is_map: bool = False

    def compare(self, old: Json, new: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when the field is not what it was."""
        if self._of(old) != self._of(new):
            yield invalid(path.child(self.name), new.get(self.name), _IMMUTABLE)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule; it holds for a new object, which has no old self."""
        new, old = cel_member(self.name), cel_member(self.name, "oldSelf")
        if self.empty:
            rule = f"(has({new}) ? {new} : {self.empty}) == (has({old}) ? {old} : {self.empty})"
        else:
            rule = f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"
        return [CelRule(rule=rule, message=_IMMUTABLE, reason="FieldValueInvalid", field_name=self.name)]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.name}` cannot be changed once it is stored."

    def _of(self, value: Json) -> JsonValue:
        found = value.get(self.name)
        if self.empty and not found:
            return None
        return sorted(found, key=repr) if self.is_map and isinstance(found, list) else found


@dataclass(frozen=True, slots=True)
class Unchanged(Transition):
    """A value that is set before and after an update is the same; it can be added and removed.

    Stands on the value itself.
    """

    def compare(self, old: JsonValue, new: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when the value is not what it was."""
        if new != old:
            yield invalid(path, new, _IMMUTABLE)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule; the server holds it against values that have a past only."""
        return [CelRule(rule="self == oldSelf", message=_IMMUTABLE, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return "Cannot be changed to another value once it is stored."
