"""The envelopes of admission and conversion reviews, and nothing else.

Contracts: `k8s.io/api/admission/v1` and `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.json import Json

_ADMISSION: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
_CONVERSION: Final = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}


class MalformedReviewError(Exception):
    """The body is no review that could be answered by its uid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What an admission webhook says: refused with a Status, or allowed with a patch and warnings."""

    refusal: Json | None = None
    patch: tuple[Json, ...] = ()
    warnings: tuple[str, ...] = ()


def decode_request(body: bytes, kind: str) -> Json:
    """Return the `request` of a review of that kind. Raises MalformedReviewError when there is none."""
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedReviewError(f"the body is no JSON that can be read: {error}") from error
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("kind") != kind:
        raise MalformedReviewError(f"the body is no {kind} with a request")
    if not isinstance(request.get("uid"), str) or not request["uid"]:
        raise MalformedReviewError("the request has no uid to answer to")
    return request


def encode_verdict(uid: str, verdict: Verdict) -> bytes:
    """Return the AdmissionReview that answers a request."""
    response: Json = {"uid": uid, "allowed": verdict.refusal is None}
    if verdict.refusal is not None:
        response["status"] = verdict.refusal
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return msgspec.json.encode(_ADMISSION | {"response": response})


def encode_converted(uid: str, objects: list[Json]) -> bytes:
    """Return the ConversionReview that hands back converted objects, in the order they came."""
    response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}
    return msgspec.json.encode(_CONVERSION | {"response": response})


def encode_conversion_failure(uid: str, message: str) -> bytes:
    """Return the ConversionReview that refuses: the request it belongs to fails as a whole."""
    response = {"uid": uid, "result": {"status": "Failure", "message": message}, "convertedObjects": []}
    return msgspec.json.encode(_CONVERSION | {"response": response})
