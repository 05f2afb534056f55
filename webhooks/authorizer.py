"""Authorization checks by SubjectAccessReview, cached for a few seconds.

The cache serves the second webhook of the same admission request.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.errors import ClusterError
from apiserver.cluster.resource import SUBJECT_ACCESS_REVIEWS
from webhooks.permissions import AccessRequest, UndecidedError

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster
    from apiserver.schema.json import Json

_REMEMBERED_SECONDS: Final = 5.0
_MOST_REMEMBERED: Final = 1024
_CONNECT_SECONDS: Final = 1.5
"""Timeout in seconds for the first connection; less than the time for all checks of a request."""

_AT_ONCE: Final = 16
"""The number of concurrent checks of the process: anyone who reaches the port may send reviews with hundreds
of targets, and the API server serves other requests of the same account, too."""


class ClusterAuthorizer:
    """Implements `webhooks.permissions.Authorizer`; checks wait for a connection until `use` is called."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._connected = asyncio.Event()
        self._allowed: OrderedDict[bytes, float] = OrderedDict()
        self._places = asyncio.Semaphore(_AT_ONCE)

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
