"""Rules: demands that one keyword on one field cannot carry. A small closed vocabulary of words.

Each word knows three things: how to check itself on a raw value, how to say itself in CEL for the API
server, and how to say itself in English for the reference page. A word over several fields is given to the
`@declaration` of their object, with JSON names; a word over one value stands in its `Annotated`. One
escape, `WebhookOnly`, holds what CEL cannot say. Among the words are those in `presence`,
`filling`, `comparison` and `transitions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.errors import FieldError
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
    """One entry of `x-kubernetes-validations`.

    `field_name` is relative to the value that the rule stands on; empty where that value itself is meant.
    """

    rule: str
    message: str
    reason: str
    field_name: str = ""
    reads_past: bool = False
    """Whether the rule reads the stored value, as the optional `oldSelf`."""

    def as_json(self) -> Json:
        """Return the entry as a CRD writes it."""
        entry: Json = {"rule": self.rule, "message": self.message, "reason": self.reason}
        if self.field_name:
            entry["fieldPath"] = f".{self.field_name}"
        if self.reads_past:
            entry["optionalOldSelf"] = True
        return entry


class Rule(ABC):
    """A word of the vocabulary.

    A check sees only values of the declared JSON types: members of another type are left out for it, and
    lists hold a bare value in their place. Patterns, bounds and required fields may be violated.
    """

    __slots__ = ()

    def check(self, value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield what is wrong with a raw value."""
        del value, path
        yield from ()

    def is_broken(self, value: JsonValue) -> bool:
        """Tell whether anything is wrong with a raw value. Asked of every object: most break no rule."""
        for _ in self.check(value, _NOWHERE):
            return True
        return False

    def cel(self) -> Sequence[CelRule]:
        """Return the same demand as CEL; empty where only the webhook can know."""
        return ()

    @abstractmethod
    def english(self) -> str:
        """Return the demand as a sentence for the reference page."""


class Demand(Rule):
    """A word that is broken or not: there is one error to say of a value at most."""

    __slots__ = ()

    def check(self, value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield the one error."""
        if self.is_broken(value):
            yield self.error(value, path)

    @abstractmethod
    def is_broken(self, value: JsonValue) -> bool:
        """Tell whether a raw value breaks the demand."""

    @abstractmethod
    def error(self, value: JsonValue, path: FieldPath) -> FieldError:
        """Return the error of a value that does."""


class Transition(Rule):
    """A word about the change from a stored value to a new one."""

    __slots__ = ()

    @abstractmethod
    def compare(self, old: JsonValue, new: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield what is wrong with a change."""


@dataclass(frozen=True, slots=True)
class WebhookOnly(Rule):
    """A demand that CEL cannot say, or only beyond the server's cost budget: a plain function."""

    function: Callable[[JsonValue, FieldPath], Iterator[FieldError]]
    sentence: str

    def check(self, value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield what the function finds."""
        return self.function(value, path)

    def english(self) -> str:
        """Return the demand as a sentence."""
        return self.sentence


@dataclass(frozen=True, slots=True)
class WithoutCel(Rule):
    """Another word, kept from the server: its lists nest so deep that CEL would exceed the cost budget."""

    rule: Rule

    def check(self, value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
        """Yield what the other word finds."""
        return self.rule.check(value, path)

    def is_broken(self, value: JsonValue) -> bool:
        """Tell what the other word tells."""
        return self.rule.is_broken(value)

    def english(self) -> str:
        """Return the demand as a sentence."""
        return self.rule.english()


def cel_member(name: str, of: str = "self") -> str:
    """Return how CEL reads a member: its own reserved words are escaped."""
    return f"{of}.__{name}__" if name in _CEL_RESERVED else f"{of}.{name}"


def has(name: str) -> str:
    """Return how CEL asks whether a member of an object is set."""
    return f"has({cel_member(name)})"


def listed(names: Sequence[str], conjunction: str) -> str:
    """Return field names in back-quotes, joined as a sentence joins them."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"
