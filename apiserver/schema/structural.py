"""Generation of the structural OpenAPI schema of a CRD from a declaration.

Rules of structural schemas: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go`.
"""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Column, Kind, Version
from apiserver.schema.model import Property, SchemaNode, node_of, summary

_SPEC_RULE: Final[Json] = {
    "rule": "has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))",
    "optionalOldSelf": True,
    "message": "spec is required",
    "reason": "FieldValueRequired",
    "fieldPath": ".spec",
}

_PATTERN_NOTE: Final = "Must be {says}."

CONVERSION_SERVICE: Final = {
    "namespace": "stowplan-system",
    "name": "stowplan-conversion",
    "path": "/convert",
    "port": 9443,
}
"""The Service of the conversion webhook. The controller injects its caBundle."""


def structural_schema(node: SchemaNode) -> Json:
    """Return the CRD schema of a node and all below it, with descriptions, defaults and CEL rules."""
    schema: Json = {**_type(node), **node.keywords}
    if node.declared is not None and (text := summary(node.declared)):
        schema["description"] = text
    if node.properties:
        schema["properties"] = {prop.name: _property_schema(prop) for prop in node.properties}
    if needed := [prop.name for prop in node.properties if prop.is_required]:
        schema["required"] = needed
    if node.items is not None:
        schema["items"] = structural_schema(node.items)
    if node.values is not None:
        schema["additionalProperties"] = structural_schema(node.values)
    if cel := [rule.as_json() for word in node.rules for rule in word.cel]:
        schema["x-kubernetes-validations"] = cel
    return schema


def judged_schema(node: SchemaNode) -> Json:
    """Return the schema for our own validation: without descriptions, with the bounds implied by widths."""
    schema: Json = {**node.bounds, **node.keywords}
    if node.type != "any":
        schema["type"] = ["integer", "string"] if node.type == "int-or-string" else node.type
    if node.properties:
        schema["properties"] = {prop.name: judged_schema(prop.node) for prop in node.properties}
        schema["required"] = [prop.name for prop in node.properties if prop.is_required]
    if node.items is not None:
        schema["items"] = judged_schema(node.items)
    if node.values is not None:
        schema["additionalProperties"] = judged_schema(node.values)
    return schema


def _type(node: SchemaNode) -> Json:
    if node.type == "any":
        return {"x-kubernetes-preserve-unknown-fields": True}
    if node.type == "int-or-string":
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    return {"type": node.type}


def _property_schema(prop: Property) -> Json:
    schema = structural_schema(prop.node) | {"description": describe_property(prop)}
    return schema | ({"default": prop.default} if prop.has_default else {})


def describe_property(prop: Property) -> str:
    """Return the description of a field, followed by that of its pattern, if any."""
    note = _PATTERN_NOTE.format(says=prop.node.says.removeprefix("must be ")) if prop.node.says else ""
    return " ".join(part for part in (prop.description, note) if part)


def crd_manifest(kind: Kind) -> Json:
    """Return the CustomResourceDefinition of a kind."""
    spec: Json = {
        "group": kind.group,
        "names": _names(kind),
        "scope": "Namespaced",
        "versions": [_version(version) for version in kind.versions],
    }
    if kind.has_conversion:
        spec["conversion"] = {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": dict(CONVERSION_SERVICE)},
            },
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name, "labels": {"app.kubernetes.io/part-of": "stowplan"}},
        "spec": spec,
    }


def _names(kind: Kind) -> Json:
    """Return the names of a kind, without empty lists.

    The API server drops empty lists, so a second field manager that applies one conflicts with the first.
    """
    lists = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
        **{name: names for name, names in lists.items() if names},
    }


def _version(version: Version) -> Json:
    entry: Json = {"name": version.name, "served": True, "storage": version.is_storage}
    if version.deprecation_warning:
        entry |= {"deprecated": True, "deprecationWarning": version.deprecation_warning}
    entry["additionalPrinterColumns"] = [_column(column) for column in version.columns]
    entry["subresources"] = {"status": {}}
    entry["schema"] = {"openAPIV3Schema": _tolerate_missing_spec(_root_schema(version))}
    return entry


def _root_schema(version: Version) -> Json:
    schema = structural_schema(node_of(version.declaration))
    standard = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema["properties"] = standard | schema["properties"]
    return schema


def _tolerate_missing_spec(schema: Json) -> Json:
    """Return the schema with a CEL rule in place of `required` if it requires a spec.

    Upstream's definitions require none. An object stored without one must stay writable, or its finalizers
    could never be removed; so the rule also reads the stored object.
    """
    if "spec" not in schema.get("required", ()):
        return schema
    required = [name for name in schema["required"] if name != "spec"]
    rest = {name: item for name, item in schema.items() if name != "required"}
    rules = [*schema.get("x-kubernetes-validations", []), _SPEC_RULE]
    return rest | ({"required": required} if required else {}) | {"x-kubernetes-validations": rules}


def _column(column: Column) -> Json:
    entry: Json = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
    }
    return entry | ({"priority": column.priority} if column.priority else {})
