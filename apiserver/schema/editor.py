"""Generation of JSON Schemas for editors, for completion, documentation and validation.

The dialect is draft 7, which every editor supports. Unlike the schema of a CRD it rejects undeclared names,
so that an editor shows a typing error that the API server would silently prune. It also describes the rules
that no schema keyword can express.
"""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import Property, SchemaNode, node_of, summary
from apiserver.schema.structural import describe_property

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The URI of the dialect of the schemas."""

_TEXTS: Final[Json] = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final[Json] = {
    "type": "object",
    "description": "Name, namespace, labels and annotations. A name, or the beginning of one, is required.",
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 253,
            "description": "Name, unique among objects of the kind in the namespace.",
        },
        "generateName": {
            "type": "string",
            "minLength": 1,
            "maxLength": 253,
            "description": "Beginning of a name that the server completes.",
        },
        "namespace": {"type": "string", "maxLength": 63, "description": "Namespace of the object."},
        "labels": _TEXTS | {"description": "What the object is selected by."},
        "annotations": _TEXTS | {"description": "What else is to be known of the object."},
    },
    "anyOf": [{"required": ["name"]}, {"required": ["generateName"]}],
}


def editor_schema(kind: Kind, version: Version) -> Json:
    """Return the JSON Schema (draft 7) for manifests of one version of a kind."""
    api_version = f"{kind.group}/{version.name}"
    root = node_of(version.declaration)
    schema = _schema(root)
    notes = (schema["description"], version.deprecation_warning)
    standard: Json = {
        "apiVersion": {"const": api_version, "description": "Group and version."},
        "kind": {"const": kind.kind, "description": "The kind."},
        "metadata": _METADATA,
    }
    return {
        "$schema": DIALECT,
        "title": f"{kind.kind} {api_version}",
        **schema,
        "description": "\n\n".join(note for note in notes if note),
        "properties": standard | schema["properties"],
        "required": [*standard, *schema.get("required", [])],
    }


def settings_schema(declared: type) -> Json:
    """Return the JSON Schema of a configuration document, without undeclared members at any level."""
    return _schema(node_of(declared))


def _schema(node: SchemaNode) -> Json:
    schema: Json = _type(node) | _plain_keywords(node)
    prose = summary(node.declared) if node.declared is not None else ""
    if text := _with_rules(prose, node):
        schema["description"] = text
    if node.declared is not None:
        schema |= _members(node)
    if node.items is not None:
        schema["items"] = _schema(node.items)
    if node.values is not None:
        schema["additionalProperties"] = _schema(node.values)
    return schema


def _type(node: SchemaNode) -> Json:
    if node.type == "any":
        return {}
    if node.type == "int-or-string":
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    return {"type": node.type}


def _plain_keywords(node: SchemaNode) -> Json:
    """Return the keywords of standard JSON Schema, with the bounds implied by an integer format."""
    return dict(node.bounds) | {
        name: value
        for name, value in node.keywords.items()
        if not name.startswith("x-kubernetes-") and not (name == "format" and node.bounds)
    }


def _members(node: SchemaNode) -> Json:
    schema: Json = {
        "properties": {prop.name: _property(prop) for prop in node.properties},
        "additionalProperties": False,
    }
    needed = [prop.name for prop in node.properties if prop.is_required]
    return schema | ({"required": needed} if needed else {})


def _property(prop: Property) -> Json:
    schema = _schema(prop.node) | {"description": _with_rules(describe_property(prop), prop.node)}
    return schema | ({"default": prop.default} if prop.has_default else {})


def _with_rules(prose: str, node: SchemaNode) -> str:
    """Return a text followed by the rules of a node as sentences."""
    keys = node.keywords.get("x-kubernetes-list-map-keys", ())
    sentences = [rule.sentence for rule in node.rules]
    sentences += [f"Unique by {' and '.join(f'`{key}`' for key in keys)}."] if keys else []
    return " ".join(part for part in (prose, *sentences) if part)
