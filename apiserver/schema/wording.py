"""Translation of schema validation errors into the wording of Kubernetes.

Errors are recognized by the keyword that fails, never by their text: `jsonschema-rs` validates objects, and
`jsonschema` documents of settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jsonschema_rs import ValidationError

from apiserver.schema import errors
from apiserver.schema.errors import TYPE_WORDS, FieldError
from apiserver.schema.json import JsonValue
from apiserver.schema.model import Node
from apiserver.schema.paths import FieldPath


def field_error(root: Node, failure: ValidationError) -> FieldError:
    """Return the field error for an error of `jsonschema-rs`."""
    kind = failure.kind
    return error_for(root, failure.instance_path, kind.name, kind.value, failure.instance)


def error_for(
    root: Node, parts: Sequence[str | int], keyword: str, limit: JsonValue, value: JsonValue
) -> FieldError:
    """Return the field error for a value at some path that a keyword of the schema does not allow.

    `limit` is the value of the keyword in the schema; for `required`, the name of the absent member. Raises
    TypeError for a keyword that no declaration can contain.
    """
    node, path = locate(root, parts)
    match keyword:
        case "required":
            return replace(errors.required(path.child(limit)), scope=path)
        case "type":
            return errors.wrong_type(path, value, TYPE_WORDS[node.type])
        case "enum":
            return errors.unsupported(path, value, limit)
        case "maxLength":
            return errors.too_long(path, limit)
        case "maxItems" | "maxProperties":
            return errors.too_many(path, len(value), limit)
        case _:
            return errors.invalid(path, value, _demand(node, keyword, limit))


def _demand(node: Node, keyword: str, limit: JsonValue) -> str:
    match keyword:
        case "pattern":
            if "pattern" not in node.keywords and node.values is not None:
                node = node.values  # for an entry with an empty key, the library reports the path of the map
            return (
                f"must be {node.says}" if node.says else f"must match the pattern {node.keywords['pattern']}"
            )
        case "format":
            return f"must be a valid {limit}"
        case _:
            return _bound(keyword, limit)


def _bound(keyword: str, limit: JsonValue) -> str:
    match keyword:
        case "minimum":
            return f"must be greater than or equal to {limit}"
        case "maximum":
            return f"must be less than or equal to {limit}"
        case "minLength":
            return f"must be at least {_count_text(limit, 'character')} long"
        case "minItems":
            return f"must have at least {_count_text(limit, 'item')}"
        case "minProperties":
            return f"must have at least {_count_text(limit, 'entry', 'entries')}"
        case _:
            raise TypeError(f"the schema failed by {keyword!r}, which no declaration can demand")


def _count_text(limit: int, one: str, many: str = "") -> str:
    return f"{limit} {one if limit == 1 else many or one + 's'}"


def locate(root: Node, parts: Sequence[str | int]) -> tuple[Node, FieldPath]:
    """Return the node at a path, given by JSON names and positions, and the field path.

    The validator reports a name of digits, such as the label `0`, as a number.
    """
    node, path = root, list[str | int]()
    for part in parts:
        node, written = descend(node, part)
        path.append(written)
    return node, FieldPath(tuple(path))


def descend(node: Node, part: str | int) -> tuple[Node, str | int]:
    """Return the node of a member or item of a node, and the part of a field path for it."""
    if isinstance(part, int) and node.items is not None:
        return node.items, part
    name = str(part)
    prop = node.by_name.get(name)
    return (prop.node, name) if prop is not None else (node.values or node, f"[{name}]")
