"""Permission checks on behalf of the user who sent an admission request, by SubjectAccessReviews.

Granted permissions are cached for a few seconds: for the second webhook of the same admission request.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.errors import ClusterError
from apiserver.cluster.resource import SUBJECT_ACCESS_REVIEWS
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster


_PATIENCE_SECONDS: Final = 2.0
"""Timeout in seconds for all permission checks of one request."""

_AT_ONCE_OF_REQUEST: Final = 4
"""The number of concurrent checks of one request, so that a large one leaves room for others."""

_MANY: Final = 16
"""The number of objects of a resource above which permission for all objects is checked first."""

_Resource: TypeAlias = tuple[str, str, str, str, str]


class UndecidedError(Exception):
    """The permission check failed or timed out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessRequest:
    """An action of a user on one object. `user` is `userInfo` of the admission request.

    Without a name, it is the action on every object.
    """

    user: Json
    verb: str
    namespace: str
    group: str
    resource: str
    name: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class PermissionCheck:
    """Requests for permissions, each with the error if it is denied."""

    authorizer: Authorizer
    requests: Sequence[tuple[AccessRequest, FieldError]]


async def denials(check: PermissionCheck) -> list[FieldError]:
    """Return the errors of the requests that are denied, in order. Raises UndecidedError.

    If many objects of a resource are asked for, permission for all objects is checked first: most roles name
    no objects, so one check answers hundreds.
    """
    authorizer = check.authorizer
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for_all = await _allowed_for_all(authorizer, [request for request, _ in check.requests])
            rest = [
                (request, error) for request, error in check.requests if _resource(request) not in for_all
            ]
            answers = await _answers(authorizer, [request for request, _ in rest])
    except TimeoutError as error:
        raise UndecidedError("the API server did not check permissions in time") from error
    return [error for (_, error), is_allowed in zip(rest, answers, strict=True) if not is_allowed]


async def _allowed_for_all(
    authorizer: Authorizer, requests: Sequence[AccessRequest]
) -> Collection[_Resource]:
    """Return the resources of which the user may access every object, among those with many requests."""
    times = Counter(map(_resource, requests))
    wide = {
        _resource(request): replace(request, name="")
        for request in requests
        if times[_resource(request)] > _MANY
    }
    answers = await _answers(authorizer, [*wide.values()])
    return {resource for resource, is_allowed in zip(wide, answers, strict=True) if is_allowed}


async def _answers(authorizer: Authorizer, requests: Sequence[AccessRequest]) -> Sequence[bool]:
    """Return whether each request is allowed. The first that is undecided cancels the others."""
    places = asyncio.Semaphore(_AT_ONCE_OF_REQUEST)

    async def answer(request: AccessRequest) -> bool:
        async with places:
            return await authorizer.may(request)

    tasks = [asyncio.ensure_future(answer(request)) for request in requests]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _resource(request: AccessRequest) -> _Resource:
    return request.verb, request.namespace, request.group, request.resource, request.subresource


_REMEMBERED_SECONDS: Final = 5.0
_MOST_REMEMBERED: Final = 1024
_CONNECT_SECONDS: Final = 1.5
"""Timeout in seconds for the first connection; less than the time for all checks of a request."""

_AT_ONCE_OF_PROCESS: Final = 16
"""The number of concurrent checks of the process: anyone who reaches the port may send reviews with hundreds
of targets, and the API server serves other requests of the same account, too."""


class Authorizer:
    """Decides whether a user has a permission; checks wait for a connection until `use` is called."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._connected = asyncio.Event()
        self._allowed: OrderedDict[bytes, float] = OrderedDict()
        self._places = asyncio.Semaphore(_AT_ONCE_OF_PROCESS)

    def use(self, cluster: Cluster) -> None:
        """Send reviews to this cluster from now on."""
        self._cluster = cluster
        self._connected.set()

    async def may(self, request: AccessRequest) -> bool:
        """Tell whether the user has the permission. Raises UndecidedError.

        Only a granted permission is cached: a user who was denied may obtain a role and try again.
        """
        review = access_review(
            request.user,
            verb=request.verb,
            namespace=request.namespace,
            group=request.group,
            resource=request.resource,
            subresource=request.subresource,
            name=request.name,
        )
        key = hashlib.blake2b(msgspec.json.encode(review, order="sorted"), digest_size=16).digest()
        if monotonic() - self._allowed.get(key, -_REMEMBERED_SECONDS) < _REMEMBERED_SECONDS:
            return True
        if not await self._ask(review):
            return False
        self._allowed[key] = monotonic()
        self._allowed.move_to_end(key)
        while len(self._allowed) > _MOST_REMEMBERED:
            self._allowed.popitem(last=False)
        return True

    async def _ask(self, review: Json) -> bool:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._connected.wait()
        except TimeoutError as error:
            raise UndecidedError("there is no connection to the API server") from error
        assert self._cluster is not None
        try:
            async with self._places:
                return is_allowed(await self._cluster.create(SUBJECT_ACCESS_REVIEWS, review))
        except ClusterError as error:
            raise UndecidedError(f"the API server could not check permissions: {error}") from error
