"""Validation of performance parameters beyond the schema: their text must be a number."""

from __future__ import annotations

import re
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath

LONGEST_PARAMETER: Final = 64
"""The maximum number of characters of a parameter. The schema rejects longer ones."""

_NUMBER: Final = re.compile(r"^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$")


NUMERIC: Final = (
    "The values of `decodeParms` and `prefillParms` are decimal numbers without a sign, such as 20.58, .5 or"
    " 1e3."
)
"""The rule for parameters as a sentence."""


EXPECTED_PARAMETERS: Final = {"decodeParms": ("alpha", "beta"), "prefillParms": ("gamma", "delta")}
"""The parameters of each phase. Others are allowed and ignored."""


def numeric_parameters(value: Json, path: FieldPath) -> list[FieldError]:
    """Return an error for each parameter that is not a non-negative decimal number."""
    detail = "must be a non-negative decimal number such as 20.58"
    return [
        errors.invalid(path.child(phase).key(name), text, detail)
        for phase in EXPECTED_PARAMETERS
        for name, text in value.get(phase, {}).items()
        if len(text) <= LONGEST_PARAMETER and not _NUMBER.fullmatch(text)
    ]


def missing_parameters(profile: Json) -> list[str]:
    """Return `phase.name` of each expected parameter that is missing in a valid performance profile."""
    return [
        f"{phase}.{name}"
        for phase, names in EXPECTED_PARAMETERS.items()
        for name in names
        if name not in profile.get(phase, {})
    ]
