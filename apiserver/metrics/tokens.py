"""Bearer tokens: clients that call the metrics API directly, such as the `metrics-api` trigger of KEDA.

kube-apiserver is asked whose token it is (TokenReview), and whether this user may read the metric
(SubjectAccessReview): with the permissions that it would need through the aggregation layer.
Source: `k8s.io/apiserver/pkg/authentication/request/bearertoken`, and `.../server/options/authorization.go`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden
from apiserver.cluster.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from apiserver.log import EventLogger
from apiserver.metrics.status import ForbiddenError, ServiceUnavailableError, UnauthorizedError
from apiserver.schema.json import Json, as_object

LIFETIME_SECONDS: Final = 10.0
"""How long the answer to a review is used: as long as in the API servers of Kubernetes."""

MOST_BYTES: Final = 1 << 15
"""Maximum length of a token."""

_LOG: Final = EventLogger(__name__)
_GROUP: Final = "external.metrics.k8s.io"
_MOST_KNOWN: Final = 4096
_AT_ONCE: Final = 8
_CALL_SECONDS: Final = 5.0
_SCHEME: Final = "bearer"


def bearer_token(authorization: str) -> str | None:
    """Return the token of an `Authorization` header; None for another scheme, or without one."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None


@dataclass(frozen=True, slots=True)
class _Review:
    time_seconds: float
    answer: asyncio.Task[Json]


class TokenReviewer:
    """Admits users by their tokens. Answers are shared by concurrent requests, and used for a short time."""

    def __init__(self, cluster: Cluster, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Create the reviewer; `seconds` is a monotonic clock."""
        self._cluster = cluster
        self._seconds = seconds
        self._known: dict[tuple[bytes, str, str], _Review] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._problem = ""

    async def authenticate(self, token: str) -> Json:
        """Return the user of a token, in the form of `userInfo` in an admission request.

        Raises UnauthorizedError for an invalid token, and ServiceUnavailableError without an answer.
        """
        if len(token) > MOST_BYTES:
            raise UnauthorizedError(f"the token is longer than {MOST_BYTES} characters")
        review = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        status = as_object(
            (
                await self._shared(
                    (_digest(token), "", ""),
                    lambda: self._cluster.create(TOKEN_REVIEWS, review, timeout_seconds=_CALL_SECONDS),
                )
            ).get("status")
        )
        if status.get("authenticated") is not True:
            raise UnauthorizedError("the token is not valid in this cluster: it may have expired")
        return as_object(status.get("user"))

    async def authorize(self, token: str, *, namespace: str, metric_name: str) -> None:
        """Raise ForbiddenError unless the user of a token may read a metric in a namespace.

        Raises UnauthorizedError and ServiceUnavailableError like `authenticate`.
        """
        user = await self.authenticate(token)
        review = access_review(
            user, verb="get", namespace=namespace, group=_GROUP, resource=metric_name, name=""
        )
        answer = await self._shared(
            (_digest(token), namespace, metric_name),
            lambda: self._cluster.create(SUBJECT_ACCESS_REVIEWS, review, timeout_seconds=_CALL_SECONDS),
        )
        if not is_allowed(answer):
            raise ForbiddenError(
                f"user {user.get('username')!r} must not get {metric_name}.{_GROUP} in namespace"
                f" {namespace!r}: grant the verb get on this resource"
            )

    async def _shared(self, key: tuple[bytes, str, str], ask: Callable[[], Awaitable[Json]]) -> Json:
        known = self._known.get(key)
        if known is None or self._seconds() - known.time_seconds >= LIFETIME_SECONDS:
            self._known.pop(key, None)  # so that the new entry becomes the last one
            task = asyncio.create_task(self._limited(ask))
            # Its clients may all have left when it fails.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            known = self._known[key] = _Review(self._seconds(), task)
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        try:
            # A client that leaves must not cancel the review for the others.
            answer = await asyncio.shield(known.answer)
        except ClusterError as error:
            self._known.pop(key, None)
            self._log_change(error.message)
            right = " (its ClusterRole lacks the right)" if isinstance(error, Forbidden) else ""
            raise ServiceUnavailableError(
                f"the API server does not review tokens for Stowplan{right}: {error.message}"
            ) from error
        self._log_change("")
        return answer

    def _log_change(self, problem: str) -> None:
        """Log why reviews fail, or that they succeed again, once for many requests."""
        if problem and problem != self._problem:
            _LOG.warning("token not reviewed", error=problem)
        elif self._problem and not problem:
            _LOG.info("tokens are reviewed again")
        self._problem = problem

    async def _limited(self, ask: Callable[[], Awaitable[Json]]) -> Json:
        async with self._gate:
            return await ask()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
