"""The paths of `external.metrics.k8s.io/v1beta1`, its discovery documents, and its errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from aiohttp import web

from apiserver.kinds.core.selecting import parse_selector
from apiserver.log import EventLogger
from apiserver.metrics import status
from apiserver.metrics.index import MetricIndex, MetricValue
from apiserver.schema.json import Json

_SUFFIXES: Final = ("m", "", "k", "M", "G", "T", "P", "E")
_THOUSAND: Final = 1000


def canonical_quantity(value_milli: int) -> str:
    """Return thousandths as a canonical quantity, such as `3`, `3300m` or `2k`: the largest exact suffix.

    Source: `k8s.io/apimachinery/pkg/api/resource/quantity.go`, decimal SI.
    """
    if value_milli == 0:
        return "0"
    number, position = value_milli, 0
    while number % _THOUSAND == 0 and position < len(_SUFFIXES) - 1:
        number, position = number // _THOUSAND, position + 1
    return f"{number}{_SUFFIXES[position]}"


GROUP: Final = "external.metrics.k8s.io"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
JSON_TYPE: Final = "application/json"

# One entry for all metrics: a list of thousands would slow down every kubectl of the cluster.
_NAME: Final = "externalmetrics"
_KIND: Final = "ExternalMetricValueList"
_VERBS: Final = ["get"]

_VERSION: Final = {"groupVersion": API_VERSION, "version": VERSION}
_GROUP: Final[Json] = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}

API_GROUP: Final = {"kind": "APIGroup", "apiVersion": "v1", **_GROUP}
"""The document at `/apis/GROUP`."""

API_GROUP_LIST: Final = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]}
"""The document at `/apis`. kube-apiserver also accepts it in place of an aggregated one."""

API_RESOURCE_LIST: Final[Json] = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": API_VERSION,
    "resources": [{"name": _NAME, "singularName": "", "namespaced": True, "kind": _KIND, "verbs": _VERBS}],
}
"""The document at `/apis/GROUP/VERSION`."""


GROUP_PATH: Final = f"/apis/{GROUP}"
VERSION_PATH: Final = f"/apis/{API_VERSION}"
_LOG = EventLogger(__name__)
_WHOLE_SECONDS: Final = len("2006-01-02T15:04:05")
_TRUE: Final = frozenset(["true", "1"])

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Clock = Callable[[], dt.datetime]


def routes(
    index: MetricIndex, *, why_incomplete: Callable[[str], str | None], clock: Clock
) -> list[web.RouteDef]:
    """Return all routes except the health paths.

    `why_incomplete` returns why the index must not be used yet for a metric, or None; `clock` returns the
    time in UTC.
    """

    async def values(request: web.Request) -> web.Response:
        metric_name = request.match_info["metric"]
        if why := why_incomplete(metric_name):
            raise status.ServiceUnavailableError(why)
        if request.query.get("watch") in _TRUE:
            raise status.MethodNotAllowedError("external metrics cannot be watched")
        _require_json(request)
        series = index.query(
            namespace=request.match_info["namespace"],
            metric_name=metric_name,
            selector=_selector(request.query.get("labelSelector", "")),
            now=clock(),
        )
        return web.Response(body=msgspec.json.encode(value_list(series)), content_type=JSON_TYPE)

    return [
        web.get("/", _document({"paths": ["/apis", GROUP_PATH, VERSION_PATH]})),
        web.get("/apis", _document(API_GROUP_LIST)),
        web.get(GROUP_PATH, _document(API_GROUP)),
        web.get(VERSION_PATH, _document(API_RESOURCE_LIST)),
        web.get(f"{VERSION_PATH}/namespaces/{{namespace}}/{{metric}}", values),
    ]


def value_list(entries: Sequence[MetricValue]) -> Json:
    """Return an `ExternalMetricValueList`.

    Source: `k8s.io/metrics/pkg/apis/external_metrics/v1beta1/types.go`.
    """
    items = [
        {
            "metricName": series.metric_name,
            "metricLabels": series.labels,
            "timestamp": f"{series.time.isoformat()[:_WHOLE_SECONDS]}Z",
            "value": canonical_quantity(series.value_milli),
        }
        for series in entries
    ]
    return {"kind": "ExternalMetricValueList", "apiVersion": API_VERSION, "metadata": {}, "items": items}


@web.middleware
async def statuses(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Convert every error into a `metav1.Status` with its HTTP code."""
    try:
        return await handler(request)
    except status.StatusError as error:
        return _failure(error)
    except web.HTTPException as error:
        return _failure(_api_error(error, request))
    except Exception:  # noqa: BLE001 (logged with details; the response has none)
        _LOG.exception("request failed", method=request.method, path=request.path)
        return _failure(status.InternalServerError("an internal error occurred; see the server's log"))


def _api_error(error: web.HTTPException, request: web.Request) -> status.StatusError:
    """Return the API error for an error of the web framework."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return status.MethodNotAllowedError(f"{request.method} is not supported: metrics are read-only")
    if isinstance(error, web.HTTPNotFound):
        return status.NotFoundError(f"the server could not find the requested resource {request.path}")
    if error.status < web.HTTPInternalServerError.status_code:
        return status.BadRequestError(error.reason)
    return status.InternalServerError(error.reason)


def _failure(error: status.StatusError) -> web.Response:
    return web.Response(status=error.code, body=msgspec.json.encode(error.status()), content_type=JSON_TYPE)


def _selector(text: str) -> Json:
    try:
        return parse_selector(text)
    except ValueError as error:
        raise status.BadRequestError(f"unable to parse the label selector {text!r}: {error}") from error


def _require_json(request: web.Request) -> None:
    """Raise NotAcceptableError unless the caller accepts JSON; a request without the header does."""
    accept = request.headers.get("Accept", "*/*")
    types = {part.split(";", 1)[0].strip() for part in accept.split(",")}
    if not types & {JSON_TYPE, "*/*", "application/*"}:
        raise status.NotAcceptableError(f"only {JSON_TYPE} can be served, not {accept}")


def _document(content: Json) -> Handler:
    body = msgspec.json.encode(content)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=JSON_TYPE)

    return answer
