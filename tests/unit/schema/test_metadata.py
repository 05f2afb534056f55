"""Errors in metadata, with the API server's messages as read from a dry-run on Kubernetes 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.metadata import metadata_errors

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used"
    " for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

WRONG: dict[str, tuple[Any, list[str]]] = {
    "no metadata": (None, ["metadata.name: Required value: name or generateName is required"]),
    "no name": ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
    "a name in capitals": ({"name": "A_b"}, [f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}']),
    "a generateName in capitals": (
        {"generateName": "A_"},
        [f'metadata.generateName: Invalid value: "A_": {SUBDOMAIN}'],
    ),
    "a long name": (
        {"name": "a" * 254},
        [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters'],
    ),
    "a namespace with dots": (
        {"name": "x", "namespace": "a.b"},
        ['metadata.namespace: Invalid value: "a.b": must not contain dots'],
    ),
    "a namespace in capitals": (
        {"name": "x", "namespace": "A"},
        [f'metadata.namespace: Invalid value: "A": {LABEL}'],
    ),
    "several invalid labels": (
        {"name": "x", "labels": {"a b": "c d", "x/y/z": "", "/x": "ok", "A.b/c": "1x", "a" * 64: "a" * 64}},
        [
            f'metadata.labels: Invalid value: "a b": name part {KEY}',
            f'metadata.labels: Invalid value: "c d": {VALUE}',
            f'metadata.labels: Invalid value: "x/y/z": a valid label key {KEY} {PREFIX}',
            'metadata.labels: Invalid value: "/x": prefix part must be non-empty',
            f'metadata.labels: Invalid value: "A.b/c": prefix part {SUBDOMAIN}',
            f'metadata.labels: Invalid value: "{"a" * 64}": name part must be no more than 63 bytes',
            f'metadata.labels: Invalid value: "{"a" * 64}": must be no more than 63 bytes',
        ],
    ),
    "an annotation whose key has a space": (
        {"name": "x", "annotations": {"a b": "c d"}},
        [f'metadata.annotations: Invalid value: "a b": name part {KEY}'],
    ),
    "annotations beyond the size limit": (
        {"name": "x", "annotations": {"a": "x" * 262144}},
        ["metadata.annotations: Too long: may not be more than 262144 bytes"],
    ),
    "an owner without a uid": (
        {"name": "x", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}]},
        ['metadata.ownerReferences.uid: Invalid value: "": must not be empty'],
    ),
    "a finalizer with two slashes": (
        {"name": "x", "finalizers": ["a/b/c"]},
        [f'metadata.finalizers: Invalid value: "a/b/c": a valid label key {KEY} {PREFIX}'],
    ),
    "text instead of metadata": ("x", ['metadata: Invalid value: "x": must be an object']),
    "false instead of metadata": (False, ["metadata: Invalid value: false: must be an object"]),
    "empty values of wrong types": (
        {"name": [], "labels": [], "annotations": "", "finalizers": {}, "ownerReferences": 0},
        [
            "metadata.name: Invalid value: []: must be a string",
            "metadata.labels: Invalid value: []: must be an object",
            'metadata.annotations: Invalid value: "": must be an object',
            "metadata.ownerReferences: Invalid value: 0: must be a list",
            "metadata.finalizers: Invalid value: {}: must be a list",
        ],
    ),
    "wrong types in all fields": (
        {"name": 5, "labels": ["a"], "annotations": {"a": True}, "finalizers": "x", "ownerReferences": [1]},
        [
            "metadata.name: Invalid value: 5: must be a string",
            'metadata.labels: Invalid value: ["a"]: must be an object',
            "metadata.annotations[a]: Invalid value: true: must be a string",
            "metadata.ownerReferences[0]: Invalid value: 1: must be an object",
            'metadata.finalizers: Invalid value: "x": must be a list',
        ],
    ),
}


@pytest.mark.parametrize(("metadata", "want"), WRONG.values(), ids=WRONG.keys())
def test_invalid_metadata_gets_the_errors_of_the_api_server(metadata: object, want: list[str]) -> None:
    """All errors are listed, in its order."""
    texts = [f"{found.error.path}: {found.error.body}" for found in metadata_errors(metadata)]

    assert texts == want


RIGHT: dict[str, dict[str, Any]] = {
    "a name": {"name": "a.b-c.1"},
    "a generateName that ends with a hyphen": {"generateName": "model-"},
    "labels, annotations, finalizers": {
        "name": "x",
        "labels": {"app.kubernetes.io/name": "X_1.y", "empty": "", "null": None},
        "annotations": {"Example.COM/Key": "any text\nat all"},
        "finalizers": ["example.com/hold"],
    },
    "metadata of a stored object": {
        "name": "x",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": None,
    },
}


@pytest.mark.parametrize("metadata", RIGHT.values(), ids=RIGHT.keys())
def test_metadata_that_the_api_server_accepts_gets_no_error(metadata: object) -> None:
    """The list of errors is empty."""
    assert metadata_errors(metadata) == []
