"""Metadata of a namespaced object: types, annotations, and validation in the words of the API server.

Source: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go` and `pkg/util/validation`. On the API server,
the decoder checks types before any webhook is called, one error at a time and in Go terms. A file on disk has
no such check, so types are validated here as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue, as_object, without
from apiserver.schema.model import Property, SchemaNode, node_of
from apiserver.schema.paths import FieldPath


@declaration()
class OwnerReference:
    """An object that owns this one."""

    api_version: Maybe[str] = UNSET
    kind: Maybe[str] = UNSET
    name: Maybe[str] = UNSET
    uid: Maybe[str] = UNSET
    controller: Maybe[bool] = UNSET


@declaration()
class ObjectMeta:
    """The metadata of an object."""

    name: Maybe[str] = UNSET
    generate_name: Maybe[str] = UNSET
    namespace: Maybe[str] = UNSET
    labels: Maybe[dict[str, str]] = UNSET
    annotations: Maybe[dict[str, str]] = UNSET
    owner_references: Maybe[tuple[OwnerReference, ...]] = UNSET


@declaration()
class _Object:
    metadata: Maybe[ObjectMeta] = UNSET


_PROPERTIES: Final[tuple[Property, ...]] = node_of(_Object).properties


def with_metadata(node: SchemaNode) -> SchemaNode:
    """Return the root node of a kind with its metadata declared; any other node unchanged."""
    if node.property("spec") is None or node.property("metadata") is not None:
        return node
    return replace(node, properties=(*_PROPERTIES, *node.properties))


LIMIT_BYTES: Final = 256 * 1024
"""The limit on the total size of an object's annotations, in bytes. Source:
`k8s.io/apimachinery/pkg/api/validation`."""


def take_annotation(value: Json, name: str) -> tuple[Json, JsonValue]:
    """Return an object without one annotation, and the value of the annotation, or None if it had none."""
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    if name not in annotations:
        return value, None
    others = without(annotations, (name,))
    rest = metadata | {"annotations": others} if others else without(metadata, ("annotations",))
    return value | {"metadata": rest}, annotations[name]


def with_annotation(value: Json, name: str, text: str) -> Json:
    """Return an object with an annotation set to `text`."""
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    return value | {"metadata": metadata | {"annotations": annotations | {name: text}}}


def annotation_bytes(value: Json) -> int:
    """Return the total size in bytes of an object's annotations, counted as for their limit."""
    annotations = as_object(as_object(value.get("metadata")).get("annotations"))
    return sum(len(name.encode()) + len(str(text).encode()) for name, text in annotations.items())


MEMBERS: Final = frozenset(
    [
        *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("labels", "annotations", "ownerReferences", "finalizers", "managedFields"),
    ]
)
"""The members of `metadata`."""
OWNER_MEMBERS: Final = frozenset(["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"])
"""The members of an entry of `metadata.ownerReferences`."""

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_is_label: Final = re.compile(_LABEL).fullmatch
_is_subdomain: Final = re.compile(_SUBDOMAIN).fullmatch
_is_name: Final = re.compile(_NAME).fullmatch
_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_WORDS: Final = "'-', '_' or '.', and must start and end with an alphanumeric character"
_KEY_DEMAND: Final = (
    f"must consist of alphanumeric characters, {_WORDS} (e.g. 'MyName',  or 'my.name',  or '123-abc',"
    f" regex used for validation is '{_NAME}')"
)
_PREFIX_DEMAND: Final = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_VALUE_DEMAND: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, {_WORDS} (e.g. 'MyValue',"
    f"  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')"
)
_SUBDOMAIN_DEMAND: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    f" start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    f" '{_SUBDOMAIN}')"
)
_LABEL_DEMAND: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    f" '{_LABEL}')"
)
_OWNER_DEMANDS: Final = (
    ("apiVersion", "version must not be empty"),
    ("kind", "must not be empty"),
    ("name", "must not be empty"),
    ("uid", "must not be empty"),
)


@dataclass(frozen=True, slots=True)
class MetadataError:
    """An error as worded by the API server, which names whole maps only, and the path of its cause."""

    error: FieldError
    culprit: FieldPath


def metadata_errors(metadata: JsonValue) -> list[MetadataError]:
    """Return everything wrong with the metadata of an object, in the order of the API server."""
    path = FieldPath().child("metadata")
    if not isinstance(metadata, dict | None):
        return [MetadataError(errors.wrong_type(path, metadata, "must be an object"), path)]
    members = metadata or {}
    problems = [*_names(members, path)]
    for name, check in _CHECKS:
        if members.get(name) is not None:
            problems += check(members[name], path.child(name))
    return problems


def _names(metadata: Json, path: FieldPath) -> Iterator[MetadataError]:
    prefix = yield from _text(metadata, "generateName", path)
    name = yield from _text(metadata, "name", path)
    if prefix:
        # A suffix is appended to the prefix, so a trailing hyphen is valid; the API server masks it the same
        # way.
        masked = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        for demand in _subdomain_demands(masked):
            yield _invalid(path.child("generateName"), prefix, demand)
    if name:
        for demand in _subdomain_demands(name):
            yield _invalid(path.child("name"), name, demand)
    elif name is not None and not prefix:
        yield _at(errors.required(path.child("name"), "name or generateName is required"))
    namespace = yield from _text(metadata, "namespace", path)
    for demand in _label_demands(namespace) if namespace else ():
        yield _invalid(path.child("namespace"), namespace, demand)


def _text(metadata: Json, name: str, path: FieldPath) -> Generator[MetadataError, None, str | None]:
    value = metadata.get(name)
    if isinstance(value, str | None):
        return value or ""
    yield _at(errors.wrong_type(path.child(name), value, "must be a string"))
    return None


def _labels(labels: JsonValue, here: FieldPath) -> Iterator[MetadataError]:
    for key, value in (yield from _texts(labels, here)).items():
        for demand in _key_demands(key):
            yield _invalid(here, key, demand, culprit=here.key(key))
        for demand in _value_demands(value):
            yield _invalid(here, value, demand, culprit=here.key(key))


def _annotations(annotations: JsonValue, here: FieldPath) -> Iterator[MetadataError]:
    texts = yield from _texts(annotations, here)
    for key in texts:
        for demand in _key_demands(key.lower()):
            yield _invalid(here, key, demand, culprit=here.key(key))
    if sum(len(key.encode()) + len(value.encode()) for key, value in texts.items()) > LIMIT_BYTES:
        yield _at(errors.too_long(here, LIMIT_BYTES))


def _texts(value: JsonValue, path: FieldPath) -> Generator[MetadataError, None, dict[str, str]]:
    if not isinstance(value, dict):
        yield _at(errors.wrong_type(path, value, "must be an object"))
        return {}
    texts: dict[str, str] = {}
    for key, item in value.items():
        if isinstance(item, str | None):
            texts[key] = item or ""
        else:
            yield _at(errors.wrong_type(path.key(key), item, "must be a string"))
    return texts


def _owners(owners: JsonValue, here: FieldPath) -> Iterator[MetadataError]:
    for position, owner in (yield from _items(owners, here)):
        if not isinstance(owner, dict):
            yield _at(errors.wrong_type(here.index(position), owner, "must be an object"))
            continue
        for name, demand in _OWNER_DEMANDS:
            value = owner.get(name)
            if not isinstance(value, str | None):
                yield _at(errors.wrong_type(here.index(position).child(name), value, "must be a string"))
            elif not value:
                yield _invalid(here.child(name), "", demand, culprit=here.index(position).child(name))


def _finalizers(finalizers: JsonValue, here: FieldPath) -> Iterator[MetadataError]:
    for position, finalizer in (yield from _items(finalizers, here)):
        if not isinstance(finalizer, str):
            yield _at(errors.wrong_type(here.index(position), finalizer, "must be a string"))
            continue
        for demand in _key_demands(finalizer):
            yield _invalid(here, finalizer, demand, culprit=here.index(position))


def _items(value: JsonValue, path: FieldPath) -> Generator[MetadataError, None, list[tuple[int, JsonValue]]]:
    if isinstance(value, list):
        return list(enumerate(value))
    yield _at(errors.wrong_type(path, value, "must be a list"))
    return []


_CHECKS: Final[Sequence[tuple[str, Callable[[JsonValue, FieldPath], Iterator[MetadataError]]]]] = (
    ("labels", _labels),
    ("annotations", _annotations),
    ("ownerReferences", _owners),
    ("finalizers", _finalizers),
)


def _key_demands(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield f"a valid label key {_KEY_DEMAND} {_PREFIX_DEMAND}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    for demand in _subdomain_demands(prefix, unit="bytes") if prefix else ():
        yield f"prefix part {demand}"
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > _LONGEST_LABEL:
        yield f"name part must be no more than {_LONGEST_LABEL} bytes"
    if not _is_name(name):
        yield f"name part {_KEY_DEMAND}"


def _value_demands(value: str) -> Iterator[str]:
    if len(value.encode()) > _LONGEST_LABEL:
        yield f"must be no more than {_LONGEST_LABEL} bytes"
    if value and not _is_name(value):
        yield _VALUE_DEMAND


def _subdomain_demands(value: str, *, unit: str = "characters") -> Iterator[str]:
    if len(value.encode()) > _LONGEST_SUBDOMAIN:
        yield f"must be no more than {_LONGEST_SUBDOMAIN} {unit}"
    if not _is_subdomain(value):
        yield _SUBDOMAIN_DEMAND


def _label_demands(value: str) -> Iterator[str]:
    if len(value.encode()) > _LONGEST_LABEL:
        yield f"must be no more than {_LONGEST_LABEL} characters"
    if _is_subdomain(value) and "." in value:
        yield "must not contain dots"
    elif not _is_label(value):
        yield _LABEL_DEMAND


def _invalid(
    path: FieldPath, value: JsonValue, demand: str, *, culprit: FieldPath | None = None
) -> MetadataError:
    return MetadataError(errors.invalid(path, value, demand), culprit or path)


def _at(error: FieldError) -> MetadataError:
    return MetadataError(error, error.path)
