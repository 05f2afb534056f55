"""Rules that compare: two fields, a duration with its bounds, or the items of a list with a limit."""

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
    """A number must be less than or equal to another. The error is reported at the lower one."""

    lower: str
    upper: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether both numbers are set and in the wrong order."""
        return self.lower in value and self.upper in value and value[self.lower] > value[self.upper]

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path.child(self.lower), value[self.lower], self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
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
        """Return the rule as a sentence."""
        return f"`{self.lower}` is less than or equal to `{self.upper}`."

    def _message(self) -> str:
        return f"must be less than or equal to `{self.upper}`"


@dataclass(frozen=True, slots=True)
class Different(Demand):
    """Two fields of one type must differ if both are set and not empty. The error is at the first."""

    name: str
    other: str

    def is_broken(self, value: Json) -> bool:
        """Tell whether both fields are set, not empty, and equal."""
        return bool(value.get(self.name)) and value.get(self.name) == value.get(self.other)

    def error(self, value: Json, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path.child(self.name), value[self.name], self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule. The fields are texts, lists or maps."""
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
        """Return the rule as a sentence."""
        return f"`{self.name}` differs from `{self.other}`."

    def _message(self) -> str:
        return f"must differ from `{self.other}`"


@dataclass(frozen=True, slots=True)
class Within(Demand):
    """A duration must be between two others, inclusive. Applies to the text itself."""

    minimum: str
    maximum: str

    def is_broken(self, value: str) -> bool:
        """Tell whether the text is a duration outside the bounds."""
        length = nanoseconds(value)
        return length is not None and not nanoseconds(self.minimum) <= length <= nanoseconds(self.maximum)  # type: ignore[operator] # the bounds are written here

    def error(self, value: str, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path, value, self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule, which also fails for a text that is not a duration."""
        rule = f"duration(self) >= duration('{self.minimum}') && duration(self) <= duration('{self.maximum}')"
        return [CelRule(rule=rule, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"Between {self.minimum} and {self.maximum}."

    def _message(self) -> str:
        return f"must be between {self.minimum} and {self.maximum}"


@dataclass(frozen=True, slots=True)
class SumAtMost(Demand):
    """The sum of a number over all items of a list has an upper limit. Applies to the list."""

    name: str
    limit: int

    def is_broken(self, value: list[JsonValue]) -> bool:
        """Tell whether the sum exceeds the limit."""
        return self._total(value) > self.limit

    def error(self, value: list[JsonValue], path: FieldPath) -> FieldError:
        """Return the error, which shows the sum."""
        return invalid(path, self._total(value), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        member = cel_member(self.name, "item")
        rule = f"self.map(item, has({member}) ? {member} : 0).sum() <= {self.limit}"
        return [CelRule(rule=rule, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of all items is {self.limit} at most in sum."

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be less than or equal to {self.limit}"

    def _total(self, value: list[JsonValue]) -> int:
        return sum([item.get(self.name, 0) for item in value])


@dataclass(frozen=True, slots=True)
class SomePositive(Demand):
    """A number must be greater than 0 in at least one item of a list. Applies to the list.

    An item without the number has `default`. An empty list satisfies this rule.
    """

    name: str
    default: int

    def is_broken(self, value: list[JsonValue]) -> bool:
        """Tell whether the list is not empty and no item has a positive number."""
        return bool(value) and all(item.get(self.name, self.default) <= 0 for item in value)

    def error(self, value: list[JsonValue], path: FieldPath) -> FieldError:
        """Return the error."""
        del value
        return invalid(path, 0, self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        member = cel_member(self.name, "item")
        rule = f"size(self) == 0 || self.exists(item, (has({member}) ? {member} : {self.default}) > 0)"
        return [CelRule(rule=rule, message=self._message(), reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of at least one item is greater than 0."

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be greater than 0"
