"""Errors as the Kubernetes API tells them: an exception here is a `metav1.Status` on the wire."""

from __future__ import annotations

from apiserver.schema.json import Json


class StatusError(Exception):
    """An answer other than success; `reason` is the word that Kubernetes has for the HTTP code.

    StatusError
    ├── BadRequestError            400
    ├── UnauthorizedError          401
    ├── NotFoundError              404
    ├── MethodNotAllowedError      405
    ├── NotAcceptableError         406
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
    """The query can't be understood."""

    code, reason = 400, "BadRequest"


class UnauthorizedError(StatusError):
    """The caller is not the front proxy of this cluster."""

    code, reason = 401, "Unauthorized"


class NotFoundError(StatusError):
    """There is nothing at this path, or no variant that the selector matches."""

    code, reason = 404, "NotFound"


class MethodNotAllowedError(StatusError):
    """Nothing here can be written or watched."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptableError(StatusError):
    """The caller does not take JSON."""

    code, reason = 406, "NotAcceptable"


class InternalServerError(StatusError):
    """Something failed that should not have; the log says what."""

    code, reason = 500, "InternalError"


class ServiceUnavailableError(StatusError):
    """The variant exists, but no number about it can be trusted now. HPA then changes nothing."""

    code, reason = 503, "ServiceUnavailable"
