"""Rules on the items of a list that apply only under a condition on a field beside the list.

They apply to the object that contains both. Where possible an error is reported at the item; a CEL rule can
report it only at the list.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from apiserver.schema.conditions import Beside, Chosen, any_of, cel_list
from apiserver.schema.errors import FieldError, forbidden, invalid, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, Rule, cel_member, predicate

Condition: TypeAlias = Beside | Chosen


class EachItem(Rule):
    """A rule on each item of a list. Subclasses define when an item breaks it, and by which member."""

    __slots__ = ()
    items: str
    when: Condition
    reason: ClassVar[str] = "FieldValueInvalid"

    def check(self, value: Json, path: FieldPath) -> Sequence[FieldError]:
        """Return an error for each item that breaks the rule, at its member."""
        is_broken = predicate(self)
        if not is_broken(value):
            return ()
        return [
            self._error(path.child(self.items).index(position).child(self._member()), item)
            for position, item in enumerate(value[self.items])
            if is_broken(value | {self.items: [item]})
        ]

    def _python(self, value: str) -> str:
        items = f"{value}.get({self.items!r}, ())"
        return f"{self.when.python(value)} and any([{self._python_of_item()} for item in {items}])"

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        items = cel_member(self.items)
        return [
            CelRule(
                rule=f"{self.when.cel()} || !has({items}) || {items}.all(item, {self._demand()})",
                message=f"`{self._member()}` {self._message()}",
                reason=self.reason,
                field_name=self.items,
            )
        ]

    def _error(self, here: FieldPath, item: Json) -> FieldError:
        return invalid(here, item[self._member()], self._message())

    @abstractmethod
    def _member(self) -> str: ...

    @abstractmethod
    def _python_of_item(self) -> str:
        """Return a condition in Python that is true if `item` breaks the rule."""

    @abstractmethod
    def _demand(self) -> str:
        """Return the negation of `_python_of_item` in CEL."""

    @abstractmethod
    def _message(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ForbiddenInItems(EachItem):
    """No item may set a field; with `takes_zero`, a number of 0 counts as unset."""

    items: str
    name: str
    when: Beside
    takes_zero: bool = False
    reason: ClassVar[str] = "FieldValueForbidden"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of `{self.items}` {self._message()}."

    def _member(self) -> str:
        return self.name

    def _python_of_item(self) -> str:
        return f"{self.name!r} in item" + (f" and item[{self.name!r}] != 0" if self.takes_zero else "")

    def _error(self, here: FieldPath, item: Json) -> FieldError:
        del item
        return forbidden(here, self._message())

    def _demand(self) -> str:
        member = cel_member(self.name, "item")
        return f"!has({member})" + (f" || {member} == 0" if self.takes_zero else "")

    def _message(self) -> str:
        return f"may not be set {self.when}"


@dataclass(frozen=True, slots=True)
class RequiredInItems(EachItem):
    """Every item must set a field."""

    items: str
    name: str
    when: Beside
    reason: ClassVar[str] = "FieldValueRequired"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of `{self.items}` is required {self.when}."

    def _member(self) -> str:
        return self.name

    def _python_of_item(self) -> str:
        return f"{self.name!r} not in item"

    def _error(self, here: FieldPath, item: Json) -> FieldError:
        del item
        return required(here, self._message())

    def _demand(self) -> str:
        return f"has({cel_member(self.name, 'item')})"

    def _message(self) -> str:
        return f"must be set {self.when}"


@dataclass(frozen=True, slots=True)
class AtLeastInItems(EachItem):
    """A number has a minimum in items that have some other field."""

    items: str
    name: str
    minimum: int
    having: str
    when: Beside

    def english(self) -> str:
        """Return the rule as a sentence."""
        return (
            f"`{self.name}` of `{self.items}` is {self.minimum} at least where `{self.having}` of the same"
            f" item is set, {self.when}."
        )

    def _member(self) -> str:
        return self.name

    def _python_of_item(self) -> str:
        name = repr(self.name)
        return f"{self.having!r} in item and {name} in item and item[{name}] < {self.minimum}"

    def _demand(self) -> str:
        having, member = cel_member(self.having, "item"), cel_member(self.name, "item")
        return f"!has({having}) || !has({member}) || {member} >= {self.minimum}"

    def _message(self) -> str:
        return f"must be greater than or equal to {self.minimum} when `{self.having}` is set"


@dataclass(frozen=True, slots=True)
class EqualInItems(EachItem):
    """A number is not less than another in items that lack some other field.

    The other number is also its maximum, so the two are equal. A violation of both rules is reported once.
    """

    items: str
    names: tuple[str, str]
    lacking: str
    when: Beside

    def english(self) -> str:
        """Return the rule as a sentence."""
        return (
            f"`{self.names[0]}` of `{self.items}` equals `{self.names[1]}` where `{self.lacking}` of the same"
            f" item is not set, {self.when}."
        )

    def _member(self) -> str:
        return self.names[0]

    def _python_of_item(self) -> str:
        first, second = map(repr, self.names)
        are_set = f"{self.lacking!r} not in item and {first} in item and {second} in item"
        return f"{are_set} and item[{first}] < item[{second}]"

    def _demand(self) -> str:
        lacking, first, second = (cel_member(name, "item") for name in (self.lacking, *self.names))
        return f"has({lacking}) || !has({first}) || !has({second}) || {first} >= {second}"

    def _message(self) -> str:
        return (
            f"must be equal to `{self.names[1]}` when neither `{self.lacking}` nor `{self.when.shown}` is set"
        )


@dataclass(frozen=True, slots=True)
class ItemsAmongWhen(EachItem):
    """A member of every item must have one of some values; `default` is the value of an unset member."""

    items: str
    name: str
    allowed: tuple[str, ...]
    default: str
    when: Condition

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of every item of `{self.items}` is {any_of(self.allowed)} {self.when}."

    def _member(self) -> str:
        return self.name

    def _python_of_item(self) -> str:
        return f"item.get({self.name!r}, {self.default!r}) not in {self.allowed!r}"

    def _error(self, here: FieldPath, item: Json) -> FieldError:
        return invalid(here, item.get(self.name, self.default), self._message())

    def _demand(self) -> str:
        member = cel_member(self.name, "item")
        return f"(has({member}) ? {member} : '{self.default}') in {cel_list(self.allowed)}"

    def _message(self) -> str:
        return f"must be {any_of(self.allowed)} {self.when}"


@dataclass(frozen=True, slots=True)
class SumAtLeast(Demand):
    """The sum of a number over all items has a minimum. The error is reported at the list."""

    items: str
    name: str
    minimum: int
    when: Beside

    def _python(self, value: str) -> str:
        items = f"{value}.get({self.items!r})"
        total = f"sum([item.get({self.name!r}, 0) for item in {items}])"
        return f"{self.when.python(value)} and {items} and {total} < {self.minimum}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of all `{self.items}` is {self.minimum} at least in sum {self.when}."

    def _field(self) -> str:
        return self.items

    def _shown(self, value: Json) -> int:
        return sum([item.get(self.name, 0) for item in value[self.items]])

    def _cel(self) -> str:
        member, items = cel_member(self.name, "item"), cel_member(self.items)
        total = f"{items}.map(item, has({member}) ? {member} : 0).sum() >= {self.minimum}"
        return f"{self.when.cel()} || !has({items}) || size({items}) == 0 || {total}"

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be greater than or equal to {self.minimum} {self.when}"


@dataclass(frozen=True, slots=True)
class OneItemWhen(Demand):
    """A list must have exactly one item."""

    items: str
    when: Condition

    def _python(self, value: str) -> str:
        # The schema rejects an empty list.
        return f"{self.when.python(value)} and len({value}.get({self.items!r}, ())) > 1"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.items}` has exactly one item {self.when}."

    def _field(self) -> str:
        return self.items

    def _shown(self, value: Json) -> int:
        return len(value[self.items])

    def _cel(self) -> str:
        items = cel_member(self.items)
        return f"{self.when.cel()} || !has({items}) || size({items}) <= 1"

    def _message(self) -> str:
        return f"must have exactly one item {self.when}"


@dataclass(frozen=True, slots=True)
class ItemOfEachWhen(Rule):
    """A list must have an item for each of some values of a member."""

    items: str
    name: str
    needed: tuple[str, ...]
    when: Condition

    def check(self, value: Json, path: FieldPath) -> Sequence[FieldError]:
        """Return an error at the list for each value that no item has."""
        if not self.is_broken(value):
            return ()
        found = {item.get(self.name) for item in value[self.items]}
        missing = [wanted for wanted in self.needed if wanted not in found]
        return [required(path.child(self.items), self._message(wanted)) for wanted in missing]

    def _python(self, value: str) -> str:
        found = f"{{item.get({self.name!r}) for item in {value}[{self.items!r}]}}"
        is_set = f"{self.when.python(value)} and {self.items!r} in {value}"
        return f"{is_set} and not {found}.issuperset({self.needed!r})"

    def cel(self) -> Sequence[CelRule]:
        """Return one CEL rule for each value."""
        member, items = cel_member(self.name, "item"), cel_member(self.items)
        unless = f"{self.when.cel()} || !has({items})"
        return [
            CelRule(
                rule=f"{unless} || {items}.exists(item, has({member}) && {member} == '{wanted}')",
                message=self._message(wanted),
                reason="FieldValueRequired",
                field_name=self.items,
            )
            for wanted in self.needed
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        every = " and one with ".join(f"'{value}'" for value in self.needed)
        return f"`{self.items}` has an item with `{self.name}` {every} {self.when}."

    def _message(self, wanted: str) -> str:
        return f"must have an item with `{self.name}` '{wanted}' {self.when}"
