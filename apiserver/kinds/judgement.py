"""Everything wrong with an object of ours: schema, rules, and what its other versions could not keep."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.kinds.conversion import wanted_annotation_bytes
from apiserver.schema import errors
from apiserver.schema.annotations import LIMIT_BYTES
from apiserver.schema.defaulting import Completion, complete
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.paths import FieldPath
from apiserver.schema.ratcheting import is_forgiven
from apiserver.schema.shape import DEEPEST, is_deeper_than
from apiserver.schema.validation import judge

_MOST_COPIES: Final = 4
"""How often conversion could keep a part of an object: its value, what came back, and what it came from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What came of an object: everything wrong with it, and what was filled in.

    `is_sound` tells that nothing at all is wrong with it: nothing forgiven, no null to be dropped.
    """

    errors: list[FieldError]
    completion: Completion
    is_sound: bool


def complete_and_judge(kind: Kind, version: Version, value: Json, old: Json | None = None) -> Judgement:
    """Fill the defaults into a raw object, in place, and find everything wrong with it.

    With the stored object beside it, transition rules hold, and what the update leaves as it is stored is
    forgiven. Pure otherwise: the same list at admission and offline, in the order of the fields.
    """
    completion = complete(version, value)
    found = judge(version.declaration).validate(value, old, fits=completion.fits)
    is_sound = completion.fits and not found
    if found and old is not None:
        found = _less_forgiven(version.declaration, found, old=old, new=value)
    return Judgement(
        errors=found or _conversion_errors(kind, value, old), completion=completion, is_sound=is_sound
    )


def _less_forgiven(declared: type, found: list[FieldError], *, old: Json, new: Json) -> list[FieldError]:
    stored = frozenset(judge(declared).validate(old))
    return [error for error in found if not is_forgiven(declared, error, old=old, new=new, stored=stored)]


def judged(kind: Kind, version: Version, value: Json) -> list[FieldError]:
    """Return everything wrong with a raw object in a version, once its defaults are filled in."""
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
    if not kind.has_conversion or len(msgspec.json.encode(value)) * _MOST_COPIES < LIMIT_BYTES:
        return 0
    return wanted_annotation_bytes(kind, value)
