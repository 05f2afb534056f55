"""Decoding and encoding of admission and conversion reviews.

Contracts: `k8s.io/api/admission/v1` and `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`. Objects
stay undecoded inside an admission request, and so do their specs: an unchanged one is never decoded.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Generic, Literal, TypedDict, TypeVar

import msgspec

from apiserver.schema.json import Json

_ADMISSION: Final[Json] = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
_CONVERSION: Final[Json] = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
_UID: Final = re.compile(rb'\s*\{[^{}]{0,256}"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,128})"')
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError)


class MalformedReviewError(Exception):
    """The body is no review with a uid that could be answered."""


class UnreadableRequestError(Exception):
    """The request has a uid that can be answered, but is otherwise no valid request."""

    def __init__(self, uid: str, message: str) -> None:
        super().__init__(message)
        self.uid = uid


T = TypeVar("T")
Uid = Annotated[str, msgspec.Meta(min_length=1)]

NULL: Final = msgspec.Raw(b"null")
"""The text of an absent object."""


class ReviewedMetadata(TypedDict, total=False):
    """The metadata that admission reads; managedFields and the rest stay undecoded."""

    name: str | None
    generateName: str | None
    namespace: str | None
    labels: dict[str, str] | None
    annotations: dict[str, str] | None
    ownerReferences: list[dict[str, Any]] | None


class ReviewedObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object whose content stays JSON text, because an unchanged spec is never decoded."""

    api_version: str = ""
    kind: str = ""
    metadata: ReviewedMetadata | None = None
    spec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """An admission request: the operation, and as JSON text the user and the objects."""

    uid: Uid
    operation: str = ""
    sub_resource: str | None = None
    namespace: str | None = None
    user_info: msgspec.Raw = msgspec.Raw(b"{}")
    object: msgspec.Raw = NULL
    old_object: msgspec.Raw = NULL


class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A conversion request: objects as JSON text, and the version to convert them to."""

    uid: Uid
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[msgspec.Raw]


class _UidRequest(msgspec.Struct, frozen=True, gc=False):
    """The uid of any request; all other fields are ignored."""

    uid: Uid


class _Convertible(msgspec.Struct, frozen=True, gc=False):
    """An object of the one kind with several versions; a long list of them takes little memory."""

    kind: Literal["VariantAutoscaling"]


class _ConversionObjects(msgspec.Struct, frozen=True, gc=False):
    """The objects of a conversion request, for counting them."""

    uid: Uid
    objects: list[_Convertible]


class _Review(msgspec.Struct, Generic[T], frozen=True, gc=False, rename="camel"):
    kind: str
    request: T
    api_version: str = ""


_admission_review: Final = msgspec.json.Decoder(_Review[AdmissionRequest])
_conversion_review: Final = msgspec.json.Decoder(_Review[ConversionRequest])
_identified: Final = msgspec.json.Decoder(_Review[_UidRequest])
_convertible: Final = msgspec.json.Decoder(_Review[_ConversionObjects])
_encode: Final = msgspec.json.Encoder().encode

SMALL_BYTES: Final = 64 << 10
"""Size in bytes up to which a review is small; the largest hand-written objects have a tenth of it."""

MOST_OBJECTS: Final = 100_000
"""Maximum number of objects in a conversion review: ten times as many as kube-apiserver reads at once."""

_MANY_COMMAS: Final = 4 * MOST_OBJECTS
"""Number of commas above which the objects of a review are counted before the list is built. The longest list
with fewer commas takes 30 MiB; 5,000 real objects have 200,000."""

_STEP_BYTES: Final = 1 << 16


class AdmissionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an admission webhook: a rejection with a Status, or a patch and warnings.

    The operations of the patch are encoded without changes.
    """

    refusal: Json | None = None
    patch: tuple[object, ...] = ()
    warnings: tuple[str, ...] = ()


Judges = dict[str, Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]]
"""The decision functions of the admission webhooks, by their paths: `mutate`, `validate` and others."""


def decode_admission(body: bytes) -> AdmissionRequest:
    """Return the request of an AdmissionReview.

    Raises MalformedReviewError, or UnreadableRequestError if the body has at least a uid, and RecursionError
    if it is nested too deeply.
    """
    return _request(body, _admission_review, _ADMISSION)


def decode_conversion(body: bytes) -> ConversionRequest:
    """Return the request of a ConversionReview. Raises the same errors as `decode_admission`.

    The objects of a review with very many commas are counted first: a list of millions of entries would take
    many times its size; this also finds an object of another kind.
    """
    if len(body) > _MANY_COMMAS and body.count(b",") > _MANY_COMMAS:
        _check_count(_request(body, _convertible, _CONVERSION))
    request = _request(body, _conversion_review, _CONVERSION)
    _check_count(request)
    return request


def _check_count(request: _ConversionObjects | ConversionRequest) -> None:
    if (count := len(request.objects)) > MOST_OBJECTS:
        why = f"the ConversionReview has {count} objects; at most {MOST_OBJECTS} are read"
        raise UnreadableRequestError(request.uid, why)


def _request(body: bytes, decoder: msgspec.json.Decoder[_Review[T]], envelope: Mapping[str, str]) -> T:
    kind, api_version = envelope["kind"], envelope["apiVersion"]
    try:
        _check_text(body)  # the decoder does not check the text that it skips, and later decoding would fail
        review = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise UnreadableRequestError(
            _uid(body, kind), f"the request of the {kind} is malformed: {error}"
        ) from error
    except _UNREADABLE as error:
        raise _unreadable(body, error) from error
    if review.kind != kind:
        raise MalformedReviewError(f"the body is not a {kind}")
    if review.api_version not in {api_version, ""}:
        why = f"the {kind} is malformed: only {api_version} is supported, not {review.api_version}"
        raise UnreadableRequestError(_uid(body, kind), why)
    return review.request


def _check_text(body: bytes) -> None:
    """Raise UnicodeDecodeError unless a body is UTF-8; check it in steps to avoid a full copy."""
    if body.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _STEP_BYTES):
        decoder.decode(body[start : start + _STEP_BYTES])
    decoder.decode(b"", final=True)


def _uid(body: bytes, kind: str) -> str:
    try:
        review = _identified.decode(body)
    except msgspec.ValidationError as error:
        raise MalformedReviewError(f"the body is not a {kind} with a request that has a uid") from error
    except _UNREADABLE as error:
        raise _unreadable(body, error) from error
    if review.kind != kind:
        raise MalformedReviewError(f"the body is not a {kind} with a request that has a uid")
    return review.request.uid


def _unreadable(body: bytes, error: Exception) -> Exception:
    """Return the error for an unreadable body, with the uid if it is where API servers write it."""
    why = f"the body is not valid JSON: {error}"
    match = _UID.match(body)
    if match is None:
        return MalformedReviewError(why)
    return UnreadableRequestError(match.group(1).decode(), why)


def failure_status(code: int, reason: str, message: str) -> Json:
    """Return the Status of a rejection without a list of errors."""
    return {"status": "Failure", "code": code, "reason": reason, "message": message}


def encode_response(uid: str, response: AdmissionResponse) -> bytes:
    """Return the AdmissionReview that answers a request."""
    fields: Json = {"uid": uid, "allowed": response.refusal is None}
    if response.refusal is not None:
        fields["status"] = response.refusal
    if response.patch:
        fields["patchType"] = "JSONPatch"
        fields["patch"] = _encode(response.patch)  # bytes are encoded in base64
    if response.warnings:
        fields["warnings"] = response.warnings
    return _encode(_ADMISSION | {"response": fields})


def encode_converted(uid: str, objects: Sequence[msgspec.Raw]) -> bytes:
    """Return the ConversionReview with the converted objects, in the order of the request."""
    response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}
    return _encode(_CONVERSION | {"response": response})


def encode_conversion_failure(uid: str, message: str) -> bytes:
    """Return the ConversionReview that fails the whole request."""
    response = {"uid": uid, "result": {"status": "Failure", "message": message}, "convertedObjects": []}
    return _encode(_CONVERSION | {"response": response})
