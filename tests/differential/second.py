"""The second judge: `jsonschema`, with the same schema as ours."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from apiserver.schema.json import Json
from apiserver.schema.kind import Version
from apiserver.schema.model import node_of
from apiserver.schema.shape import without_nulls
from apiserver.schema.structural import judged_schema
from differential.findings import Finding, Findings, plain

_REASONS: Final = {
    "type": "FieldValueTypeInvalid",
    "required": "FieldValueRequired",
    "enum": "FieldValueNotSupported",
    "maxLength": "FieldValueTooLong",
    "maxItems": "FieldValueTooMany",
    "maxProperties": "FieldValueTooMany",
}


def judged(version: Version, value: Json) -> Findings:
    """Judge an object with defaults. Nulls are removed, as the server does."""
    node = node_of(version.declaration)
    errors = _judge(version.declaration).iter_errors(without_nulls(node, value))
    return frozenset(finding for error in errors for finding in _findings(error))


@functools.cache
def _judge(declared: type) -> Draft202012Validator:
    return Draft202012Validator(judged_schema(node_of(declared)))


def _findings(error: ValidationError) -> Iterator[Finding]:
    path = ".".join(plain(str(part)) for part in error.absolute_path)
    if error.validator != "required":
        yield Finding(path, _REASONS.get(str(error.validator), "FieldValueInvalid"))
        return
    wanted: list[str] = list(error.validator_value)  # type: ignore[arg-type] # a list for `required`
    found: Json = error.instance  # type: ignore[assignment] # an object for `required`
    for name in wanted:
        if name not in found:
            yield Finding(f"{path}.{name}" if path else name, "FieldValueRequired")
