"""Webhook configurations for the API server, derived from the kinds that are served."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.families import Family
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind

_SERVICE: Final = {"namespace": "stowplan-system", "name": "stowplan-webhooks", "port": 9443}
_MUTATE_SECONDS: Final = 3
_VALIDATE_SECONDS: Final = 5


def registrations(family: Family) -> list[Json]:
    """Return the mutating and the validating webhook configuration of a family of kinds.

    Mutating fails open, since the CRD schema and every reader apply the same defaults. Validating fails
    closed for the kinds that Stowplan acts on, since a wrong spec costs accelerators. It fails open for kinds
    of other projects, whose users must not be blocked when Stowplan is down. Only the family's groups are
    listed, so that an outage of the webhook blocks no other kind. The controller injects the caBundle.
    """
    guard = "Ignore" if family.is_foreign else "Fail"
    mutate = _webhook("mutate", family, failure_policy="Ignore", timeout_seconds=_MUTATE_SECONDS)
    validate = _webhook("validate", family, failure_policy=guard, timeout_seconds=_VALIDATE_SECONDS)
    return [
        _configuration("MutatingWebhookConfiguration", family, mutate | {"reinvocationPolicy": "IfNeeded"}),
        _configuration("ValidatingWebhookConfiguration", family, validate),
    ]


def _configuration(kind: str, family: Family, webhook: Json) -> Json:
    labels = {
        "app.kubernetes.io/name": "stowplan",
        "app.kubernetes.io/component": "webhooks",
        "app.kubernetes.io/part-of": "stowplan",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": family.configuration_name, "labels": labels},
        "webhooks": [webhook],
    }


def _webhook(verb: str, family: Family, *, failure_policy: str, timeout_seconds: int) -> Json:
    return {
        "name": f"{verb}.{family.webhook_domain}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": dict(_SERVICE) | {"path": f"/{verb}"}},
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": timeout_seconds,
        "rules": [_rule(kind) for kind in family.kinds],
    }


def _rule(kind: Kind) -> Json:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [version.name for version in kind.versions],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
        "scope": "Namespaced",
    }
