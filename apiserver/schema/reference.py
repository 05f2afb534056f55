"""Generation of Markdown reference pages: a table for each type, and its rules as sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from apiserver.schema.declaration import rules_of
from apiserver.schema.json import JsonValue
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import Property, SchemaNode, node_of, summary
from apiserver.schema.structural import describe_property

_HEAD: Final = "| Field | Description | Default | Validation |\n| --- | --- | --- | --- |"
_WORDS: Final[Mapping[str, str]] = {
    "format": "Format: {}",
    "minimum": "Minimum: {}",
    "maximum": "Maximum: {}",
    "minLength": "MinLength: {}",
    "maxLength": "MaxLength: {}",
    "pattern": "Pattern: `{}`",
    "enum": "Enum: {}",
    "minItems": "MinItems: {}",
    "maxItems": "MaxItems: {}",
    "minProperties": "MinProperties: {}",
    "maxProperties": "MaxProperties: {}",
    "x-kubernetes-list-map-keys": "Unique by: {}",
}
_TYPES: Final[Mapping[str, str]] = {"int-or-string": "integer or string", "any": "JSON"}
_UNTOLD: Final = frozenset({"Format: int64"})
"""Validation of every integer, which a page omits."""


def kind_page(kind: Kind) -> str:
    """Return the reference page of a kind: every version, every type, every field."""
    parts = [
        f"# {kind.kind}\n",
        ", ".join([f"Group `{kind.group}`", *_names("short name", kind.short_names), "namespaced"]) + ".\n",
    ]
    parts += [_version(kind, version) for version in kind.versions]
    return "\n".join(parts).rstrip() + "\n"


def configuration_page(title: str, verb: str, declared: type) -> str:
    """Return the reference page of a subcommand's configuration document."""
    return documents_page(
        title, f"The document that `stowplan {verb} --config FILE` reads. A flag overrides a field.", declared
    )


def documents_page(title: str, intro: str, *declared: type) -> str:
    """Return the reference page of some documents."""
    types = (text for item in declared for text in _types(node_of(item), heading="##"))
    return "\n".join([f"# {title}\n\n{intro}\n", *types]).rstrip() + "\n"


def settings_table(declared: type, names: Sequence[str]) -> str:
    """Return a table of some fields of a configuration document, with defaults and descriptions."""
    by_name = {prop.name: prop for prop in node_of(declared).properties}
    rows = [
        f"| `{name}` | {_default(by_name[name])} | {describe_property(by_name[name])} |" for name in names
    ]
    return "\n".join(["| field | default | |", "|---|---|---|", *rows])


def _version(kind: Kind, version: Version) -> str:
    traits = ["served", *(["storage"] if version.is_storage else [])]
    traits += ["deprecated"] if version.deprecation_warning else []
    head = f"## {kind.group}/{version.name}\n\n{', '.join(traits).capitalize()}.\n"
    return "\n".join([head, *_types(node_of(version.declaration), heading="###")])


def _types(root: SchemaNode, *, heading: str) -> Iterator[str]:
    for node in _declared_below(root):
        if node.declared is None:
            continue
        yield f"{heading} {node.declared.__name__}\n\n{summary(node.declared)}\n"
        if node.properties:
            yield f"{_HEAD}\n" + "\n".join(_row(prop) for prop in node.properties) + "\n"
        if rules := rules_of(node.declared):
            yield "Rules:\n\n" + "\n".join(f"- {rule.sentence}" for rule in rules) + "\n"


def _declared_below(root: SchemaNode) -> list[SchemaNode]:
    declared: dict[type, SchemaNode] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop(0)
        if node.declared is not None:
            declared.setdefault(node.declared, node)
        waiting += [prop.node for prop in node.properties]
        waiting += [inner for inner in (node.items, node.values) if inner is not None]
    return list(declared.values())


def _names(word: str, names: tuple[str, ...]) -> list[str]:
    plural = "s" if len(names) > 1 else ""
    return [f"{word}{plural} {', '.join(f'`{name}`' for name in names)}"] if names else []


def _row(prop: Property) -> str:
    cells = [
        f"`{prop.name}` _{_type(prop.node)}_",
        describe_property(prop),
        _default(prop),
        "\n".join(_validation(prop)),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br />") for cell in cells) + " |"


def _type(node: SchemaNode) -> str:
    if node.items is not None:
        return f"{_type(node.items)} array"
    if node.values is not None:
        return f"map of {_type(node.values)}"
    return _TYPES.get(node.type, node.type) if node.declared is None else node.declared.__name__


def _default(prop: Property) -> str:
    # The default of an object is documented by the defaults of its fields.
    if not prop.has_default or isinstance(prop.default, dict):
        return ""
    if isinstance(prop.default, list) and any(isinstance(item, dict) for item in prop.default):
        return f"`{json.dumps(prop.default)}`"
    return _text(prop.default)


def _validation(prop: Property) -> Iterator[str]:
    if prop.is_required:
        yield "Required"
    yield from _demands(prop.node)


def _demands(node: SchemaNode) -> Iterator[str]:
    phrases = (
        text.format(_text(node.keywords[name])) for name, text in _WORDS.items() if name in node.keywords
    )
    yield from (words for words in phrases if words not in _UNTOLD)
    # A declared type lists its own rules; the remaining ones apply to this field only.
    own = len(rules_of(node.declared)) if node.declared is not None else 0
    yield from (rule.sentence for rule in node.rules[own:])
    inner = node.items or node.values
    if inner is not None and (each := list(_demands(inner))):
        yield f"Each: {'; '.join(demand.removesuffix('.') for demand in each)}"


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
