"""Field errors, with one constructor per reason, worded as in Kubernetes' own validation.

    FieldError
        required     the field must be set
        invalid      the value is malformed or out of bounds
        wrong_type   the value is of another JSON type
        unsupported  the value is not one of those allowed
        duplicate    the value may occur only once
        forbidden    the field may not be set here
        too_long, too_many, too_deep

Wording and reasons: `k8s.io/apimachinery/pkg/util/validation/field/errors.go`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath

REQUIRED: Final = "FieldValueRequired"
FORBIDDEN: Final = "FieldValueForbidden"
INVALID: Final = "FieldValueInvalid"
WRONG_TYPE: Final = "FieldValueTypeInvalid"
DUPLICATE: Final = "FieldValueDuplicate"

SHOWN_VALUE_CHARACTERS: Final = 256
"""The maximum number of characters of a value in a message. A longer value is truncated."""

# Built once: `json.dumps` builds an encoder for every call with options.
_compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

TYPE_WORDS: Final = {
    "string": "must be a string",
    "integer": "must be an integer",
    "number": "must be a number",
    "boolean": "must be true or false",
    "object": "must be an object",
    "array": "must be a list",
    "int-or-string": "must be an integer or a string",
}
"""The description of the expected type in error messages, by declared type."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error of one field: path and body, with the machine-readable reason of a status cause.

    `scope` is the path of the value that the rule applies to, if that is more than the field itself.
    """

    path: FieldPath
    reason: str
    body: str
    scope: FieldPath | None = field(default=None, compare=False)

    @property
    def about(self) -> FieldPath:
        """Return the path of the value that must change before an update is held to the rule."""
        return self.path if self.scope is None else self.scope

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"

    def cause(self) -> Json:
        """Return the entry of a `metav1.StatusDetails.causes` list."""
        return {"reason": self.reason, "message": self.body, "field": str(self.path)}


def required(path: FieldPath, detail: str = "") -> FieldError:
    """Return the error for a field that must be set and is not."""
    return FieldError(path, REQUIRED, _join("Required value", detail))


def invalid(path: FieldPath, value: JsonValue, detail: str) -> FieldError:
    """Return the error for a value that is malformed or out of bounds; `detail` says what is allowed."""
    return FieldError(path, INVALID, f"Invalid value: {value_text(value)}: {detail}")


def wrong_type(path: FieldPath, value: JsonValue, detail: str) -> FieldError:
    """Return the error for a value of another JSON type."""
    return FieldError(path, WRONG_TYPE, f"Invalid value: {value_text(value)}: {detail}")


def unsupported(path: FieldPath, value: JsonValue, allowed: Sequence[JsonValue]) -> FieldError:
    """Return the error for a value that is not one of those allowed."""
    choices = ", ".join(_compact(item) for item in allowed)
    body = f"Unsupported value: {value_text(value)}: supported values: {choices}"
    return FieldError(path, "FieldValueNotSupported", body)


def duplicate(path: FieldPath, value: JsonValue) -> FieldError:
    """Return the error for a value that may occur only once."""
    return FieldError(path, DUPLICATE, f"Duplicate value: {value_text(value)}")


def forbidden(path: FieldPath, detail: str) -> FieldError:
    """Return the error for a field that may not be set here."""
    return FieldError(path, FORBIDDEN, f"Forbidden: {detail}")


def too_long(path: FieldPath, limit_bytes: int) -> FieldError:
    """Return the error for a text beyond its length limit; the message does not contain the text."""
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {limit_bytes} bytes")


def too_many(path: FieldPath, count: int, limit: int) -> FieldError:
    """Return the error for a list or map with more entries than its limit."""
    noun = "item" if limit == 1 else "items"
    return FieldError(path, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} {noun}")


def too_deep(path: FieldPath, levels: int) -> FieldError:
    """Return the error for a value that is nested too deeply; the message does not contain the value."""
    return invalid(path, "...", f"must not be nested more than {levels} levels deep")


def invalid_status(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Json:
    """Return the `metav1.Status` with which the API server rejects an invalid object: 422, all causes.

    kubectl prints such a status as `The KIND "NAME" is invalid: ...`, whether it comes from the API server or
    a webhook.
    """
    causes = [error.cause() for error in errors]
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{qualified} "{name}" is invalid: {listed}',
        "details": {"name": name, "group": group, "kind": kind, "causes": causes},
    }


def value_text(value: JsonValue) -> str:
    """Return a value as shown in error messages: text quoted, numbers bare, the rest as JSON, truncated.

    A value nested too deeply to encode is shown as three dots.
    """
    if type(value) is int:  # an encoder of JSON takes ten times as long
        return str(value)
    try:
        text = _compact(value)
    except RecursionError:
        return '"..."'
    if len(text) <= SHOWN_VALUE_CHARACTERS:
        return text
    return f"{text[:SHOWN_VALUE_CHARACTERS]}... ({len(text)} characters)"


def _join(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head
