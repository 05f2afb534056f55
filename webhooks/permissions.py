"""Questions on behalf of whoever sends a request: whether this user may do that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json

PATIENCE_SECONDS: Final = 2.0
"""For all questions about one thing."""

_AT_ONCE: Final = 8


class UndecidedError(Exception):
    """The API server could not be asked, or did not answer in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessRequest:
    """What somebody wants to do to one object. `user` is `userInfo` of the admission request."""

    user: Json
    verb: str
    namespace: str
    group: str
    resource: str
    name: str
    subresource: str = ""


class Authorizer(Protocol):
    """Whoever knows the permissions."""

    async def may(self, request: AccessRequest) -> bool:
        """Tell whether the user may do it. Raises UndecidedError."""


async def refused(
    authorizer: Authorizer,
    asked: Sequence[tuple[AccessRequest, FieldError]],
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> list[FieldError]:
    """Return the errors that stand beside what is not allowed, in order. Raises UndecidedError."""
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
