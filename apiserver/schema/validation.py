"""The one judge: a declaration compiled once, which fills in defaults and finds every error at once.

A valid object is told by the generated schema and by one function for all rules; nobody builds a path or a
message for it. What is wrong with any other is listed in the order of the fields.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import jsonschema_rs
import msgspec

from apiserver.schema.bounding import Cut, cut_down
from apiserver.schema.errors import FieldError
from apiserver.schema.filler import Addition, filler
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of
from apiserver.schema.objectmeta import with_metadata
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import (
    Broken,
    Finder,
    change_errors,
    finder,
    is_check,
    is_transition,
    rule_errors,
    rules_on,
)
from apiserver.schema.shape import well_typed, without_nulls
from apiserver.schema.structural import judged_schema, types_schema
from apiserver.schema.wording import located, translated

_LARGE_BYTES: Final = 64 * 1024
_WRONG_TYPE: Final = "FieldValueTypeInvalid"
_INVALID: Final = "FieldValueInvalid"
_encode: Final = msgspec.json.Encoder().encode

MOST_ERRORS: Final = 100
"""More are not listed: a manifest of a megabyte could be wrong in a hundred thousand places."""


class Judge:
    """What a declaration demands and fills in. Made once for each, see `judge`."""

    def __init__(self, declared: type) -> None:
        self.node: Final = with_metadata(node_of(declared))
        # The plain regex engine agrees with Go's; the default one knows look-arounds that Go does not.
        self._schema = jsonschema_rs.Draft202012Validator(
            judged_schema(self.node), validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
        )
        self._types = jsonschema_rs.Draft202012Validator(types_schema(self.node))
        checks = rules_on(self.node, is_check)
        self._find_broken: Finder = _nothing if checks is None else finder(checks)
        self._changes = rules_on(self.node, is_transition)
        self._fill = filler(self.node)

    def default(self, value: Json) -> list[Addition]:
        """Fill every default of the schema into a raw object, in place, and return what was added.

        A member that is there with another type than declared is left alone: validation will say so.
        """
        found: list[Addition] = []
        if self._fill is not None:
            self._fill(value, "", found)
        return found

    def is_valid(self, value: Json) -> bool:
        """Tell whether a raw object meets the schema; rules aside."""
        try:
            return self._schema.is_valid(value)
        except ValueError:  # nested beyond the library's own limit, which is far beyond ours
            return False

    def is_well_typed(self, value: Json) -> bool:
        """Tell whether a raw object has the declared JSON types, with no null among them."""
        try:
            return self._types.is_valid(value)
        except ValueError:  # as above
            return False

    def fitting(self, value: Json) -> Json:
        """Return what of a raw object has the declared types; the object itself where all of it has."""
        if self.is_well_typed(value):
            return value
        fitting: Json = well_typed(self.node, without_nulls(self.node, value))
        return fitting

    def validate(self, value: Json, old: Json | None = None, *, fits: bool | None = None) -> list[FieldError]:
        """Return everything wrong with a raw object; empty when it is valid.

        With the stored object beside it, transition rules hold as well. A member that is null counts as
        absent, as on the server. `fits` tells what is known of the schema already.
        """
        if fits is None:
            fits = self.is_valid(value)
        changed = [] if old is None else self._changed(old, value, fits=fits)
        broken = self._find_broken(value) if fits else []
        if fits and not changed and not broken:
            return []
        return self._listed(value, changed, broken, fits=fits)

    def _changed(self, old: Json, new: Json, *, fits: bool) -> list[FieldError]:
        if self._changes is None:
            return []
        before, after = self.fitting(old), new if fits else self.fitting(new)
        return list(islice(change_errors(self._changes, before, after), MOST_ERRORS + 1))

    def _listed(
        self, value: Json, changed: list[FieldError], broken: list[Broken], *, fits: bool
    ) -> list[FieldError]:
        cut, found = Cut(), list[FieldError]()
        if not fits:
            found, broken = self._of_misfit(value, cut)
        found += changed
        found += islice(_rule_errors(broken, found), MOST_ERRORS + 1)
        found = [*cut.errors, *(error for error in found if error.path not in cut.replaced)]
        listed = sorted(_once(found)[:MOST_ERRORS], key=lambda error: _order(self.node, error.path))
        return listed + ([_and_more()] if len(found) > MOST_ERRORS else [])

    def _of_misfit(self, value: Json, cut: Cut) -> tuple[list[FieldError], list[Broken]]:
        """Return what the schema says of a value, and which rules what fits of it breaks."""
        is_typed = self.is_well_typed(value)
        pruned = value if is_typed else without_nulls(self.node, value)
        if _is_large(pruned):
            pruned = cut_down(self.node, pruned, FieldPath(), cut)
        try:
            found = self._schema_errors(pruned)
        except ValueError:  # nested beyond the library's own limit
            pruned = cut_down(self.node, pruned, FieldPath(), cut)
            found = self._schema_errors(pruned)
        return found, self._find_broken(pruned if is_typed else well_typed(self.node, pruned))

    def _schema_errors(self, value: Json) -> list[FieldError]:
        failures = islice(self._schema.iter_errors(value), MOST_ERRORS + 1)
        found = [translated(self.node, failure) for failure in failures]
        mistyped = {error.path for error in found if error.reason == _WRONG_TYPE}
        # A bound says nothing of a value that is of another type; choices do, here as on the server.
        return [error for error in found if error.reason != _INVALID or error.path not in mistyped]


@functools.cache
def judge(declared: type) -> Judge:
    """Return the judge of a declaration."""
    return Judge(declared)


def validate(declared: type, value: Json, old: Json | None = None) -> list[FieldError]:
    """Return everything wrong with a raw object by its declaration; see `Judge.validate`."""
    return judge(declared).validate(value, old)


def _nothing(value: JsonValue) -> list[Broken]:
    del value
    return []


def _rule_errors(broken: Sequence[Broken], known: Sequence[FieldError]) -> Iterator[FieldError]:
    """Yield breaches of rules, but for what is only due to a value of a wrong type."""
    mistyped = [error.path for error in known if error.reason == _WRONG_TYPE]
    for error in rule_errors(broken):
        if not any(_follows(error, path) for path in mistyped):
            yield error


def _is_large(value: Json) -> bool:
    try:
        return len(_encode(value)) > _LARGE_BYTES
    except RecursionError:
        return True


def _follows(error: FieldError, mistyped: FieldPath) -> bool:
    """Tell whether a breach is only due to the empty value that stands for one of a wrong type."""
    if error.reason == "FieldValueForbidden":  # that something is set at all
        return False
    return error.path.parts[: len(mistyped.parts)] == mistyped.parts


def _and_more() -> FieldError:
    body = f"Too many: more than {MOST_ERRORS} errors; only the first {MOST_ERRORS} are listed"
    return FieldError(FieldPath().child("spec"), "FieldValueTooMany", body)


def _once(found: list[FieldError]) -> list[FieldError]:
    return list(dict.fromkeys(found))


def _order(node: Node, path: FieldPath) -> list[tuple[int, str]]:
    order: list[tuple[int, str]] = []
    here: Node | None = node
    for part in path.parts:
        names = list(here.by_name) if here else []
        rank = names.index(part) if part in names else part if isinstance(part, int) else len(names)
        order.append((rank, str(part)))
        here, _ = located(here, [part]) if here else (None, None)
    return order
