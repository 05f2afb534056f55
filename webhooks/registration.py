"""Webhook configurations for the API server, derived from the kinds that are served."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.authorship import telling_annotations
from apiserver.kinds.conversion import telling_label
from apiserver.kinds.registry import Family
from apiserver.kinds.settings_names import NamesConfig
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
    listed, so that an outage of the webhook blocks no other kind, and of updates only those that are judged:
    finalizers can always be removed, so that objects can be deleted. The controller injects the caBundle.

    Mutating also gets updates that change nothing but annotations, to warn about those that have no effect:
    `kubectl annotate` is their usual way, and must not depend on the webhooks.
    """
    guard = "Ignore" if family.is_foreign else "Fail"
    judged = _is_judged(family)
    annotations = "object.metadata.?annotations != oldObject.metadata.?annotations"
    mutate = _webhook(
        "mutate",
        family,
        failure_policy="Ignore",
        timeout_seconds=_MUTATE_SECONDS,
        condition=f"{judged} || {annotations}",
    )
    validate = _webhook(
        "validate", family, failure_policy=guard, timeout_seconds=_VALIDATE_SECONDS, condition=judged
    )
    others = [] if family.is_foreign else [_settings_webhook()]
    return [
        _configuration("MutatingWebhookConfiguration", family, mutate | {"reinvocationPolicy": "IfNeeded"}),
        _configuration("ValidatingWebhookConfiguration", family, validate, *others),
    ]


def _settings_webhook() -> Json:
    """Return the webhook for the ConfigMaps of settings.

    It fails open: an outage must not hinder administrators, and the controller keeps the last valid settings.
    It selects by namespace and name, so that no other ConfigMap depends on it.
    """
    names = NamesConfig()
    listed = ", ".join(f"'{name}'" for name in (names.unit_costs, names.service_classes))
    return {
        "name": "settings.stowplan.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": dict(_SERVICE) | {"path": "/validate-settings"}},
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _MUTATE_SECONDS,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": _SERVICE["namespace"]}},
        "matchConditions": [{"name": "is-settings", "expression": f"object.metadata.name in [{listed}]"}],
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"],
                "scope": "Namespaced",
            }
        ],
    }


def _configuration(kind: str, family: Family, *webhooks: Json) -> Json:
    labels = {
        "app.kubernetes.io/name": "stowplan",
        "app.kubernetes.io/component": "webhooks",
        "app.kubernetes.io/part-of": "stowplan",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": family.configuration_name, "labels": labels},
        "webhooks": list(webhooks),
    }


def _webhook(verb: str, family: Family, *, failure_policy: str, timeout_seconds: int, condition: str) -> Json:
    return {
        "name": f"{verb}.{family.webhook_domain}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": dict(_SERVICE) | {"path": f"/{verb}"}},
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": timeout_seconds,
        "matchConditions": [{"name": "is-judged", "expression": condition}],
        "rules": [_rule(kind) for kind in family.kinds],
    }


def _is_judged(family: Family) -> str:
    """Return the CEL expression for requests that are judged, as `webhooks.admission.subject_of` decides.

    It includes all updates that are, and of those that are not judged only rare ones.
    """
    labels = {telling_label(kind) for kind in family.kinds} - {""}
    annotations = {name for kind in family.kinds for name in telling_annotations(kind)}
    members = [
        "?spec",
        "metadata.?ownerReferences",
        *(f"metadata.?labels[?'{name}']" for name in sorted(labels)),
        *(f"metadata.?annotations[?'{name}']" for name in sorted(annotations)),
    ]
    return " || ".join(["oldObject == null", *(f"object.{name} != oldObject.{name}" for name in members)])


def _rule(kind: Kind) -> Json:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [version.name for version in kind.versions],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
        "scope": "Namespaced",
    }
