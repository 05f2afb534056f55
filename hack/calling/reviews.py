"""AdmissionReviews as kube-apiserver sends them to a webhook. Contract: `k8s.io/api/admission/v1`.

Objects have uid, creation time and managed fields; a Model has 8 KB.
"""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Final, Literal

import yaml

from apiserver.schema.json import Json, JsonValue

_MODEL: Final = Path(__file__).with_name("model.yaml")
CREATED: Final = "2025-11-03T09:12:44Z"
_MAP_LISTS: Final = frozenset({"backends", "env"})
"""Map lists, whose items the API server identifies by name; it tracks all other lists as a whole."""


def received_object(manifest: Json, *, uid: str, owner: str) -> Json:
    """Return an applied manifest with fields of two managers: its owner, and one that set a label."""
    version = manifest["apiVersion"]
    fields = owned_fields({"spec": manifest["spec"], "metadata": _owned_metadata(manifest)})
    label: Json = {"f:metadata": {"f:labels": {"f:tier": {}}}}
    metadata = manifest["metadata"] | {
        "uid": uid,
        "creationTimestamp": CREATED,
        "generation": 1,
        "managedFields": [
            managed_fields(fields, by=owner, version=version),
            managed_fields(label, by="tier-labeller", version=version),
        ],
    }
    return manifest | {"metadata": metadata}


def _owned_metadata(manifest: Json) -> Json:
    return {
        key: manifest["metadata"][key] for key in ("labels", "annotations") if key in manifest["metadata"]
    }


def submitted_object(value: Json) -> Json:
    """Return an object as a user submits it, without the fields that the server writes."""
    named = ("name", "labels", "annotations")
    metadata = {key: value["metadata"][key] for key in named if key in value["metadata"]}
    return {key: value[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}


def managed_fields(fields: Json, *, by: str, version: str) -> Json:
    """Return the `managedFields` entry of a manager that applied fields in a version."""
    return {
        "manager": by,
        "operation": "Apply",
        "apiVersion": version,
        "time": CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def owned_fields(value: Json) -> Json:
    """Return the fields owned by a manager that applied a value, as `FieldsV1` (structured-merge-diff)."""
    return {f"f:{key}": _owned_fields(key, item) for key, item in value.items()}


def _owned_fields(key: str, value: JsonValue) -> Json:
    if isinstance(value, dict):
        return owned_fields(value)
    if isinstance(value, list) and key in _MAP_LISTS:
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}} | owned_fields(item) for item in value}
    return {}


def model() -> Json:
    """Return the Model of a creation, without members that have defaults."""
    return received_object(
        copy.deepcopy(_written_fields()),
        uid="0d3f8a52-6b1e-4f0c-9c57-7f2a4be1d3a9",
        owner="argocd-controller",
    )


@functools.cache
def _written_fields() -> Json:
    manifest: Json = yaml.safe_load(_MODEL.read_text(encoding="utf-8"))
    return manifest


Operation = Literal["CREATE", "UPDATE"]

_USER: Final = {
    "username": "system:serviceaccount:argocd:argocd-application-controller",
    "uid": "b4f5d7c0-1c67-4c42-8d0a-0f7a3f5f6e0b",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:argocd", "system:authenticated"],
    "extra": {
        "authentication.kubernetes.io/credential-id": ["JTI=5a7d3f6e-98c0-4d3c-a1f2-0c5c2f1b9d77"],
    },
}
_PLURALS: Final = {"Model": "models", "VariantAutoscaling": "variantautoscalings"}


def create(value: Json) -> bytes:
    """Return the AdmissionReview of a creation."""
    return _review("CREATE", value, None)


def update(value: Json, old: Json) -> bytes:
    """Return the AdmissionReview of an update from the stored object `old` to `value`."""
    return _review("UPDATE", value, old)


def _review(operation: Operation, value: Json, old: Json | None) -> bytes:
    group, _, version = value["apiVersion"].partition("/")
    kind = {"group": group, "version": version, "kind": value["kind"]}
    resource = {"group": group, "version": version, "resource": _PLURALS[value["kind"]]}
    request: Json = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": value["metadata"]["name"],
        "namespace": value["metadata"]["namespace"],
        "operation": operation,
        "userInfo": _USER,
        "object": value,
        "oldObject": old,
        "dryRun": False,
        "options": {
            "kind": f"{operation.title()}Options",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "argocd-controller",
            "fieldValidation": "Strict",
        },
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


def http_request(path: str, body: bytes, *, server_name: str, timeout_seconds: int) -> bytes:
    """Return the complete HTTP request, with the headers of kube-apiserver's client."""
    head = (
        f"POST {path}?timeout={timeout_seconds}s HTTP/1.1\r\n"
        f"Host: {server_name}:9443\r\n"
        "User-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Accept: application/json, */*\r\n"
        "Content-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n"
        "\r\n"
    )
    return head.encode() + body
