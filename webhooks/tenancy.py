"""Permission checks for service classes and costs, made when a user becomes the writer of an object.

The controller checks again for every plan, including classes that an object gets by its model alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.privileges import GROUP, OWN_COST, USE, Privilege, class_privilege
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import judge
from webhooks.admission import Subject
from webhooks.authorship import changes_writer, user_of
from webhooks.permissions import AccessRequest, Asked, Authorizer
from webhooks.review import AdmissionRequest

_COST: Final = FieldPath().child("spec", "variantCost")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenancy:
    """Where privileges are checked. Without an authorizer, every user has all of them."""

    authorizer: Authorizer | None = None
    namespace: str = ""

    def required_privileges(self, subject: Subject, request: AdmissionRequest) -> list[Asked]:
        """Return the privileges that the writer of an object needs, each with an error."""
        if self.authorizer is None or not changes_writer(subject):
            return []
        user = user_of(request)
        requests = [
            (self._request(privilege, user), self._error(privilege, path, user))
            for privilege, path in _privileges(subject)
        ]
        return [Asked(self.authorizer, requests)] if requests else []

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
    fitting = judge(stored.version.declaration).fitting(stored.value)
    for named in stored.version.references(fitting):
        if named.is_settings:
            yield class_privilege(named.name, named.key), named.path
    # A cost that equals the default was filled in, not chosen.
    if fitting.get("spec", {}).get("variantCost", DEFAULT_COST) != DEFAULT_COST:
        yield OWN_COST, _COST
