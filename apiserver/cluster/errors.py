"""Errors of calls to a Kubernetes API server.

    ClusterError
    ├── NotConfigured     no usable kubeconfig, or no service account
    ├── Unauthorized      401: the credentials were rejected, even after they were reloaded
    ├── Forbidden         403: rejected by RBAC, quota or admission
    ├── NotFound          404: the object or its kind does not exist
    ├── Conflict          409: a concurrent write; read again, decide again
    │   └── AlreadyExists     409 on create
    ├── Expired           410: the resource version or continue token is too old; list again
    ├── NotLeading        not sent: this process no longer holds its lease
    ├── Invalid           400, 422 and other 4xx: this request will never be accepted as it is
    └── Unavailable       network, timeout, 5xx or a malformed response: a retry may succeed
        └── Throttled         429: wait for `retry_after_seconds`, then retry

This package raises no other errors: exceptions of the HTTP client are converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.program import CannotRunError

if TYPE_CHECKING:
    from apiserver.schema.json import Json, JsonValue


class ClusterError(Exception):
    """A failed call to the API server.

    `message` is that of the server if there is one; `status` is the `Status` object that contained it.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        status: Json | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    @property
    def reason(self) -> str:
        """The reason of the `Status`, such as `AlreadyExists`; empty without a `Status`."""
        return str((self.status or {}).get("reason") or "")


class NotConfigured(ClusterError, CannotRunError):  # noqa: N818 (named like the API's reasons)
    """No usable kubeconfig and no service account was found."""


class Unauthorized(ClusterError):  # noqa: N818 (the term of the API)
    """The server rejected the credentials, even after they were reloaded (401)."""


class Forbidden(ClusterError):  # noqa: N818 (the term of the API)
    """RBAC, a quota or an admission plug-in rejected the request (403)."""


class NotFound(ClusterError):  # noqa: N818 (the term of the API)
    """The object, or possibly its kind, does not exist (404)."""


class Conflict(ClusterError):  # noqa: N818 (the term of the API)
    """A concurrent write came first: read again and decide again (409)."""


class AlreadyExists(Conflict):
    """An object with this name exists already (409 on create)."""


class Expired(ClusterError):  # noqa: N818 (the term of the API)
    """The resource version or the continue token is too old: list again (410)."""


class NotLeading(ClusterError):  # noqa: N818 (the name describes the event)
    """The request was not sent, since this process no longer holds the lease that allows it to write."""


class Invalid(ClusterError):  # noqa: N818 (the term of the API)
    """The request will never be accepted as it is (400, 422 and other 4xx)."""


class Oversized(ClusterError):  # noqa: N818 (named like the API's reasons)
    """A response is longer than its limit."""


class Unavailable(ClusterError):  # noqa: N818 (the term of the API)
    """A network failure, a server error (5xx), a timeout or a malformed response: a retry may succeed."""


class Throttled(Unavailable):
    """The server asks to retry after `retry_after_seconds` (429)."""


def explain(error: ClusterError, *, action: str) -> str:
    """Return an error as a sentence to the user of a command; `action` is what a forbidden call was for."""
    match error:
        case Unauthorized():
            return f"the API server does not accept your credentials: {error.message}"
        case Forbidden():
            return f"you are not allowed to {action}: {error.message}"
        case Unavailable():
            return f"the API server does not respond: {error.message}"
        case _:
            return error.message


_BY_CODE: dict[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    429: Throttled,
}
_BY_REASON: dict[str, type[ClusterError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
}
_FIRST_SERVER_ERROR = 500


def error_of(code: int, *, status: Json | None = None, retry_after: str | None = None) -> ClusterError:
    """Return the exception for a response with this HTTP code, `Status` body and `Retry-After` header."""
    status = status or {}
    kind = _BY_REASON.get(str(status.get("reason"))) or _BY_CODE.get(code)
    if kind is None:
        kind = Unavailable if code >= _FIRST_SERVER_ERROR else Invalid
    seconds = _seconds(retry_after)
    if seconds is None:
        seconds = _seconds(_member(status.get("details"), "retryAfterSeconds"))
    message = str(status.get("message") or f"the API server responded with HTTP status {code}")
    return kind(message, code=code, status=status or None, retry_after_seconds=seconds)


def _member(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, dict) else None


def _seconds(value: JsonValue) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None  # absent, or the header's date form, which Kubernetes never sends
    return seconds if 0 < seconds < float("inf") else None
