"""The permissions that the user needs, checked before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.findings import Finding, ok, problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Permission:
    """A verb on a resource, in all namespaces unless one is set."""

    group: str
    resource: str
    verb: str
    subresource: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        below = f"/{self.subresource}" if self.subresource else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{below}" + (f".{self.group}" if self.group else "") + where

    def as_review(self) -> Json:
        """Return the SelfSubjectAccessReview for the permission."""
        attributes = {
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "verb": self.verb,
            "namespace": self.namespace,
        }
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
        }


PERMISSIONS: Final = "permissions"
"""The name of the check for permissions; if it fails, nothing else is checked."""

_DEFINITIONS: Final = "customresourcedefinitions"
_EXTENSIONS: Final = "apiextensions.k8s.io"


def needed_permissions(kind: Kind, namespace: str) -> tuple[Permission, ...]:
    """Return the permissions that both subcommands need."""
    on_definitions = [
        Permission(group=_EXTENSIONS, resource=_DEFINITIONS, verb=verb)
        for verb in ("get", "create", "update")
    ]
    on_objects = [
        Permission(group=kind.group, resource=kind.plural, verb=verb)
        for verb in ("list", "get", "create", "update")
    ]
    return (
        *on_definitions,
        Permission(group=_EXTENSIONS, resource=_DEFINITIONS, subresource="status", verb="update"),
        *on_objects,
        Permission(group=kind.group, resource=kind.plural, subresource="status", verb="update"),
        Permission(group=kind.group, resource=kind.plural, subresource="status", verb="patch"),
        Permission(
            group="admissionregistration.k8s.io", resource="validatingwebhookconfigurations", verb="get"
        ),
        Permission(group="", resource="services", verb="get", namespace=namespace),
    )


def check_permissions(denied: Sequence[str]) -> Iterator[Finding]:
    """Yield whether any needed permission is denied."""
    if denied:
        yield problem(
            PERMISSIONS,
            f"you are not allowed to {', '.join(denied)}",
            "run this command as a user with these permissions, such as cluster-admin",
        )
    else:
        yield ok(PERMISSIONS, "you have all required permissions")
