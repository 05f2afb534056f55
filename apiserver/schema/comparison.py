"""Rules that compare: two fields, a duration with its bounds, or the items of a list with a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.schema.durations import nanoseconds
from apiserver.schema.json import JsonValue
from apiserver.schema.rules import Demand, cel_member, has


@dataclass(frozen=True, slots=True)
class LessOrEqual(Demand):
    """A number must be less than or equal to another. The error is reported at the lower one."""

    lower: str
    upper: str

    def _python(self, value: str) -> str:
        lower, upper = repr(self.lower), repr(self.upper)
        return f"{lower} in {value} and {upper} in {value} and {value}[{lower}] > {value}[{upper}]"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.lower}` is less than or equal to `{self.upper}`."

    def _field(self) -> str:
        return self.lower

    def _cel(self) -> str:
        are_set = f"!{has(self.lower)} || !{has(self.upper)}"
        return f"{are_set} || {cel_member(self.lower)} <= {cel_member(self.upper)}"

    def _message(self) -> str:
        return f"must be less than or equal to `{self.upper}`"


@dataclass(frozen=True, slots=True)
class Different(Demand):
    """Two fields of one type must differ if both are set and not empty. The error is at the first.

    The fields are texts, lists or maps.
    """

    name: str
    other: str

    def _python(self, value: str) -> str:
        name, other = f"{value}.get({self.name!r})", f"{value}.get({self.other!r})"
        return f"{name} and {name} == {other}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` differs from `{self.other}`."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        name, other = cel_member(self.name), cel_member(self.other)
        return f"!has({name}) || !has({other}) || size({name}) == 0 || {name} != {other}"

    def _message(self) -> str:
        return f"must differ from `{self.other}`"


@dataclass(frozen=True, slots=True)
class Within(Demand):
    """A duration must be between two others, inclusive. Applies to the text itself."""

    minimum: str
    maximum: str

    def condition(self, value: str, known: dict[str, Any]) -> str:
        """Return the condition with its function."""
        known["nanoseconds"] = nanoseconds
        return self._python(value)

    def _python(self, value: str) -> str:
        least, most = nanoseconds(self.minimum), nanoseconds(self.maximum)
        return f"(length := nanoseconds({value})) is not None and not {least} <= length <= {most}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"Between {self.minimum} and {self.maximum}."

    def _cel(self) -> str:
        """Return the rule in CEL, which also fails for a text that is not a duration."""
        return f"duration(self) >= duration('{self.minimum}') && duration(self) <= duration('{self.maximum}')"

    def _message(self) -> str:
        return f"must be between {self.minimum} and {self.maximum}"


@dataclass(frozen=True, slots=True)
class SumAtMost(Demand):
    """The sum of a number over all items of a list has an upper limit. Applies to the list."""

    name: str
    limit: int

    def _python(self, value: str) -> str:
        return f"sum([item.get({self.name!r}, 0) for item in {value}]) > {self.limit}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of all items is {self.limit} at most in sum."

    def _shown(self, value: list[JsonValue]) -> int:
        return sum([item.get(self.name, 0) for item in value])

    def _cel(self) -> str:
        member = cel_member(self.name, "item")
        return f"self.map(item, has({member}) ? {member} : 0).sum() <= {self.limit}"

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be less than or equal to {self.limit}"


@dataclass(frozen=True, slots=True)
class SomePositive(Demand):
    """A number must be greater than 0 in at least one item of a list. Applies to the list.

    An item without the number has `default`. An empty list satisfies this rule.
    """

    name: str
    default: int

    def _python(self, value: str) -> str:
        return f"{value} and all([item.get({self.name!r}, {self.default}) <= 0 for item in {value}])"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` of at least one item is greater than 0."

    def _shown(self, value: list[JsonValue]) -> int:
        del value
        return 0

    def _cel(self) -> str:
        member = cel_member(self.name, "item")
        return f"size(self) == 0 || self.exists(item, (has({member}) ? {member} : {self.default}) > 0)"

    def _message(self) -> str:
        return f"the sum of `{self.name}` must be greater than 0"
