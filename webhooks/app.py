"""The webhooks process: HTTP routes, their size limits, and the mapping of malformed input to responses.

`/convert` converts a list of objects to another version, in order, without any lookup. It is served from the
start, and admission as soon as it is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web
from msgspec import Raw

from apiserver.kinds.conversion import convert
from apiserver.log import EventLogger
from apiserver.schema.json import Json, JsonValue, without_depths
from apiserver.serving.bodies import Bodies, Reply, Room, failure
from apiserver.serving.process import Readiness, run_server
from webhooks.review import (
    SMALL_BYTES,
    AdmissionRequest,
    AdmissionResponse,
    ConversionRequest,
    Judges,
    MalformedReviewError,
    UnreadableRequestError,
    decode_admission,
    decode_conversion,
    encode_conversion_failure,
    encode_converted,
    encode_response,
    failure_status,
)

if TYPE_CHECKING:
    from apiserver.serving.process_metrics import ProcessMetrics
    from webhooks.config import WebhooksConfig
    from webhooks.judging import AdmissionService


_TURN_SECONDS: Final = 0.02

_LARGEST_BYTES: Final = 4 << 20
"""The maximum size of the text of an object, in bytes: kube-apiserver accepts 3 MiB in a request. Decoded, an
object takes many times as much."""


_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class UnconvertibleError(Exception):
    """No conversion exists for the requested version or kind, or an object cannot be decoded."""


def convert_objects(request: ConversionRequest) -> Iterator[Raw]:
    """Yield the objects of a conversion request in the desired version, in the order of the request.

    Each is encoded again before the next one is decoded, so that a long list takes little memory. Raises
    UnconvertibleError for an unknown kind or version, and for an entry that cannot be decoded, and
    RecursionError for one that is nested too deeply.
    """
    desired = request.desired_api_version
    try:
        for text in request.objects:
            yield Raw(_encode(convert(_decode_request(text), desired)))
    except KeyError as error:
        raise UnconvertibleError(f"cannot convert to {desired}: {error}") from error
    except ValueError as error:
        raise UnconvertibleError(f"an entry of the list cannot be read: {error}") from error


def _decode_request(text: Raw) -> Json:
    """Return an object. Raises ValueError for a text that is too large or no object."""
    if memoryview(text).nbytes > _LARGEST_BYTES:
        why = f"it has more than {_LARGEST_BYTES} bytes, and no API server stores such an object"
        raise ValueError(why)
    value: JsonValue = _decode(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004 (an invalid value, not a wrong Python type)
    return value


async def convert_all(request: ConversionRequest) -> list[Raw]:
    """Return all converted objects, yielding to the event loop in long lists. Raises as `convert_objects`."""
    objects, began_seconds = [], monotonic()
    for each in convert_objects(request):
        objects.append(each)
        if monotonic() - began_seconds > _TURN_SECONDS:
            await asyncio.sleep(0)
            began_seconds = monotonic()
    return objects


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

Load = Callable[[], Awaitable[Judges]]
"""Returns the decision functions, once they are loaded."""


def application(judges: Load, *, admission_limit_bytes: int, conversion_limit_bytes: int) -> web.Application:
    """Return the application with the paths of admission and `/convert`.

    All but the last wait until `judges` has loaded; `/convert` does not need it.
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
    application = web.Application()
    for verb in ("mutate", "validate", "validate-settings", "validate-autoscalers"):
        handler = admissions.handler(
            partial(_admission_reply, verb, judges), limit_bytes=admission_limit_bytes, times=ADMISSION_TIMES
        )
        application.router.add_post(f"/{verb}", handler)
    handler = conversions.handler(
        _conversion_reply, limit_bytes=conversion_limit_bytes, times=CONVERSION_TIMES
    )
    application.router.add_post("/convert", handler)
    return application


async def _admission_reply(verb: str, load: Load, body: bytes) -> Reply:
    try:
        review = decode_admission(body)
    except RecursionError:
        # Judge the review without what is nested too deeply, which validation rejects at its field.
        return await _admission_reply(verb, load, await asyncio.to_thread(without_depths, body))
    except MalformedReviewError as error:
        return failure(400, str(error))
    except UnreadableRequestError as error:
        refusal = failure_status(400, "BadRequest", str(error))
        return Reply(encode_response(error.uid, AdmissionResponse(refusal=refusal)))
    try:
        response = await (await load())[verb](review)
    except Exception as error:  # noqa: BLE001 (unexpected errors must also get a response)
        response = _fault(verb, review, error)
    if response.refusal is not None:
        _log_refusal(verb, review, response.refusal)
    return Reply(encode_response(review.uid, response))


async def _conversion_reply(body: bytes) -> Reply:
    try:
        return await _converted_once(body)
    except RecursionError:
        # In a stored object, only managedFields can be nested so deeply. The API server restores them.
        return await _converted_once(await asyncio.to_thread(without_depths, body))


async def _converted_once(body: bytes) -> Reply:
    try:
        review = decode_conversion(body)
    except MalformedReviewError as error:
        return failure(400, str(error))
    except UnreadableRequestError as error:
        return Reply(encode_conversion_failure(error.uid, str(error)))
    try:
        return Reply(encode_converted(review.uid, await convert_all(review)))
    except UnconvertibleError as error:
        _log.warning("conversion refused", uid=review.uid, why=str(error))
        return Reply(encode_conversion_failure(review.uid, str(error)))


def _fault(verb: str, review: AdmissionRequest, error: Exception) -> AdmissionResponse:
    _log.exception("fault", webhook=verb, uid=review.uid)
    message = f"{type(error).__name__} in the webhook: please report it with the object; nothing was changed"
    return AdmissionResponse(refusal=failure_status(500, "InternalError", message))


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


def serve_webhooks(config: WebhooksConfig, metrics: ProcessMetrics) -> int:
    """Serve until a termination signal arrives; return the exit code."""
    admission = Admission(config)
    app = application(
        admission.judges,
        admission_limit_bytes=config.admission_limit_bytes,
        conversion_limit_bytes=config.conversion_limit_bytes,
    )
    return run_server(
        app, config.serving, readiness=Readiness(), metrics=metrics, background=[admission.follow]
    )


class Admission:
    """Admission whose decision functions `follow` loads; earlier reviews wait for them."""

    def __init__(self, config: WebhooksConfig) -> None:
        self._config = config
        self._loaded = asyncio.Event()
        self._service: AdmissionService | None = None

    async def judges(self) -> Judges:
        """Return the decision functions, once they are loaded."""
        await self._loaded.wait()
        assert self._service is not None
        return self._service.judges

    async def follow(self) -> None:
        """Load admission in a thread, then keep its caches current until cancelled."""
        self._service = await asyncio.to_thread(_load, self._config)
        self._loaded.set()
        await self._service.follow()


def _load(config: WebhooksConfig) -> AdmissionService:
    from webhooks.judging import AdmissionService  # noqa: PLC0415 (loading it takes longer than a conversion)

    return AdmissionService(config)
