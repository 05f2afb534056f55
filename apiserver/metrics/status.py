"""Errors of the API: each exception corresponds to a `metav1.Status`."""

from __future__ import annotations

from apiserver.schema.json import Json


class StatusError(Exception):
    """A response other than success; `reason` is Kubernetes' name for the HTTP code.

    StatusError
    ├── BadRequestError            400
    ├── UnauthorizedError          401
    ├── ForbiddenError             403
    ├── NotFoundError              404
    ├── MethodNotAllowedError      405
    ├── NotAcceptableError         406
    ├── TooManyRequestsError       429
    ├── InternalServerError        500
    └── ServiceUnavailableError    503
    """

    code = 500
    reason = "InternalError"

    def status(self) -> Json:
        """Return the `metav1.Status` object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }


class BadRequestError(StatusError):
    """The query is invalid."""

    code, reason = 400, "BadRequest"


class UnauthorizedError(StatusError):
    """The caller is neither the front proxy of this cluster nor a user with a valid token."""

    code, reason = 401, "Unauthorized"


class ForbiddenError(StatusError):
    """The user of the token may not read the metric."""

    code, reason = 403, "Forbidden"


class NotFoundError(StatusError):
    """The path does not exist, or no variant matches the selector."""

    code, reason = 404, "NotFound"


class MethodNotAllowedError(StatusError):
    """Resources of this API cannot be written or watched."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptableError(StatusError):
    """The caller does not accept JSON."""

    code, reason = 406, "NotAcceptable"


class TooManyRequestsError(StatusError):
    """Too many requests wait for reviews of their tokens."""

    code, reason = 429, "TooManyRequests"


class InternalServerError(StatusError):
    """An unexpected failure; details are in the log."""

    code, reason = 500, "InternalError"


class ServiceUnavailableError(StatusError):
    """The variant exists, but no current number is known. The HPA then changes nothing."""

    code, reason = 503, "ServiceUnavailable"
