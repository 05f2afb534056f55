"""Validation rules that a single schema keyword cannot express: a small, closed vocabulary.

Each rule can check a raw value, express itself in CEL for the API server, and describe itself in English for
the reference page. Whether a value breaks a rule is written as a condition in Python, which becomes part of
one function for all rules of a declaration (`ruling.finder`): a call per rule and value would take longer. A
rule over several fields is an argument of `@declaration` of their object, with JSON names; a rule on one
value is an argument of its `Annotated`. `WebhookOnly` holds a rule that CEL cannot express. More rules are in
`presence`, `filling`, `comparison`, `transitions` and other modules.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from apiserver.schema.errors import FieldError, forbidden, invalid, required
from apiserver.schema.generated import function
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath

# fmt: off
_CEL_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
    "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})
# fmt: on


_NOWHERE: Final = FieldPath()


@dataclass(frozen=True, kw_only=True, slots=True)
class CelRule:
    """An entry of `x-kubernetes-validations`.

    `field_name` is relative to the value that the rule applies to; empty for that value itself.
    """

    rule: str
    message: str
    reason: str
    field_name: str = ""
    reads_past: bool = False
    """Whether the rule reads the stored value, as the optional `oldSelf`."""

    def as_json(self) -> Json:
        """Return the entry as in a CRD."""
        entry: Json = {"rule": self.rule, "message": self.message, "reason": self.reason}
        if self.field_name:
            entry["fieldPath"] = f".{self.field_name}"
        if self.reads_past:
            entry["optionalOldSelf"] = True
        return entry


class Rule(ABC):
    """A validation rule.

    A check receives only values of the declared JSON types: members of another type are omitted, and replaced
    by an empty value in lists. Patterns, bounds and required fields may be violated.
    """

    __slots__ = ()

    def check(self, value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
        """Return the errors of a raw value."""
        del value, path
        return ()

    def is_broken(self, value: JsonValue) -> bool:
        """Tell whether a raw value has an error."""
        return predicate(self)(value)

    def condition(self, value: str, known: dict[str, Any]) -> str:
        """Return a condition in Python that is true if the variable `value` has an error, as most do not.

        The objects that it names are added to `known`.
        """
        return self._python(value) or call_source(self.check, value, known)

    def _python(self, value: str) -> str:
        """Return the condition, if it needs no objects; empty to call `check`."""
        del value
        return ""

    def cel(self) -> Sequence[CelRule]:
        """Return the rule in CEL; empty if only the webhook can check it."""
        return ()

    @abstractmethod
    def english(self) -> str:
        """Return the rule as a sentence for the reference page."""


class Demand(Rule):
    """A rule with at most one error per value, and one CEL rule with the same reason, field and message.

    Subclasses define these, and when a value breaks the rule.
    """

    __slots__ = ()
    reason: ClassVar[str] = "FieldValueInvalid"

    def check(self, value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
        """Return the error, if any."""
        if not self.is_broken(value):
            return ()
        return [self._error(value, path.child(self._field()) if self._field() else path)]

    @abstractmethod
    def _python(self, value: str) -> str:
        """Return a condition in Python that is true if the variable `value` breaks the rule."""

    def cel(self) -> Sequence[CelRule]:
        """Return the single CEL rule."""
        return [
            CelRule(rule=self._cel(), message=self._message(), reason=self.reason, field_name=self._field())
        ]

    def _error(self, value: JsonValue, here: FieldPath) -> FieldError:
        match self.reason:
            case "FieldValueRequired":
                return required(here, self._message())
            case "FieldValueForbidden":
                return forbidden(here, self._message())
            case _:
                return invalid(here, self._shown(value), self._message())

    def _field(self) -> str:
        """Return the member at which an error is reported; empty for the value itself."""
        return ""

    def _shown(self, value: JsonValue) -> JsonValue:
        """Return what the message shows as invalid."""
        return value[self._field()] if self._field() else value

    @abstractmethod
    def _cel(self) -> str:
        """Return the negation of `_python` in CEL."""

    @abstractmethod
    def _message(self) -> str: ...


class Transition(Rule):
    """A rule on the change from a stored value to a new one."""

    __slots__ = ()

    @abstractmethod
    def compare(self, old: JsonValue, new: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield the errors of a change."""


@dataclass(frozen=True, slots=True)
class WebhookOnly(Rule):
    """A rule given as a function, since CEL cannot express it within the API server's cost budget."""

    function: Callable[[JsonValue, FieldPath], Sequence[FieldError]]
    """Returns the errors. Called for every object, and most have none."""

    sentence: str

    only_if: str = ""
    """A condition in Python on `{0}`, without which the function is not called."""

    def check(self, value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
        """Return the errors that the function finds."""
        if self.only_if and not self.is_broken(value):
            return ()
        return self.function(value, path)

    def condition(self, value: str, known: dict[str, Any]) -> str:
        """Return a call of the function, which is made only where it may find something."""
        condition = f"{self.only_if.format(value)} and " if self.only_if else ""
        return condition + call_source(self.function, value, known)

    def english(self) -> str:
        """Return the rule as a sentence."""
        return self.sentence


@dataclass(frozen=True, slots=True)
class WithoutCel(Rule):
    """A rule without CEL: its lists are nested so deeply that CEL would exceed the cost budget."""

    rule: Rule

    def check(self, value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
        """Return the errors that the wrapped rule finds."""
        return self.rule.check(value, path)

    def condition(self, value: str, known: dict[str, Any]) -> str:
        """Return the condition of the wrapped rule."""
        return self.rule.condition(value, known)

    def english(self) -> str:
        """Return the rule as a sentence."""
        return self.rule.english()


@functools.cache
def predicate(rule: Rule) -> Callable[[JsonValue], bool]:
    """Return a function that tells whether a raw value breaks a rule."""
    known: dict[str, Any] = {}
    body = [f"return bool({rule.condition('value', known)})"]
    is_broken: Callable[[JsonValue], bool] = function("value", body, known, about=type(rule).__name__)
    return is_broken


def call_source(
    check: Callable[[JsonValue, FieldPath], Sequence[FieldError]], value: str, known: dict[str, Any]
) -> str:
    """Return the source of a call that is true if a function finds errors in the variable `value`."""
    name = f"check{len(known)}"
    known |= {name: check, "nowhere": _NOWHERE}
    return f"{name}({value}, nowhere)"


def cel_member(name: str, of: str = "self") -> str:
    """Return the CEL expression of a member, with reserved words escaped."""
    return f"{of}.__{name}__" if name in _CEL_RESERVED else f"{of}.{name}"


def has(name: str) -> str:
    """Return the CEL expression for whether a member of an object is set."""
    return f"has({cel_member(name)})"


def has_some(name: str) -> str:
    """Return the CEL expression for whether a text, list or map is set and not empty."""
    return f"{has(name)} && size({cel_member(name)}) > 0"


def name_list(names: Sequence[str], conjunction: str) -> str:
    """Return field names in backquotes, joined as in a sentence."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"
