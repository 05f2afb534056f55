"""Rules that compare: two fields with each other, a length of time with its bounds, items with a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.schema.durations import nanoseconds
from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, cel_member


@dataclass(frozen=True, slots=True)
class LessOrEqual(Demand):
    """One number may not be greater than another. Said at the lower one."""

    lower: str
    upper: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether both are there in the wrong order."""
        return self.lower in value and self.upper in value and value[self.lower] > value[self.upper]

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path.child(self.lower), value[self.lower], self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        lower, upper = cel_member(self.lower), cel_member(self.upper)
        return [
            CelRule(
                rule=f"!has({lower}) || !has({upper}) || {lower} <= {upper}",
                message=self._message(),
                reason="FieldValueInvalid",
                field_name=self.lower,
            )
        ]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.lower}` is less than or equal to `{self.upper}`."

    def _message(self) -> str:
        return f"must be less than or equal to `{self.upper}`"


@dataclass(frozen=True, slots=True)
class Different(Demand):
    """Two fields of one type, when both are set and not empty, are not the same. Said at the first."""

    name: str
    other: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether both are the same."""
        return bool(value.get(self.name)) and value.get(self.name) == value.get(self.other)

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path.child(self.name), value[self.name], self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule. The fields are texts, lists or maps."""
        name, other = cel_member(self.name), cel_member(self.other)
        return [
            CelRule(
                rule=f"!has({name}) || !has({other}) || size({name}) == 0 || {name} != {other}",
                message=self._message(),
                reason="FieldValueInvalid",
                field_name=self.name,
            )
        ]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.name}` differs from `{self.other}`."

    def _message(self) -> str:
        return f"must differ from `{self.other}`"


@dataclass(frozen=True, slots=True)
class Within(Demand):
    """A length of time lies between two others, both included. Stands on the text itself."""

    minimum: str
    maximum: str

    def is_broken(self, value: str) -> bool:
        """Tell whether the text is a length of time beyond the bounds, or beyond counting."""
        length = nanoseconds(value)
        return length is not None and not nanoseconds(self.minimum) <= length <= nanoseconds(self.maximum)  # type: ignore[operator] # the bounds are written here

    def error(self, value: str, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path, value, self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule; a text that is no length of time fails it too."""
        rule = f"duration(self) >= duration('{self.minimum}') && duration(self) <= duration('{self.maximum}')"
        return [CelRule(rule=rule, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"Between {self.minimum} and {self.maximum}."

    def _message(self) -> str:
        return f"must be between {self.minimum} and {self.maximum}"


@dataclass(frozen=True, slots=True)
class SumAtMost(Demand):
    """The sum of one number over all items of a list stays below a limit. Stands on the list."""

    name: str
    limit: int

    def is_broken(self, value: list[JsonValue]) -> bool:
        """Tell whether the sum is beyond the limit."""
        return self._total(value) > self.limit

    def error(self, value: list[JsonValue], path: FieldPath) -> FieldError:
        """Return the error, about the sum."""
        return invalid(path, self._total(value), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        member = cel_member(self.name, "item")
        rule = f"self.map(item, has({member}) ? {member} : 0).sum() <= {self.limit}"
        return [CelRule(rule=rule, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.name}` of all items is {self.limit} at most in sum."

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be less than or equal to {self.limit}"

    def _total(self, value: list[JsonValue]) -> int:
        return sum([item.get(self.name, 0) for item in value])


@dataclass(frozen=True, slots=True)
class SomePositive(Demand):
    """Of one number over all items of a list one at least is greater than 0. Stands on the list.

    An item that lacks the number counts as `default`. An empty list is no concern of this word.
    """

    name: str
    default: int

    def is_broken(self, value: list[JsonValue]) -> bool:
        """Tell whether there are items and none has a number above 0."""
        return bool(value) and all(item.get(self.name, self.default) <= 0 for item in value)

    def error(self, value: list[JsonValue], path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return invalid(path, 0, self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        member = cel_member(self.name, "item")
        rule = f"size(self) == 0 || self.exists(item, (has({member}) ? {member} : {self.default}) > 0)"
        return [CelRule(rule=rule, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.name}` of at least one item is greater than 0."

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be greater than 0"
