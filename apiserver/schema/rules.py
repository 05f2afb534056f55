"""Validation rules that a single schema keyword cannot express.

A rule has a check of raw values, the same in CEL for the API server, and a sentence for the reference page. A
rule over several fields is an argument of `@declaration` of their object, with JSON names; a rule on one
value is an argument of its `Annotated`.

    Rule                 a check by a function, with any number of CEL rules
        WebhookOnly      without CEL, which cannot express it within the API server's cost budget
        Cel              one CEL expression, and the same as a function
        EachItem         the same for each item of a list, under a condition beside the list
        LessOrEqual, Within, AtMostOneOf, ExactlyOneOf    those that several kinds share
        Transition       on the change from a stored object to an updated one
            Immutable
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from apiserver.schema.durations import nanoseconds
from apiserver.schema.errors import FORBIDDEN, INVALID, REQUIRED, FieldError, forbidden, invalid, required
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath

Check: TypeAlias = Callable[[JsonValue, FieldPath], Sequence[FieldError]]
"""A function that returns the errors of a raw value at a path, as a list or tuple; most values have none.

It receives only values of the declared JSON types: members of another type are omitted, and replaced by an
empty value in lists. Patterns, bounds and required fields may be violated.
"""

_IMMUTABLE: Final = "field is immutable: to change it, delete the object and create it anew"


@dataclass(frozen=True, kw_only=True, slots=True)
class CelRule:
    """An entry of `x-kubernetes-validations`.

    `field_name` is relative to the value that the rule applies to; empty for that value itself.
    """

    rule: str
    message: str
    reason: str = INVALID
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


class ValidationRule:
    """A validation rule: its check, its sentence for the reference page, and what the API server checks."""

    def __init__(self, check: Check, sentence: str, *, cel: Sequence[CelRule] = ()) -> None:
        self.check: Final = check
        self.sentence: Final = sentence
        self.cel: Final = tuple(cel)


class WebhookOnly(ValidationRule):
    """A rule that CEL cannot express within the API server's cost budget."""

    def __init__(self, check: Check, sentence: str) -> None:
        super().__init__(check, sentence)


class Cel(ValidationRule):
    """A rule with one CEL expression on `self`, and `holds`, the same of a raw value.

    An error is reported at the member `field`, or at the value itself. The message of an invalid value shows
    the value there, or what `shown` returns.
    """

    def __init__(
        self,
        expression: str,
        holds: Callable[[JsonValue], bool],
        message: str,
        *,
        sentence: str,
        field: str = "",
        reason: str = INVALID,
        shown: Callable[[JsonValue], JsonValue] | None = None,
    ) -> None:
        def check(value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
            if holds(value):
                return ()
            here = path.child(field) if field else path
            if reason != INVALID:
                return [_presence_error(here, reason, message)]
            return [invalid(here, shown(value) if shown else value[field] if field else value, message)]

        cel = CelRule(rule=expression, message=message, reason=reason, field_name=field)
        super().__init__(check, sentence, cel=[cel])


@dataclass(frozen=True, slots=True)
class When:
    """A condition on an object: its negation in CEL, whether a raw object meets it, and its words."""

    unless: str
    applies: Callable[[Json], bool]
    words: str


class EachItem(ValidationRule):
    """A rule on a member of each item of a list, under a condition on the object that contains the list.

    The expression is in CEL on `item`, and `holds` the same of a raw item. An error is reported at the member
    of the item, which CEL can only name: there, it is at the list. `default` is shown for an unset member.
    Without a `sentence`, the message is part of it.
    """

    def __init__(
        self,
        items: str,
        member: str,
        when: When,
        *,
        expression: str,
        holds: Callable[[Json], bool],
        message: str,
        sentence: str = "",
        reason: str = INVALID,
        default: JsonValue = None,
    ) -> None:
        def check(value: Json, path: FieldPath) -> Sequence[FieldError]:
            if not when.applies(value):
                return ()
            return [
                error(item, path.child(items).index(position).child(member))
                for position, item in enumerate(value.get(items, ()))
                if not holds(item)
            ]

        def error(item: Json, here: FieldPath) -> FieldError:
            if reason != INVALID:
                return _presence_error(here, reason, message)
            return invalid(here, item.get(member, default), message)

        cel = CelRule(
            rule=f"{when.unless} || !has(self.{items}) || self.{items}.all(item, {expression})",
            message=f"`{member}` {message}",
            reason=reason,
            field_name=items,
        )
        super().__init__(check, sentence or f"`{member}` of `{items}` {message}.", cel=[cel])


class LessOrEqual(Cel):
    """A number must be less than or equal to another. The error is reported at the lower one."""

    def __init__(self, lower: str, upper: str) -> None:
        super().__init__(
            f"!has(self.{lower}) || !has(self.{upper}) || self.{lower} <= self.{upper}",
            # No comparison holds for NaN, which replaces a number of another type.
            lambda value: not (lower in value and upper in value and value[lower] > value[upper]),
            f"must be less than or equal to `{upper}`",
            sentence=f"`{lower}` is less than or equal to `{upper}`.",
            field=lower,
        )


class Within(Cel):
    """A duration must be between two others, inclusive. Applies to the text itself.

    The schema rejects a text that is not a duration, for which the CEL rule fails, too.
    """

    def __init__(self, minimum: str, maximum: str) -> None:
        least, most = nanoseconds(minimum), nanoseconds(maximum)
        assert least is not None
        assert most is not None

        def holds(text: str) -> bool:
            length = nanoseconds(text)
            return length is None or least <= length <= most

        super().__init__(
            f"duration(self) >= duration('{minimum}') && duration(self) <= duration('{maximum}')",
            holds,
            f"must be between {minimum} and {maximum}",
            sentence=f"Between {minimum} and {maximum}.",
        )


class AtMostOneOf(ValidationRule):
    """At most one of some fields may be set. Errors are reported at all but the first that is set."""

    def __init__(self, names: Sequence[str]) -> None:
        sentence = f"At most one of {name_list(names, 'and')} may be set."
        super().__init__(partial(_beside_earlier, names), sentence, cel=_excluding_earlier(names))


class ExactlyOneOf(ValidationRule):
    """Exactly one of some fields must be set. If none is set, the error is reported at the first."""

    def __init__(self, names: Sequence[str]) -> None:
        first, message = names[0], f"exactly one of {name_list(names, 'and')} must be set"

        def check(value: Json, path: FieldPath) -> Sequence[FieldError]:
            if value.keys().isdisjoint(names):
                return [required(path.child(first), message)]
            return _beside_earlier(names, value, path)

        some = CelRule(
            rule=" || ".join(f"has(self.{name})" for name in names),
            message=message,
            reason=REQUIRED,
            field_name=first,
        )
        sentence = f"Exactly one of {name_list(names, 'and')} is set."
        super().__init__(check, sentence, cel=[some, *_excluding_earlier(names)])


class Transition(ValidationRule):
    """A rule that a value, or its member `field`, stays the same from a stored object to an updated one.

    The expression is in CEL on `self` and `oldSelf`; the API server does not evaluate it for a new object.
    `is_same` compares the old and the new value.
    """

    def __init__(
        self, expression: str, is_same: Callable[[JsonValue, JsonValue], bool], sentence: str, field: str = ""
    ) -> None:
        cel = CelRule(rule=expression, message=_IMMUTABLE, field_name=field)
        super().__init__(lambda *_: (), sentence, cel=[cel])
        self._is_same: Final = is_same
        self._field: Final = field

    def compare(self, old: JsonValue, new: JsonValue, path: FieldPath) -> Sequence[FieldError]:
        """Return the error of a change, if any."""
        if self._is_same(old, new):
            return ()
        if self._field:
            return [invalid(path.child(self._field), new.get(self._field), _IMMUTABLE)]
        return [invalid(path, new, _IMMUTABLE)]


class Immutable(Transition):
    """A list cannot be changed. Applies to the object that has it; an absent list counts as empty.

    A list map (`is_map`) is compared without regard to order, as the API server does.
    """

    def __init__(self, name: str, *, is_map: bool = False) -> None:
        def is_same(old: Json, new: Json) -> bool:
            before, after = old.get(name) or [], new.get(name) or []
            return before == after or (is_map and sorted(before, key=repr) == sorted(after, key=repr))

        new, old = f"self.{name}", f"oldSelf.{name}"
        expression = f"(has({new}) ? {new} : []) == (has({old}) ? {old} : [])"
        super().__init__(expression, is_same, f"`{name}` cannot be changed once it is stored.", name)


def name_list(names: Sequence[str], conjunction: str) -> str:
    """Return field names in backquotes, joined as in a sentence."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"


def _presence_error(here: FieldPath, reason: str, message: str) -> FieldError:
    return required(here, message) if reason == REQUIRED else forbidden(here, message)


def _beside_earlier(names: Sequence[str], value: Json, path: FieldPath) -> Sequence[FieldError]:
    """Return an error for each of these fields that is set together with an earlier one."""
    present = [name for name in names if name in value]
    return [forbidden(path.child(name), _not_beside(names[: names.index(name)])) for name in present[1:]]


def _excluding_earlier(names: Sequence[str]) -> list[CelRule]:
    """Return one CEL rule for each field but the first."""
    rules: list[CelRule] = []
    for rank, name in enumerate(names[1:], start=1):
        alone = " && ".join(f"!has(self.{other})" for other in names[:rank])
        rule = f"!has(self.{name}) || {alone if rank == 1 else f'({alone})'}"
        message = _not_beside(names[:rank])
        rules.append(CelRule(rule=rule, message=message, reason=FORBIDDEN, field_name=name))
    return rules


def _not_beside(others: Sequence[str]) -> str:
    return f"may not be set together with {name_list(others, 'or')}"
