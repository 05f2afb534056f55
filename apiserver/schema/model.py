"""The schema tree of a declaration, from which everything else is derived, and the docstrings of fields."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import UnsetType

from apiserver.schema.declaration import is_declaration, rules_of
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.markers import Marker
from apiserver.schema.rules import ValidationRule

_SCALARS: Final[Mapping[type, tuple[str, Mapping[str, JsonValue]]]] = {
    str: ("string", {}),
    bool: ("boolean", {}),
    int: ("integer", {"format": "int64"}),
    float: ("number", {}),
}


T = TypeVar("T")

Declared: TypeAlias = type
"""A class decorated with `declaration`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaNode:
    """The schema of one value. At most one of properties, items and values is set.

    `type` is a JSON type, `int-or-string`, or `any` for free JSON.
    """

    type: str
    keywords: Mapping[str, JsonValue] = field(default_factory=dict)
    says: str = ""
    properties: tuple[Property, ...] = ()
    items: SchemaNode | None = None
    values: SchemaNode | None = None
    rules: tuple[ValidationRule, ...] = ()
    declared: Declared | None = None
    by_name: Mapping[str, Property] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {prop.name: prop for prop in self.properties})

    @property
    def bounds(self) -> Mapping[str, int]:
        """Return the bounds implied by the width of an integer; empty for any other type."""
        if self.type not in {"integer", "int-or-string"}:
            return {}
        bits = 31 if self.keywords.get("format") == "int32" else 63
        return {"minimum": -(2**bits), "maximum": 2**bits - 1}

    def property(self, name: str) -> Property | None:
        """Return the property with that JSON name, or None if the node does not declare it."""
        return self.by_name.get(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Property:
    """A field of an object: its JSON name, its schema, and its default if absent."""

    name: str
    node: SchemaNode
    is_required: bool
    owner: Declared | None = None
    """The declaration with the field; None if it is part of an `object_node`."""
    attribute: str = ""
    """The Python name of the field in its owner."""
    default: JsonValue = msgspec.UNSET

    @property
    def description(self) -> str:
        """Return the docstring below the field, read from source on access: only generators need it."""
        return describe(self.owner).get(self.attribute, "") if self.owner else ""

    @property
    def has_default(self) -> bool:
        """Tell whether the schema has a default for the field."""
        return self.default is not msgspec.UNSET


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced(Generic[T]):
    """A node reduced to what has something, its `own`, on or below it. A list has `most` items at most."""

    own: tuple[T, ...]
    keys: tuple[str, ...]
    most: int | None
    members: tuple[tuple[str, Reduced[T]], ...]
    items: Reduced[T] | None
    values: Reduced[T] | None


def reduce_node(node: SchemaNode, own: Callable[[SchemaNode], tuple[T, ...]]) -> Reduced[T]:
    """Return a node reduced to what `own` returns for it and for the nodes below it."""

    def below(inner: SchemaNode | None) -> Reduced[T] | None:
        here = None if inner is None else reduce_node(inner, own)
        return here if here and (here.own or here.members or here.items or here.values) else None

    return Reduced(
        own=own(node),
        keys=tuple(node.keywords.get("x-kubernetes-list-map-keys", ())),
        most=node.keywords.get("maxItems"),
        members=tuple((prop.name, inner) for prop in node.properties if (inner := below(prop.node))),
        items=below(node.items),
        values=below(node.values),
    )


def object_node(required: str = "", /, **members: object) -> SchemaNode:
    """Return the node of an object that is read and not declared, as those of other projects are.

    `members` are types of the declaration language or nodes, by JSON name; `required` has the names of those
    that must be set, separated by spaces.
    """
    names = required.split()
    properties = [
        Property(name=name, node=_node(member), is_required=name in names) for name, member in members.items()
    ]
    return SchemaNode(type="object", properties=tuple(properties))


def list_node(items: SchemaNode) -> SchemaNode:
    """Return the node of a list."""
    return SchemaNode(type="array", items=items)


def node_of(declared: type) -> SchemaNode:
    """Return the schema tree of a declaration.

    Raises TypeError for an annotation that declarations do not support.
    """
    return _node_of(declared)


@functools.cache
def _node_of(declared: Hashable) -> SchemaNode:
    assert is_declaration(declared), f"{declared!r} is no declaration"
    hints = get_type_hints(declared, include_extras=True)
    properties = tuple(
        _property(item, hints[item.name], declared) for item in msgspec.structs.fields(declared)
    )
    return SchemaNode(type="object", properties=properties, rules=rules_of(declared), declared=declared)


def _property(item: msgspec.structs.FieldInfo, annotation: object, owner: Declared) -> Property:
    return Property(
        name=item.encode_name,  # in camel case, unless the declaration names it otherwise
        node=_node(annotation),
        owner=owner,
        attribute=item.name,
        is_required=item.required,
        default=_plain(item.default),
    )


def _plain(default: object) -> JsonValue:
    unset = default is msgspec.NODEFAULT or isinstance(default, UnsetType)
    # Through JSON, to convert tuples into lists: code that handles raw objects expects no tuples.
    return msgspec.UNSET if unset else msgspec.json.decode(msgspec.json.encode(default))


def _node(annotation: object) -> SchemaNode:
    if get_origin(annotation) is Annotated:
        inner, *markers = get_args(annotation)
        return _with_markers(_node(inner), markers)
    if get_origin(annotation) in (Union, types.UnionType):
        return _node_of_union(annotation)
    if get_origin(annotation) is Literal:
        return SchemaNode(type="string", keywords={"enum": list(get_args(annotation))})
    if get_origin(annotation) is tuple:
        return SchemaNode(type="array", items=_node(get_args(annotation)[0]))
    if get_origin(annotation) is dict:
        return SchemaNode(type="object", values=_node(get_args(annotation)[1]))
    return _leaf(annotation)


def _leaf(annotation: object) -> SchemaNode:
    if isinstance(annotation, SchemaNode):
        return annotation
    if annotation is Any:
        return SchemaNode(type="any")
    if isinstance(annotation, TypeVar):
        raise TypeError(f"{annotation} is left open: name the type inside Maybe[...]")
    if is_declaration(annotation):
        return node_of(annotation)
    for scalar, (name, keywords) in _SCALARS.items():
        if annotation is scalar:
            return SchemaNode(type=name, keywords=keywords)
    raise TypeError(f"{annotation!r} is no type of the declaration language")


def _node_of_union(annotation: object) -> SchemaNode:
    kept = [item for item in get_args(annotation) if item is not UnsetType]
    if kept == [int, str]:
        return SchemaNode(type="int-or-string")
    if len(kept) != 1:
        raise TypeError(f"{annotation} is a union: a field has one type, or is absent")
    return _node(kept[0])


def _with_markers(node: SchemaNode, metadata: list[object]) -> SchemaNode:
    markers = [marker for marker in metadata if isinstance(marker, Marker)]
    keywords: Json = dict(node.keywords)
    for marker in markers:
        keywords |= marker.as_json()
    says = next((marker.says for marker in markers if marker.says), node.says)
    rules = tuple(rule for rule in metadata if isinstance(rule, ValidationRule))
    return replace(node, keywords=keywords, says=says, rules=(*node.rules, *rules))


def describe(declared: type) -> Mapping[str, str]:
    """Return the description of each field of a declaration, by Python name; paragraph breaks are kept."""
    owners = [owner for owner in declared.__mro__ if is_declaration(owner) and owner is not msgspec.Struct]
    texts = (_module_descriptions(owner.__module__).get(owner.__qualname__, {}) for owner in owners)
    return ChainMap(*map(dict, texts))


def summary(declared: type) -> str:
    """Return the docstring of a declaration, without indentation."""
    return inspect.cleandoc(declared.__doc__ or "")


@functools.cache
def _module_descriptions(module_name: str) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module_name]))
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {node.name: _field_descriptions(node) for node in classes}


def _field_descriptions(node: ast.ClassDef) -> Mapping[str, str]:
    descriptions: dict[str, str] = {}
    for member, below in zip(node.body, node.body[1:], strict=False):
        if not isinstance(member, ast.AnnAssign) or not isinstance(member.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            descriptions[member.target.id] = _unwrap(str(below.value.value))
    return descriptions


def _unwrap(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
