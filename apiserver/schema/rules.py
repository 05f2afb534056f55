"""Rules over several fields: a small closed vocabulary.

Each word knows three things: how to check itself on a raw object, how to say itself in CEL for the API
server, and how to say itself in English for the reference page. Field names are JSON names, relative to
the object the rule is declared on. One escape, `WebhookOnly`, holds what CEL cannot say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.schema.errors import FieldError, forbidden, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath


@dataclass(frozen=True, kw_only=True, slots=True)
class CelRule:
    """One entry of `x-kubernetes-validations`; field_name is relative to the object it stands on."""

    rule: str
    message: str
    reason: str
    field_name: str

    def as_json(self) -> Json:
        """Return the entry as a CRD writes it."""
        return {
            "rule": self.rule,
            "message": self.message,
            "reason": self.reason,
            "fieldPath": f".{self.field_name}",
        }


class Rule(Protocol):
    """A word of the vocabulary."""

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield what is wrong with a raw object whose schema may or may not hold."""

    def cel(self) -> Sequence[CelRule]:
        """Return the same demand as CEL; empty where only the webhook can know."""

    def english(self) -> str:
        """Return the demand as a sentence for the reference page."""


@dataclass(frozen=True, slots=True)
class Excludes:
    """Where one field is set, none of the others may be."""

    name: str
    others: tuple[str, ...]

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error for each field that stands beside the one that excludes it."""
        if self.name in value:
            for other in self.others:
                if other in value:
                    yield forbidden(path.child(other), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return one rule for each excluded field."""
        return [
            CelRule(
                rule=f"!has(self.{self.name}) || !has(self.{other})",
                message=self._message(),
                reason="FieldValueForbidden",
                field_name=other,
            )
            for other in self.others
        ]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.name}` may not be set together with {_listed(self.others, 'or')}."

    def _message(self) -> str:
        return f"may not be set together with `{self.name}`"


@dataclass(frozen=True, slots=True)
class AllOrNone:
    """Some fields come all together or not at all, unless another field is set."""

    names: tuple[str, ...]
    unless: str

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error for each field missing beside those that are there."""
        present = [name for name in self.names if name in value]
        if present and self.unless not in value:
            for name in self.names:
                if name not in value:
                    yield required(path.child(name), self._message(name))

    def cel(self) -> Sequence[CelRule]:
        """Return one rule for each field."""
        return [
            CelRule(
                rule=f"has(self.{name}) || has(self.{self.unless}) || !({self._any_but(name)})",
                message=self._message(name),
                reason="FieldValueRequired",
                field_name=name,
            )
            for name in self.names
        ]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return (
            f"{_listed(self.names, 'and')} are set all together or not at all, unless `{self.unless}` is set."
        )

    def _message(self, name: str) -> str:
        return f"must be set together with {_listed(tuple(n for n in self.names if n != name), 'and')}"

    def _any_but(self, name: str) -> str:
        return " || ".join(f"has(self.{other})" for other in self.names if other != name)


@dataclass(frozen=True, slots=True)
class RequiredUnless:
    """A field must be set unless one of some others is."""

    name: str
    alternatives: tuple[str, ...]

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when neither the field nor an alternative is there."""
        if self.name not in value and not any(other in value for other in self.alternatives):
            yield required(path.child(self.name), self._message())

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        names = (self.name, *self.alternatives)
        return [
            CelRule(
                rule=" || ".join(f"has(self.{name})" for name in names),
                message=self._message(),
                reason="FieldValueRequired",
                field_name=self.name,
            )
        ]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"`{self.name}` is required unless {_listed(self.alternatives, 'or')} is set."

    def _message(self) -> str:
        return f"must be set unless {_listed(self.alternatives, 'or')} is set"


@dataclass(frozen=True, slots=True)
class WebhookOnly:
    """A demand that CEL cannot say, or only beyond the server's cost budget: a plain function."""

    function: Callable[[Json, FieldPath], Iterator[FieldError]]
    sentence: str

    def check(self, value: Json, path: FieldPath) -> Iterator[FieldError]:
        """Yield what the function finds."""
        yield from self.function(value, path)

    def cel(self) -> Sequence[CelRule]:
        """Return nothing: the webhook alone checks this."""
        return ()

    def english(self) -> str:
        """Return the demand as a sentence."""
        return self.sentence


def _listed(names: Sequence[str], conjunction: str) -> str:
    quoted = [f"`{name}`" for name in names]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"
