"""Rules on the items of a list that depend on the value of another field of the same object.

They apply to the object that contains both. Where possible an error is reported at the item; a CEL rule can
report it only at the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.schema.errors import FieldError, invalid, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, Rule, cel_member


@dataclass(frozen=True, slots=True)
class Chosen:
    """The condition of a rule: a field has one of some values. `whose` precedes its name in messages."""

    name: str
    values: tuple[str, ...]
    whose: str = ""

    def holds(self, value: Json) -> bool:
        """Tell whether the condition holds for an object."""
        return value.get(self.name) in self.values

    def cel(self) -> str:
        """Return the negated condition in CEL, to be combined with the rule by `||`."""
        choices = ", ".join(f"'{value}'" for value in self.values)
        return f"!has({cel_member(self.name)}) || !({cel_member(self.name)} in [{choices}])"

    def __str__(self) -> str:
        return f"when {self.whose}`{self.name}` is {_any(self.values)}"


@dataclass(frozen=True, slots=True)
class OneItemWhen(Demand):
    """A list must have exactly one item."""

    items: str
    when: Chosen

    def is_broken(self, value: Json) -> bool:
        """Tell whether it has more than one; the schema rejects an empty list."""
        return self.when.holds(value) and len(value.get(self.items, [])) > 1

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path.child(self.items), len(value[self.items]), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        demand = f"size({cel_member(self.items)}) <= 1"
        return [_of(self.items, self.when, demand, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.items}` has exactly one item {self.when}."

    def _message(self) -> str:
        return f"must have exactly one item {self.when}"


@dataclass(frozen=True, slots=True)
class ItemsAmongWhen(Rule):
    """A member of every item must have one of some values; `default` is the value of an unset member."""

    items: str
    name: str
    allowed: tuple[str, ...]
    default: str
    when: Chosen

    def check(self, value: Json, path: FieldPath) -> Iterable[FieldError]:
        """Return an error for each item with another value."""
        if not self.when.holds(value):
            return ()
        return [
            invalid(
                path.child(self.items).index(position).child(self.name),
                found,
                f"must be {_any(self.allowed)} {self.when}",
            )
            for position, item in enumerate(value.get(self.items, []))
            if (found := item.get(self.name, self.default)) not in self.allowed
        ]

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        member = cel_member(self.name, "item")
        choices = ", ".join(f"'{value}'" for value in self.allowed)
        found = f"(has({member}) ? {member} : '{self.default}') in [{choices}]"
        demand = f"{cel_member(self.items)}.all(item, {found})"
        return [_of(self.items, self.when, demand, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of every item of `{self.items}` is {_any(self.allowed)} {self.when}."

    def _message(self) -> str:
        return f"`{self.name}` must be {_any(self.allowed)} {self.when}"


@dataclass(frozen=True, slots=True)
class ItemOfEachWhen(Rule):
    """A list must have an item for each of some values of a member."""

    items: str
    name: str
    needed: tuple[str, ...]
    when: Chosen

    def check(self, value: Json, path: FieldPath) -> Iterable[FieldError]:
        """Return an error at the list for each value that no item has."""
        if not self.when.holds(value) or self.items not in value:
            return ()
        found = {item.get(self.name) for item in value[self.items]}
        missing = [wanted for wanted in self.needed if wanted not in found]
        return [required(path.child(self.items), self._message(wanted)) for wanted in missing]

    def cel(self) -> Sequence[CelRule]:
        """Return one CEL rule for each value."""
        member, items = cel_member(self.name, "item"), cel_member(self.items)
        return [
            _of(
                self.items,
                self.when,
                f"{items}.exists(item, has({member}) && {member} == '{wanted}')",
                message=self._message(wanted),
                reason="FieldValueRequired",
            )
            for wanted in self.needed
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        every = " and one with ".join(f"'{value}'" for value in self.needed)
        return f"`{self.items}` has an item with `{self.name}` {every} {self.when}."

    def _message(self, wanted: str) -> str:
        return f"must have an item with `{self.name}` '{wanted}' {self.when}"


def _of(items: str, when: Chosen, demand: str, *, message: str, reason: str) -> CelRule:
    return CelRule(
        rule=f"{when.cel()} || !has({cel_member(items)}) || {demand}",
        message=message,
        reason=reason,
        field_name=items,
    )


def _any(values: Sequence[str]) -> str:
    return " or ".join(f"'{value}'" for value in values)
