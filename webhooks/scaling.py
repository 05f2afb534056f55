"""Checks that prevent users from resizing other people's workloads through Stowplan's objects.

Stowplan's controller and the HorizontalPodAutoscaler resize whatever an object names, with their own
permissions. So a new or changed target must be of an allowed kind, and the user who names it must be allowed
to scale it directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.scalable import GroupKind, Scalable, listing_error
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from webhooks.permissions import AccessRequest, Asked, Authorizer, UndecidedError

_MOST_ASKED: Final = 256
"""The most targets of one object that are checked. A valid object does not name more, and one that does is
rejected for that, without these checks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """The kinds that may be scaled, by group and kind. Without an authorizer, every user may name them."""

    resources: Mapping[GroupKind, Scalable]
    authorizer: Authorizer | None

    def errors(self, claims: Sequence[Reference]) -> list[FieldError]:
        """Return the errors of targets that are of no listed kind."""
        return [error for claim in claims if (error := listing_error(claim, self.resources))]

    def required_permissions(self, claims: Sequence[Reference], *, user: Json, namespace: str) -> list[Asked]:
        """Return the permissions that a request with new targets needs. Raises UndecidedError."""
        listed = [claim for claim in claims if (claim.group, claim.kind) in self.resources and claim.name]
        if self.authorizer is None or not listed:
            return []
        if len(listed) > _MOST_ASKED:
            raise UndecidedError(f"more than {_MOST_ASKED} targets at once")
        requests = [(claim, self._request(claim, user=user, namespace=namespace)) for claim in listed]
        return [
            Asked(self.authorizer, [(request, _forbidden(claim, request)) for claim, request in requests])
        ]

    def _request(self, claim: Reference, *, user: Json, namespace: str) -> AccessRequest:
        scalable = self.resources[claim.group, claim.kind]
        return AccessRequest(
            user=user,
            verb="update",
            namespace=namespace,
            group=claim.group,
            resource=scalable.resource,
            subresource="scale" if scalable.has_scale else "",
            name=claim.name,
        )


def _forbidden(claim: Reference, request: AccessRequest) -> FieldError:
    resource = f"{request.resource}/{request.subresource}".removesuffix("/")
    what = f"{resource}.{request.group}" if request.group else resource
    who, where = request.user.get("username", ""), request.namespace
    detail = f'User "{who}" cannot update "{what}" of "{claim.name}" in the namespace "{where}"'
    return errors.forbidden(claim.path, detail)
