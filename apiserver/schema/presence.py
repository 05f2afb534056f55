"""Rules on which members are set, whatever their values; see `filling` for non-empty values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from apiserver.schema.errors import FieldError, forbidden, required
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand, Rule, has, name_list


@dataclass(frozen=True, slots=True)
class Excludes(Rule):
    """If one field is set, none of some others may be set."""

    name: str
    others: tuple[str, ...]

    def check(self, value: Json, path: FieldPath) -> Sequence[FieldError]:
        """Return an error for each field that is set together with the one that excludes it."""
        if not self.is_broken(value):
            return ()
        beside = [other for other in self.others if other in value]
        return [forbidden(path.child(other), _not_beside((self.name,))) for other in beside]

    def _python(self, value: str) -> str:
        return f"{self.name!r} in {value} and ({_some_in(value, self.others)})"

    def cel(self) -> Sequence[CelRule]:
        """Return one CEL rule for each excluded field."""
        return [_excluding(other, (self.name,)) for other in self.others]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` may not be set together with {name_list(self.others, 'or')}."


@dataclass(frozen=True, slots=True)
class Needs(Demand):
    """A field may be set only together with another."""

    name: str
    other: str
    reason: ClassVar[str] = "FieldValueForbidden"

    def _python(self, value: str) -> str:
        return f"{self.name!r} in {value} and {self.other!r} not in {value}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"`{self.name}` may be set only together with `{self.other}`."

    def _field(self) -> str:
        return self.name

    def _cel(self) -> str:
        return f"!{has(self.name)} || {has(self.other)}"

    def _message(self) -> str:
        return f"may not be set when `{self.other}` is not set"


@dataclass(frozen=True, slots=True)
class WithoutKey(Demand):
    """A map may not have a certain key. Applies to the map; `because` ends the sentence."""

    key: str
    because: str
    reason: ClassVar[str] = "FieldValueForbidden"

    def _python(self, value: str) -> str:
        return f"{self.key!r} in {value}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"May not have the key `{self.key}`, {self.because}."

    def _cel(self) -> str:
        return f"!('{self.key}' in self)"

    def _message(self) -> str:
        return f"may not have the key `{self.key}`, {self.because}"


@dataclass(frozen=True, slots=True)
class AllOrNone(Rule):
    """Some fields must be set all together or not at all, unless another field is set.

    The fields `beside` them are required with them as well, but may also be set alone.
    """

    names: tuple[str, ...]
    unless: str
    beside: tuple[str, ...] = ()

    def check(self, value: Json, path: FieldPath) -> Sequence[FieldError]:
        """Return an error for each missing field if others are set."""
        if not self.is_broken(value):
            return ()
        missing = [name for name in self._all() if name not in value]
        return [required(path.child(name), self._message(name)) for name in missing]

    def _python(self, value: str) -> str:
        some, is_missing = _some_in(value, self.names), [f"{name!r} not in {value}" for name in self._all()]
        return f"{self.unless!r} not in {value} and ({some}) and ({' or '.join(is_missing)})"

    def cel(self) -> Sequence[CelRule]:
        """Return one CEL rule for each field."""
        return [
            CelRule(
                rule=f"{has(name)} || {has(self.unless)} || !({self._any_but(name)})",
                message=self._message(name),
                reason="FieldValueRequired",
                field_name=name,
            )
            for name in self._all()
        ]

    def english(self) -> str:
        """Return the rule as a sentence."""
        alone = f" {name_list(self.beside, 'and')} may be set alone, too." if self.beside else ""
        together = f"{name_list(self._all(), 'and')} are set all together or not at all"
        return f"{together}, unless `{self.unless}` is set.{alone}"

    def _all(self) -> tuple[str, ...]:
        return (*self.names, *self.beside)

    def _message(self, name: str) -> str:
        return f"must be set together with {name_list([n for n in self._all() if n != name], 'and')}"

    def _any_but(self, name: str) -> str:
        return " || ".join(has(other) for other in self.names if other != name)


@dataclass(frozen=True, slots=True)
class AtMostOneOf(Rule):
    """At most one of some fields may be set. Errors are reported at all but the first that is set."""

    names: tuple[str, ...]

    def check(self, value: Json, path: FieldPath) -> Sequence[FieldError]:
        """Return an error for each field that is set together with an earlier one."""
        present = [name for name in self.names if name in value]
        return [forbidden(path.child(name), _not_beside(self._before(name))) for name in present[1:]]

    def _python(self, value: str) -> str:
        return f"len({value}) > 1 and {_count_in(value, self.names)} > 1"

    def cel(self) -> Sequence[CelRule]:
        """Return one CEL rule for each field but the first."""
        return [_excluding(name, self.names[:rank]) for rank, name in enumerate(self.names) if rank]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"At most one of {name_list(self.names, 'and')} may be set."

    def _before(self, name: str) -> Sequence[str]:
        return self.names[: self.names.index(name)]


@dataclass(frozen=True, slots=True)
class ExactlyOneOf(Rule):
    """Exactly one of some fields must be set. If none is set, the error is reported at the first."""

    names: tuple[str, ...]

    def check(self, value: Json, path: FieldPath) -> Sequence[FieldError]:
        """Return an error if none is set, or one for each field set together with an earlier one."""
        present = [name for name in self.names if name in value]
        if len(present) == 1:
            return ()
        if present:
            return AtMostOneOf(self.names).check(value, path)
        return [required(path.child(self.names[0]), self._message())]

    def _python(self, value: str) -> str:
        return f"{_count_in(value, self.names)} != 1"

    def cel(self) -> Sequence[CelRule]:
        """Return the CEL rule that one is set, and those that no two are."""
        some = CelRule(
            rule=" || ".join(map(has, self.names)),
            message=self._message(),
            reason="FieldValueRequired",
            field_name=self.names[0],
        )
        return [some, *AtMostOneOf(self.names).cel()]

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"Exactly one of {name_list(self.names, 'and')} is set."

    def _message(self) -> str:
        return f"exactly one of {name_list(self.names, 'and')} must be set"


def _some_in(value: str, names: Sequence[str]) -> str:
    return " or ".join(f"{name!r} in {value}" for name in names)


def _count_in(value: str, names: Sequence[str]) -> str:
    return " + ".join(f"({name!r} in {value})" for name in names)


def _not_beside(others: Sequence[str]) -> str:
    return f"may not be set together with {name_list(others, 'or')}"


def _excluding(name: str, others: Sequence[str]) -> CelRule:
    alone = " && ".join(f"!{has(other)}" for other in others)
    return CelRule(
        rule=f"!{has(name)} || {alone}" if len(others) == 1 else f"!{has(name)} || ({alone})",
        message=_not_beside(others),
        reason="FieldValueForbidden",
        field_name=name,
    )
