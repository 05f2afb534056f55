"""AdmissionReviews as kube-apiserver sends them to a webhook. Contract: `k8s.io/api/admission/v1`."""

from __future__ import annotations

import json
from typing import Final, Literal

from apiserver.schema.json import Json

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
