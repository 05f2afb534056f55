"""Translation of schema validation errors into the wording of Kubernetes.

`jsonschema-rs` validates; its errors are recognized by class, never by their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jsonschema_rs import ValidationError, ValidationErrorKind

from apiserver.schema import errors
from apiserver.schema.errors import TYPE_WORDS, FieldError
from apiserver.schema.json import JsonValue
from apiserver.schema.model import Node
from apiserver.schema.paths import FieldPath


def translated(root: Node, failure: ValidationError) -> FieldError:
    """Return the field error for a schema validation error."""
    node, path = located(root, failure.instance_path)
    value: JsonValue = failure.instance
    kind = failure.kind
    match kind:
        case ValidationErrorKind.Required(property=name):
            return replace(errors.required(path.child(name)), scope=path)
        case ValidationErrorKind.Type():
            return errors.wrong_type(path, value, TYPE_WORDS[node.type])
        case ValidationErrorKind.Enum(options=options):
            return errors.unsupported(path, value, options)
        case ValidationErrorKind.MaxLength(limit=limit):
            return errors.too_long(path, limit)
        case ValidationErrorKind.MaxItems(limit=limit) | ValidationErrorKind.MaxProperties(limit=limit):
            return errors.too_many(path, len(value), limit)
        case _:
            return errors.invalid(path, value, _demand(node, kind))


def _demand(node: Node, kind: ValidationErrorKind) -> str:
    match kind:
        case ValidationErrorKind.Pattern():
            if "pattern" not in node.keywords and node.values is not None:
                node = node.values  # for an entry with an empty key, the library reports the path of the map
            return (
                f"must be {node.says}" if node.says else f"must match the pattern {node.keywords['pattern']}"
            )
        case ValidationErrorKind.Format(format=name):
            return f"must be a valid {name}"
        case _:
            return _bound(kind)


def _bound(kind: ValidationErrorKind) -> str:
    match kind:
        case ValidationErrorKind.Minimum(limit=limit):
            return f"must be greater than or equal to {limit}"
        case ValidationErrorKind.Maximum(limit=limit):
            return f"must be less than or equal to {limit}"
        case ValidationErrorKind.MinLength(limit=limit):
            return f"must be at least {_counted(limit, 'character')} long"
        case ValidationErrorKind.MinItems(limit=limit):
            return f"must have at least {_counted(limit, 'item')}"
        case ValidationErrorKind.MinProperties(limit=limit):
            return f"must have at least {_counted(limit, 'entry', 'entries')}"
        case _:
            raise TypeError(f"the schema failed by {kind!r}, which no declaration can demand")


def _counted(limit: int, one: str, many: str = "") -> str:
    return f"{limit} {one if limit == 1 else many or one + 's'}"


def located(root: Node, parts: Sequence[str | int]) -> tuple[Node, FieldPath]:
    """Return the node at a path, given by JSON names and positions, and the field path.

    The validator reports a name of digits, such as the label `0`, as a number.
    """
    node, path = root, list[str | int]()
    for part in parts:
        node, written = descended(node, part)
        path.append(written)
    return node, FieldPath(tuple(path))


def descended(node: Node, part: str | int) -> tuple[Node, str | int]:
    """Return the node of a member or item of a node, and the part of a field path for it."""
    if isinstance(part, int) and node.items is not None:
        return node.items, part
    name = str(part)
    prop = node.by_name.get(name)
    return (prop.node, name) if prop is not None else (node.values or node, f"[{name}]")
