"""What a user must be allowed to do: Stowplan must not resize other people's workloads for them.

Stowplan's controller and the HorizontalPodAutoscaler resize whatever an object names, with their own
permissions. So a new or changed target must be of an allowed kind, and the user who names it must be allowed
to scale it directly. The same holds for service classes and costs where tenants do not trust each other;
these the controller checks again for every plan, including classes that an object gets by its model alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.privileges import GROUP, OWN_COST, USE, Privilege, class_privilege
from apiserver.kinds.scalable import GroupKind, Scalable, listing_error
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import judge
from webhooks.admission import Subject, changes_writer, user_of
from webhooks.permissions import AccessRequest, Authorizer, PermissionCheck, UndecidedError
from webhooks.review import AdmissionRequest

_MOST_TARGETS: Final = 256
"""The most targets of one object that are checked. A valid object does not name more, and one that does is
rejected for that, without these checks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingAdmission:
    """The kinds that may be scaled, by group and kind. Without an authorizer, every user may name them."""

    resources: Mapping[GroupKind, Scalable]
    authorizer: Authorizer | None

    def errors(self, claims: Sequence[Reference]) -> list[FieldError]:
        """Return the errors of targets that are of no listed kind."""
        return [error for claim in claims if (error := listing_error(claim, self.resources))]

    def required_permissions(
        self, claims: Sequence[Reference], *, user: Json, namespace: str
    ) -> list[PermissionCheck]:
        """Return the permissions that a request with new targets needs. Raises UndecidedError."""
        listed = [claim for claim in claims if (claim.group, claim.kind) in self.resources and claim.name]
        if self.authorizer is None or not listed:
            return []
        if len(listed) > _MOST_TARGETS:
            raise UndecidedError(f"more than {_MOST_TARGETS} targets at once")
        requests = [(claim, self._request(claim, user=user, namespace=namespace)) for claim in listed]
        return [
            PermissionCheck(
                self.authorizer, [(request, _forbidden(claim, request)) for claim, request in requests]
            )
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


_COST: Final = FieldPath().child("spec", "variantCost")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenancy:
    """Where privileges are checked. Without an authorizer, every user has all of them."""

    authorizer: Authorizer | None = None
    namespace: str = ""

    def required_privileges(self, subject: Subject, request: AdmissionRequest) -> list[PermissionCheck]:
        """Return the privileges that the writer of an object needs, each with an error."""
        if self.authorizer is None or not changes_writer(subject):
            return []
        user = user_of(request)
        requests = [
            (self._request(privilege, user), self._error(privilege, path, user))
            for privilege, path in _privileges(subject)
        ]
        return [PermissionCheck(self.authorizer, requests)] if requests else []

    def _request(self, privilege: Privilege, user: Json) -> AccessRequest:
        return AccessRequest(
            user=user,
            verb=USE,
            namespace=self.namespace,
            group=GROUP,
            resource=privilege.resource,
            name=privilege.name,
        )

    def _error(self, privilege: Privilege, path: FieldPath, user: Json) -> FieldError:
        who = user.get("username", "")
        return errors.forbidden(
            path, f'User "{who}" cannot use {privilege} in the namespace "{self.namespace}": omit it'
        )


OPEN: Final = Tenancy()
"""No checks: every user has all privileges."""


def _privileges(subject: Subject) -> Iterator[tuple[Privilege, FieldPath]]:
    """Yield the privileges that the object needs as it will be stored, with the fields that need them."""
    stored = next((form for form in subject.forms if form.version.is_storage), subject)
    fitting = judge(stored.version.declaration).typed_part(stored.value)
    for reference in stored.version.references(fitting):
        if reference.is_settings:
            yield class_privilege(reference.name, reference.key), reference.path
    # A cost that equals the default was filled in, not chosen.
    if fitting.get("spec", {}).get("variantCost", DEFAULT_COST) != DEFAULT_COST:
        yield OWN_COST, _COST
