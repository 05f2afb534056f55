"""From a declaration to a reference page in Markdown: a table for each type, rules as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.schema.descriptions import summary
from apiserver.schema.json import JsonValue
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import Node, Property, node_of
from apiserver.schema.structural import describe_property

_HEAD = "| Field | Description | Default | Validation |\n| --- | --- | --- | --- |"
_WORDS = {
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


def kind_page(kind: Kind) -> str:
    """Return the reference page of a kind: every version, every type, every field."""
    parts = [
        f"# {kind.kind}\n",
        f"Group `{kind.group}`, short name `{', '.join(kind.short_names)}`, namespaced.\n",
    ]
    parts += [_version(kind, version) for version in kind.versions]
    return "\n".join(parts).rstrip() + "\n"


def configuration_page(title: str, verb: str, declared: type) -> str:
    """Return the reference page of a verb's configuration document."""
    intro = (
        f"# {title}\n\nThe document that `stowplan {verb} --config FILE` reads. A flag overrides a field.\n"
    )
    return "\n".join([intro, *_types(node_of(declared), heading="##")]).rstrip() + "\n"


def _version(kind: Kind, version: Version) -> str:
    traits = ["served", *(["storage"] if version.is_storage else [])]
    traits += ["deprecated"] if version.deprecation_warning else []
    head = f"## {kind.group}/{version.name}\n\n{', '.join(traits).capitalize()}.\n"
    return "\n".join([head, *_types(node_of(version.declaration), heading="###")])


def _types(root: Node, *, heading: str) -> Iterator[str]:
    for node in _declared_below(root):
        if node.declared is None:
            continue
        yield f"{heading} {node.declared.__name__}\n\n{summary(node.declared)}\n"
        yield f"{_HEAD}\n" + "\n".join(_row(prop) for prop in node.properties) + "\n"
        if node.rules:
            yield "Rules:\n\n" + "\n".join(f"- {rule.english()}" for rule in node.rules) + "\n"


def _declared_below(root: Node) -> list[Node]:
    found: dict[type, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop(0)
        if node.declared is not None:
            found.setdefault(node.declared, node)
        waiting += [prop.node for prop in node.properties]
        waiting += [inner for inner in (node.items, node.values) if inner is not None]
    return list(found.values())


def _row(prop: Property) -> str:
    default = "" if not prop.has_default or isinstance(prop.default, dict) else _text(prop.default)
    cells = [f"`{prop.name}` _{_type(prop.node)}_", describe_property(prop), default, _validation(prop)]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br />") for cell in cells) + " |"


def _type(node: Node) -> str:
    if node.items is not None:
        return f"{_type(node.items)} array"
    if node.values is not None:
        return f"map of {_type(node.values)}"
    return node.declared.__name__ if node.declared is not None else node.type


def _validation(prop: Property) -> str:
    words = ["Required"] if prop.is_required else []
    words += [
        text.format(_text(prop.node.keywords[name]))
        for name, text in _WORDS.items()
        if name in prop.node.keywords
    ]
    return "\n".join(words)


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
