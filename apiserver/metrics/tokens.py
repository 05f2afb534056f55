"""Bearer tokens: clients that call the metrics API directly, such as the `metrics-api` trigger of KEDA.

kube-apiserver is asked whose token it is (TokenReview), and whether this user may read the metric
(SubjectAccessReview): with the permissions that it would need through the aggregation layer.
Source: `k8s.io/apiserver/pkg/authentication/request/bearertoken`, and `.../server/options/authorization.go`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden
from apiserver.cluster.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from apiserver.log import EventLogger
from apiserver.metrics.routes import GROUP
from apiserver.metrics.status import (
    ForbiddenError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from apiserver.schema.json import Json, as_object

LIFETIME_SECONDS: Final = 10.0
"""How long the answer to a review is used: as long as in the API servers of Kubernetes."""

AT_ONCE: Final = 8
"""Reviews of new tokens that run at a time, and of others."""

MOST_NEW: Final = 128
"""Requests with new tokens that wait at a time; more are refused."""

_MOST_WAITING: Final = 1024
"""The same for tokens that were valid before."""

_MOST_KNOWN: Final = 4096
_MOST_VALID: Final = 1024
_CALL_SECONDS: Final = 5.0
_SCHEME: Final = "bearer"
_LOG: Final = EventLogger(__name__)

_Key = tuple[bytes, str, str]
"""Digest of a token, and namespace and name of the metric; both are empty for the review of the token."""


def bearer_token(authorization: str) -> str | None:
    """Return the token of an `Authorization` header; None for another scheme, or without one."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None


@dataclass(frozen=True, slots=True)
class _TokenReview:
    time_seconds: float
    answer: asyncio.Task[Json]


class _Queue:
    """Limits the reviews of some tokens, and the requests that wait for them."""

    def __init__(self, most_waiting: int) -> None:
        self.gate = asyncio.Semaphore(AT_ONCE)
        self.reviews = 0
        self._requests = 0
        self._most_waiting = most_waiting

    def __enter__(self) -> None:
        """Count a request. Raises TooManyRequestsError if too many wait.

        Reviews count, too: those whose clients have left still wait for their turn.
        """
        if max(self._requests, self.reviews) >= self._most_waiting:
            raise TooManyRequestsError("too many tokens are being reviewed: try again")
        self._requests += 1

    def __exit__(self, *_: object) -> None:
        self._requests -= 1


class TokenReviewer:
    """Admits users by their tokens. Answers are shared by concurrent requests, and used for a short time.

    Tokens that were valid before have a queue of their own: whoever sends invented tokens takes neither their
    turn nor their answers, and little memory.
    """

    def __init__(self, cluster: Cluster, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Create the reviewer; `seconds` is a monotonic clock."""
        self._cluster = cluster
        self._seconds = seconds
        self._known: dict[_Key, _TokenReview] = {}
        self._valid: dict[bytes, None] = {}
        """Digests of tokens that were valid, in the order of their last review."""

        self._new_queue, self._queue = _Queue(MOST_NEW), _Queue(_MOST_WAITING)
        self._problems: dict[str, str] = {}

    async def authenticate(self, token: str) -> Json:
        """Return the user of a token, in the form of `userInfo` in an admission request.

        Raises UnauthorizedError for an invalid token, ServiceUnavailableError without an answer, and
        TooManyRequestsError if too many requests wait for one.
        """
        digest = _digest(token)
        review = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        answer = await self._answer((digest, "", ""), TOKEN_REVIEWS, review)
        status = as_object(answer.get("status"))
        if status.get("authenticated") is not True:
            # Answers about invented tokens would evict the others.
            self._known.pop((digest, "", ""), None)
            self._valid.pop(digest, None)
            raise UnauthorizedError("the token is not valid in this cluster: it may have expired")
        self._valid.pop(digest, None)
        self._valid[digest] = None
        if len(self._valid) > _MOST_VALID:
            del self._valid[next(iter(self._valid))]
        return as_object(status.get("user"))

    async def authorize(self, token: str, *, namespace: str, metric_name: str) -> None:
        """Raise ForbiddenError unless the user of a token may read a metric in a namespace.

        Raises the errors of `authenticate`, too.
        """
        user = await self.authenticate(token)
        review = access_review(
            user, verb="get", namespace=namespace, group=GROUP, resource=metric_name, name=""
        )
        key = (_digest(token), namespace, metric_name)
        answer = await self._answer(key, SUBJECT_ACCESS_REVIEWS, review)
        if not is_allowed(answer):
            raise ForbiddenError(
                f"user {user.get('username')!r} must not get {metric_name}.{GROUP} in namespace"
                f" {namespace!r}: grant the verb get on this resource"
            )

    async def _answer(self, key: _Key, resource: Resource, review: Json) -> Json:
        known = self._known.get(key)
        is_fresh = known is not None and self._seconds() - known.time_seconds < LIFETIME_SECONDS
        if known is not None and is_fresh and known.answer.done():
            return known.answer.result()
        queue = self._queue if key[0] in self._valid else self._new_queue
        with queue:
            if known is None or not is_fresh:
                self._known.pop(key, None)  # so that the new entry becomes the last one
                task = asyncio.create_task(self._review(queue, key, resource, review))
                # Its clients may all have left when it fails.
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
                known = self._known[key] = _TokenReview(self._seconds(), task)
                if len(self._known) > _MOST_KNOWN:
                    del self._known[next(iter(self._known))]
            try:
                # A client that leaves must not cancel the review for the others.
                return await asyncio.shield(known.answer)
            except ClusterError as error:
                right = " (its ClusterRole lacks the right)" if isinstance(error, Forbidden) else ""
                raise ServiceUnavailableError(
                    f"the API server does not review tokens for Stowplan{right}: {error.message}"
                ) from error

    async def _review(self, queue: _Queue, key: _Key, resource: Resource, review: Json) -> Json:
        queue.reviews += 1
        try:
            async with queue.gate:
                answer = await self._cluster.create(resource, review, timeout_seconds=_CALL_SECONDS)
        except ClusterError as error:
            self._known.pop(key, None)
            self._log_change(resource.kind, error.message)
            raise
        finally:
            queue.reviews -= 1
        self._log_change(resource.kind, "")
        return answer

    def _log_change(self, kind: str, problem: str) -> None:
        """Log why reviews of a kind fail, or that they succeed again, once for many of them."""
        before = self._problems.get(kind, "")
        if problem and problem != before:
            _LOG.warning("token not reviewed", kind=kind, error=problem)
        elif before and not problem:
            _LOG.info("tokens are reviewed again", kind=kind)
        self._problems[kind] = problem


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
