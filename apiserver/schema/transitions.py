"""Rules on the change from a stored object to an updated one."""

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
    """A field is immutable: it can be neither changed nor added nor removed.

    Applies to the object that has the field. `empty` is the CEL value that an absent field is equal to, such
    as `[]`; without it, absence is a distinct value. A list map (`is_map`) is compared without regard to
    order, as the API server does.
    """

    name: str
    empty: str = ""
    is_map: bool = False

    def compare(self, old: Json, new: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield an error if the field has changed."""
        # Most updates keep the order too, and sorting takes long.
        if old.get(self.name) != new.get(self.name) and self._of(old) != self._of(new):
            yield invalid(path.child(self.name), new.get(self.name), _IMMUTABLE)

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule, which is not evaluated for a new object without an old self."""
        new, old = cel_member(self.name), cel_member(self.name, "oldSelf")
        if self.empty:
            rule = f"(has({new}) ? {new} : {self.empty}) == (has({old}) ? {old} : {self.empty})"
        else:
            rule = f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"
        return [CelRule(rule=rule, message=_IMMUTABLE, reason="FieldValueInvalid", field_name=self.name)]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` cannot be changed once it is stored."

    def _of(self, value: Json) -> JsonValue:
        found = value.get(self.name)
        if self.empty and not found:
            return None
        return sorted(found, key=repr) if self.is_map and isinstance(found, list) else found


@dataclass(frozen=True, slots=True)
class Unchanged(Transition):
    """A value must not change to another one, but it can be added and removed.

    Applies to the value itself.
    """

    def compare(self, old: JsonValue, new: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield an error if the value has changed."""
        if new != old:
            yield invalid(path, new, _IMMUTABLE)

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule, which the API server evaluates only if there is an old value."""
        return [CelRule(rule="self == oldSelf", message=_IMMUTABLE, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return "Cannot be changed to another value once it is stored."
