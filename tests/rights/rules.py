"""All permissions in the shipped manifests, and permission checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hack.controlplane.client import Client
from hack.installation.manifests import ROOT

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MANIFESTS: Final = ROOT / "manifests"
_PROCESSES: Final = frozenset({"apiserver", "controller", "models", "scheduler", "webhooks"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role."""

    kind: str
    role: str
    rule: dict[str, Any]

    def __str__(self) -> str:
        """Return the name of the rule, such as `stowplan-controller: pods`."""
        names = self.rule.get("resourceNames", [])
        called = [*self.rule["resources"], *([f"({', '.join(names)})"] if names else [])]
        return f"{self.role}: {' '.join(called)}"

    @property
    def process(self) -> str:
        """The process whose account has the role; empty for roles of users."""
        return next((name for name in self.role.split("-") if name in _PROCESSES), "")

    def denial(self, verb: str, resource: str) -> str:
        """Return the API server's message to a user without the permission."""
        return f'cannot {verb} resource "{resource}" in API group "{self.rule["apiGroups"][0]}"'

    @property
    def verbs(self) -> tuple[str, ...]:
        """The allowed verbs."""
        return tuple(self.rule["verbs"])


def shipped_rules() -> list[Rule]:
    """Return the rules of every role in the manifests."""
    return [
        Rule(role["kind"], role["metadata"]["name"], rule)
        for role in _roles()
        for rule in role.get("rules", [])
    ]


def shipped_accounts() -> list[str]:
    """Return the names of every ServiceAccount in the manifests."""
    return sorted(item["metadata"]["name"] for item in _objects() if item["kind"] == "ServiceAccount")


def may(client: Client, user: str, verb: str, what: str) -> bool:
    """Check with the API server whether a user may do something.

    `what` is a resource in the format of `kubectl auth can-i`, such as `pods/exec` or `deployments.apps`,
    with a name after `=` and a namespace after `@`.
    """
    what, _, namespace = what.partition("@")
    what, _, name = what.partition("=")
    resource, _, group = what.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    attributes |= {"name": name, "namespace": namespace}
    _, _, account = user.partition("system:serviceaccount:")
    accounts = (
        ["system:serviceaccounts", f"system:serviceaccounts:{account.split(':')[0]}"] if account else []
    )
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": ["system:authenticated", *accounts],
            "resourceAttributes": attributes,
        },
    }
    return bool(client.value("POST", _REVIEWS, review)["status"]["allowed"])


def _roles() -> Iterator[dict[str, Any]]:
    return (item for item in _objects() if item["kind"] in ("Role", "ClusterRole"))


def _objects() -> Iterator[dict[str, Any]]:
    for path in sorted(_MANIFESTS.rglob("*.yaml")):
        if path.relative_to(_MANIFESTS).parts[0] not in ("samples", "crds"):
            found = yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
            yield from (item for item in found if item and "metadata" in item)
