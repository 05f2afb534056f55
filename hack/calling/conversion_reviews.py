"""ConversionReviews as kube-apiserver sends them. Contract: `apiextensions.k8s.io/v1`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from apiserver.schema.json import Json
from hack.calling import reviews

PATH: Final = "/convert"
SERVER_NAME: Final = "stowplan-conversion.stowplan-system.svc"
_TIMEOUT_SECONDS: Final = 30
_UID: Final = "0c2f6d1e-7d3b-4f5a-9a37-6a2f2e6d3b11"


def review(values: Sequence[Json], api_version: str) -> bytes:
    """Return the review that requests objects in a version."""
    request = {"uid": _UID, "desiredAPIVersion": api_version, "objects": list(values)}
    document = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    return json.dumps(document, separators=(",", ":")).encode()


def converted_objects(answer: bytes) -> list[Json]:
    """Return the objects of a response. Raises ValueError, with the server's message, if it failed."""
    response = json.loads(answer)["response"]
    if response["uid"] != _UID or response["result"]["status"] != "Success":
        raise ValueError(f"no conversion: {response['result']}")
    values: list[Json] = response["convertedObjects"]
    return values


def http_request(body: bytes) -> bytes:
    """Return the complete HTTP request, with the headers of kube-apiserver's client."""
    return reviews.http_request(PATH, body, server_name=SERVER_NAME, timeout_seconds=_TIMEOUT_SECONDS)
