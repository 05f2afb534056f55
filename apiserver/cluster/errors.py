"""What can go wrong between us and a Kubernetes API server.

    ClusterError
    ├── NotConfigured     no usable kubeconfig, or no service account
    ├── Unauthorized      401: the credentials were not accepted, even after they were read anew
    ├── Forbidden         403: RBAC, quota or admission says no
    ├── NotFound          404: neither object nor kind is there
    ├── Conflict          409: somebody else wrote first; read again, decide again
    │   └── AlreadyExists     409 on create
    ├── Expired           410: the resource version or continue token is too old; list again
    ├── NotLeading        nothing was sent: this process no longer holds its lease
    ├── Invalid           400, 422 and other 4xx: this request will never be accepted as it is
    └── Unavailable       network, time-out, 5xx or an unreadable answer: may work later
        └── Throttled         429: wait for `retry_after_seconds`, then try again

Nothing else leaves this package: exceptions of the HTTP client stop here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apiserver.schema.json import Json, JsonValue


class ClusterError(Exception):
    """A call to the API server did not succeed.

    `message` is the server's own sentence where there is one; `status` the `Status` object that carried it.
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
        """The machine-readable word of the `Status`, as in `AlreadyExists`; empty without one."""
        return str((self.status or {}).get("reason") or "")


class NotConfigured(ClusterError):  # noqa: N818 - named after what happened, as the API's own reasons are
    """Neither a usable kubeconfig nor a service account was found."""


class Unauthorized(ClusterError):  # noqa: N818 - the API's own word
    """The server did not accept the credentials, even after they were read anew (401)."""


class Forbidden(ClusterError):  # noqa: N818 - the API's own word
    """RBAC, a quota or an admission plug-in refused the request (403)."""


class NotFound(ClusterError):  # noqa: N818 - the API's own word
    """Neither the object nor, perhaps, its kind is there (404)."""


class Conflict(ClusterError):  # noqa: N818 - the API's own word
    """Somebody else wrote first: read again and decide again (409)."""


class AlreadyExists(Conflict):
    """An object of this name was there before (409 on create)."""


class Expired(ClusterError):  # noqa: N818 - the API's own word
    """The resource version or the continue token is too old: list again (410)."""


class NotLeading(ClusterError):  # noqa: N818 - named after what happened
    """Nothing was sent: this process no longer holds the lease that lets it write."""


class Invalid(ClusterError):  # noqa: N818 - the API's own word
    """The request will never be accepted as it is (400, 422 and other 4xx)."""


class Unavailable(ClusterError):  # noqa: N818 - the API's own word
    """The network, a time-out, the server itself (5xx) or an unreadable answer: it may work later."""


class Throttled(Unavailable):
    """The server asks to wait for `retry_after_seconds` (429)."""


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
    """Choose the exception for an answer with this HTTP code, `Status` body and `Retry-After` header."""
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
        return None  # absent, or the date form of the header, which Kubernetes never sends
    return seconds if 0 < seconds < float("inf") else None
