"""How the API server is told of the webhooks: configurations derived from the kinds that are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind

CONFIGURATION_NAME: Final = "stowplan"
"""Name of both webhook configurations."""

_SERVICE: Final = {"namespace": "stowplan-system", "name": "stowplan-webhooks", "port": 9443}
_MUTATE_SECONDS: Final = 3
_VALIDATE_SECONDS: Final = 5


def registrations(kinds: Sequence[Kind]) -> list[Json]:
    """Return the mutating and the validating webhook configuration.

    Mutating fails open, since the CRD schema and every reader carry the same defaults; validating fails
    closed, since a wrong spec costs accelerators. Only our own groups are named, so that a webhook that is
    down can never keep anybody else from anything. The caBundle is the controller's to inject.
    """
    mutate = _webhook("mutate", kinds, failure_policy="Ignore", timeout_seconds=_MUTATE_SECONDS)
    validate = _webhook("validate", kinds, failure_policy="Fail", timeout_seconds=_VALIDATE_SECONDS)
    return [
        _configuration("MutatingWebhookConfiguration", mutate | {"reinvocationPolicy": "IfNeeded"}),
        _configuration("ValidatingWebhookConfiguration", validate),
    ]


def _configuration(kind: str, webhook: Json) -> Json:
    labels = {"app.kubernetes.io/name": "stowplan", "app.kubernetes.io/component": "webhooks"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": CONFIGURATION_NAME, "labels": labels},
        "webhooks": [webhook],
    }


def _webhook(verb: str, kinds: Sequence[Kind], *, failure_policy: str, timeout_seconds: int) -> Json:
    return {
        "name": f"{verb}.stowplan.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": dict(_SERVICE) | {"path": f"/{verb}"}},
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": timeout_seconds,
        "rules": [_rule(kind) for kind in kinds],
    }


def _rule(kind: Kind) -> Json:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [version.name for version in kind.versions],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
        "scope": "Namespaced",
    }
