"""Permission checks on behalf of the user who sent an admission request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json

PATIENCE_SECONDS: Final = 2.0
"""Timeout in seconds for all permission checks of one request."""

_AT_ONCE: Final = 8


class UndecidedError(Exception):
    """The permission check failed or timed out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessRequest:
    """An action of a user on one object. `user` is `userInfo` of the admission request."""

    user: Json
    verb: str
    namespace: str
    group: str
    resource: str
    name: str
    subresource: str = ""


class Authorizer(Protocol):
    """Decides whether a user has a permission."""

    async def may(self, request: AccessRequest) -> bool:
        """Tell whether the user has the permission. Raises UndecidedError."""


async def refused(
    authorizer: Authorizer,
    asked: Sequence[tuple[AccessRequest, FieldError]],
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> list[FieldError]:
    """Return the errors paired with the requests that are denied, in order. Raises UndecidedError."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def ask(request: AccessRequest) -> bool:
        async with places:
            return await authorizer.may(request)

    try:
        async with asyncio.timeout(patience_seconds):
            answers = await asyncio.gather(*(ask(request) for request, _ in asked))
    except TimeoutError as error:
        raise UndecidedError("the API server did not check permissions in time") from error
    return [error for (_, error), is_allowed in zip(asked, answers, strict=True) if not is_allowed]
