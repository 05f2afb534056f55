"""The three routes, their limits, and the border at which malformed input turns into an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from aiohttp import web

from apiserver.schema.json import Json
from webhooks.convert import UnconvertibleError, convert_all
from webhooks.mutate import mutate
from webhooks.references import Targets, advise
from webhooks.review import (
    MalformedReviewError,
    Verdict,
    decode_request,
    encode_conversion_failure,
    encode_converted,
    encode_verdict,
)
from webhooks.validate import validate

_JSON: Final = "application/json"
_log = structlog.get_logger(__name__)


def application(
    targets: Targets, *, admission_limit_bytes: int, conversion_limit_bytes: int
) -> web.Application:
    """Return the application with `/mutate`, `/validate` and `/convert`."""

    def validated(request: Json) -> Verdict:
        return validate(request, lambda subject: advise(subject, targets))

    app = web.Application(client_max_size=max(admission_limit_bytes, conversion_limit_bytes))
    app.router.add_post("/mutate", _admission("mutate", mutate, admission_limit_bytes))
    app.router.add_post("/validate", _admission("validate", validated, admission_limit_bytes))
    app.router.add_post("/convert", _conversion(conversion_limit_bytes))
    return app


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _admission(verb: str, decide: Callable[[Json], Verdict], limit_bytes: int) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            review = decode_request(await _body(request, limit_bytes), "AdmissionReview")
        except MalformedReviewError as error:
            return _malformed(error)
        verdict = decide(review)
        if verdict.refusal is not None:
            _log_refusal(verb, review, verdict.refusal)
        return web.Response(body=encode_verdict(review["uid"], verdict), content_type=_JSON)

    return handle


def _conversion(limit_bytes: int) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            review = decode_request(await _body(request, limit_bytes), "ConversionReview")
        except MalformedReviewError as error:
            return _malformed(error)
        try:
            body = encode_converted(review["uid"], convert_all(review))
        except UnconvertibleError as error:
            _log.warning("conversion refused", uid=review["uid"], why=str(error))
            body = encode_conversion_failure(review["uid"], str(error))
        return web.Response(body=body, content_type=_JSON)

    return handle


async def _body(request: web.Request, limit_bytes: int) -> bytes:
    if request.headers.get("Content-Encoding"):
        raise MalformedReviewError("compressed bodies are not read")
    body = await request.read()
    if len(body) > limit_bytes:
        raise web.HTTPRequestEntityTooLarge(limit_bytes, len(body))
    return body


def _malformed(error: MalformedReviewError) -> web.Response:
    return web.json_response(
        {"kind": "Status", "status": "Failure", "code": 400, "message": str(error)}, status=400
    )


def _log_refusal(verb: str, review: Json, refusal: Json) -> None:
    details = refusal["details"]
    fields = [cause["field"] for cause in details["causes"]]
    _log.info(
        "refused",
        webhook=verb,
        uid=review["uid"],
        kind=details["kind"],
        namespace=review.get("namespace", ""),
        name=details["name"],
        fields=fields,
    )
