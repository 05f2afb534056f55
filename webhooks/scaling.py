"""Who may have what scaled: the fence against reaching other people's workloads through our objects.

Our controller and the HorizontalPodAutoscaler change the size of whatever an object names, with their own
permissions. So a new or changed target must be of a kind on a list, and whoever names it must be allowed to
scale it by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from apiserver.kinds.scalable import GroupKind, Scalable, unlisted
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference

_AT_ONCE: Final = 8
_MOST_ASKED: Final = 256


class UndecidedError(Exception):
    """The API server could not be asked, or did not answer in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleRequest:
    """A request to have one object scaled. `user` is `userInfo` of the admission request."""

    user: Json
    namespace: str
    group: str
    resource: str
    subresource: str
    name: str


class Authorizer(Protocol):
    """Whoever knows the permissions."""

    async def may_scale(self, request: ScaleRequest) -> bool:
        """Tell whether the user may change the size of the object. Raises UndecidedError."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """What may be scaled, by group and kind; without an authorizer, by anybody."""

    resources: Mapping[GroupKind, Scalable]
    authorizer: Authorizer | None
    patience_seconds: float = 2.0

    async def errors(self, claims: Sequence[Reference], *, user: Json, namespace: str) -> list[FieldError]:
        """Return what is wrong with the targets that a request newly claims. Raises UndecidedError."""
        wrong = [error for claim in claims if (error := unlisted(claim, self.resources))]
        asked = [claim for claim in claims if (claim.group, claim.kind) in self.resources and claim.name]
        if self.authorizer is None or not asked:
            return wrong
        if len(asked) > _MOST_ASKED:
            raise UndecidedError(f"more than {_MOST_ASKED} targets at once")
        return wrong + await self._refused(self.authorizer, asked, user=user, namespace=namespace)

    async def _refused(
        self, authorizer: Authorizer, claims: Sequence[Reference], *, user: Json, namespace: str
    ) -> list[FieldError]:
        places = asyncio.Semaphore(_AT_ONCE)

        async def ask(claim: Reference) -> FieldError | None:
            request = self._request(claim, user=user, namespace=namespace)
            async with places:
                return None if await authorizer.may_scale(request) else _forbidden(claim, request)

        try:
            async with asyncio.timeout(self.patience_seconds):
                answers = await asyncio.gather(*map(ask, claims))
        except TimeoutError as error:
            raise UndecidedError("the API server did not say in time who may scale what") from error
        return [answer for answer in answers if answer]

    def _request(self, claim: Reference, *, user: Json, namespace: str) -> ScaleRequest:
        scalable = self.resources[claim.group, claim.kind]
        return ScaleRequest(
            user=user,
            namespace=namespace,
            group=claim.group,
            resource=scalable.resource,
            subresource="scale" if scalable.has_scale else "",
            name=claim.name,
        )


def _forbidden(claim: Reference, request: ScaleRequest) -> FieldError:
    resource = f"{request.resource}/{request.subresource}".removesuffix("/")
    what = f"{resource}.{request.group}" if request.group else resource
    who, where = request.user.get("username", ""), request.namespace
    detail = f'User "{who}" cannot update "{what}" of "{claim.name}" in the namespace "{where}"'
    return errors.forbidden(claim.path, detail)
