"""Complete validation of an object: schema, rules, and the size of what conversion must keep."""

from __future__ import annotations

import copy
from typing import Final

import msgspec

from apiserver.kinds.conversion import wanted_annotation_bytes
from apiserver.schema import errors
from apiserver.schema.defaulting import Completion, complete
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.metadata import LIMIT_BYTES
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import is_forgiven
from apiserver.schema.shape import DEEPEST, is_deeper_than
from apiserver.schema.validation import judge

_MOST_COPIES: Final = 4
"""The maximum number of copies of a value that conversion keeps: the value, its image after a round trip, and
its source."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of defaulting and validating an object.

    `is_sound` is True only if there is no error at all, not even a forgiven one, and no null to drop.
    """

    errors: list[FieldError]
    completion: Completion
    is_sound: bool


def complete_and_judge(kind: Kind, version: Version, value: Json, old: Json | None = None) -> Judgement:
    """Fill the defaults into a raw object, in place, and return everything wrong with it.

    If the stored object `old` is given, transition rules apply, and errors in values that the update leaves
    unchanged are forgiven. Apart from that, the result depends on the object alone: admission and offline
    checks return the same errors, in the order of the fields.
    """
    completion = complete(version, value)
    problems = judge(version.declaration).validate(
        value, old, fits=completion.fits, is_typed=completion.is_typed
    )
    is_sound = completion.fits and not problems
    if problems and old is not None:
        problems = _less_forgiven(version.declaration, problems, old=old, new=value)
    if kind.has_conversion and not problems:
        problems = _conversion_errors(kind, value, old)
    return Judgement(errors=problems, completion=completion, is_sound=is_sound)


def _less_forgiven(declared: type, problems: list[FieldError], *, old: Json, new: Json) -> list[FieldError]:
    stored = frozenset(judge(declared).validate(old))
    return [error for error in problems if not is_forgiven(declared, error, old=old, new=new, stored=stored)]


def errors_of(kind: Kind, version: Version, value: Json) -> list[FieldError]:
    """Return everything wrong with a raw object in a version, after defaulting a copy of it."""
    if is_deeper_than(value, DEEPEST):
        return judge(version.declaration).validate(value)
    return complete_and_judge(kind, version, copy.deepcopy(value)).errors


def _conversion_errors(kind: Kind, value: Json, old: Json | None) -> list[FieldError]:
    wanted = _wanted_bytes(kind, value)
    if wanted <= LIMIT_BYTES or (old is not None and _wanted_bytes(kind, old) > LIMIT_BYTES):
        return []
    detail = (
        f"the data that other versions cannot express takes {wanted} bytes together with all annotations,"
        f" which must have at most {LIMIT_BYTES}"
    )
    return [errors.forbidden(FieldPath().child("spec"), detail)]


def _wanted_bytes(kind: Kind, value: Json) -> int:
    if len(msgspec.json.encode(value)) * _MOST_COPIES < LIMIT_BYTES:
        return 0
    return wanted_annotation_bytes(kind, value)
