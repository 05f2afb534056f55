"""HTTP routes of the webhooks, their size limits, and the mapping of malformed input to responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from apiserver.log import EventLogger
from apiserver.schema.json import Json
from apiserver.serving.bodies import Bodies, Post, Posts, Reply, Room
from webhooks.convert import UnconvertibleError, convert_all
from webhooks.review import (
    SMALL_BYTES,
    AdmissionRequest,
    MalformedReviewError,
    UnreadableRequestError,
    Verdict,
    decode_admission,
    decode_conversion,
    encode_conversion_failure,
    encode_converted,
    encode_verdict,
)

ADMISSION_TIMES: Final = 32
"""Memory that an admission review may need, as a multiple of its text: objects are decoded in full."""

CONVERSION_TIMES: Final = 4
"""The same factor for conversion reviews. It is smaller because objects and results stay text."""

SMALL_CONVERSION_BYTES: Final = 1 << 20
"""Size up to which a conversion review counts as small, because it takes little work."""

_ARRIVING_ADMISSIONS: Final = 4
_ARRIVING_CONVERSIONS: Final = 2
"""The number of reviews of the maximum size that may be buffered at once; smaller ones share the same
bytes."""

_log = EventLogger(__name__)

Decide = Callable[[AdmissionRequest], Awaitable[Verdict]]


Judges = Mapping[str, Decide]
"""The decision functions of the two admission webhooks: `mutate` and `validate`."""


def application(
    judges: Callable[[], Awaitable[Judges]], *, admission_limit_bytes: int, conversion_limit_bytes: int
) -> Posts:
    """Return the handlers of `/mutate`, `/validate` and `/convert`.

    The first two wait until `judges` has loaded; `/convert` does not need it.
    """
    largest = max(admission_limit_bytes * ADMISSION_TIMES, conversion_limit_bytes * CONVERSION_TIMES)
    shared = Room(largest)
    admissions = Bodies(
        arriving_bytes=_ARRIVING_ADMISSIONS * admission_limit_bytes,
        small_bytes=SMALL_BYTES,
        large_bytes=largest // 2,  # so that waiting admission reviews always leave room for conversions
        shared=shared,
    )
    conversions = Bodies(
        arriving_bytes=_ARRIVING_CONVERSIONS * conversion_limit_bytes,
        small_bytes=SMALL_CONVERSION_BYTES,
        large_bytes=largest,
        shared=shared,
    )
    judged = partial(Post, bodies=admissions, limit_bytes=admission_limit_bytes, times=ADMISSION_TIMES)
    return {
        "/mutate": judged(answer=partial(_judged, "mutate", judges)),
        "/validate": judged(answer=partial(_judged, "validate", judges)),
        "/convert": Post(
            answer=_converted, bodies=conversions, limit_bytes=conversion_limit_bytes, times=CONVERSION_TIMES
        ),
    }


async def _judged(verb: str, judges: Callable[[], Awaitable[Judges]], body: bytes) -> Reply:
    try:
        review = decode_admission(body)
    except MalformedReviewError as error:
        return _malformed(str(error))
    except UnreadableRequestError as error:
        refusal = {"status": "Failure", "code": 400, "reason": "BadRequest", "message": str(error)}
        return Reply(encode_verdict(error.uid, Verdict(refusal=refusal)))
    try:
        verdict = await (await judges())[verb](review)
    except Exception as error:  # noqa: BLE001 (unexpected errors must also get a response)
        _log.exception("fault", webhook=verb, uid=review.uid)
        verdict = Verdict(refusal=_fault(error))
    if verdict.refusal is not None:
        _log_refusal(verb, review, verdict.refusal)
    return Reply(encode_verdict(review.uid, verdict))


async def _converted(body: bytes) -> Reply:
    try:
        review = decode_conversion(body)
    except MalformedReviewError as error:
        return _malformed(str(error))
    except UnreadableRequestError as error:
        return Reply(encode_conversion_failure(error.uid, str(error)))
    try:
        return Reply(encode_converted(review.uid, await convert_all(review)))
    except UnconvertibleError as error:
        _log.warning("conversion refused", uid=review.uid, why=str(error))
        return Reply(encode_conversion_failure(review.uid, str(error)))


def _malformed(why: str) -> Reply:
    status = {"kind": "Status", "status": "Failure", "code": 400, "message": why}
    return Reply(msgspec.json.encode(status), status=400)


def _fault(error: Exception) -> Json:
    message = f"{type(error).__name__} in the webhook: please report it with the object; nothing was changed"
    return {"status": "Failure", "code": 500, "reason": "InternalError", "message": message}


def _log_refusal(verb: str, request: AdmissionRequest, refusal: Json) -> None:
    details = refusal.get("details", {})
    _log.info(
        "refused",
        webhook=verb,
        uid=request.uid,
        kind=details.get("kind", ""),
        namespace=request.namespace or "",
        name=details.get("name", ""),
        fields=[cause["field"] for cause in details.get("causes", [])],
        why="" if details else refusal["message"],
    )
