"""Checks that the API server can reach and trust the conversion webhook."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from apiserver.schema.json import Json
from apiserver.schema.structural import CONVERSION_SERVICE
from apiserver.serving.authority import covers, expiry_of, is_issued_by
from controller.commands.upgrade.counting import count_text
from controller.commands.upgrade.findings import Finding, note, ok, problem
from controller.commands.upgrade.snapshot import Snapshot, Webhook

SERVING_SECRET: Final = "stowplan-webhooks-certificate"  # noqa: S105 (a name, not a secret)
CONFIGURATION: Final = "stowplan"
"""The name of our webhook configurations."""

_INSTALL: Final = "kubectl apply --server-side --field-manager=stowplan -k manifests/overlays/without-crds"


def check_webhook(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield whether the conversion Service has endpoints, and whether our webhooks are reached."""
    webhook = snapshot.webhook
    place = f"{webhook.namespace}/{CONVERSION_SERVICE['name']}"
    why = f"kubectl --namespace {webhook.namespace} describe pods shows the cause"
    if webhook.service is None:
        yield problem("webhook", f"there is no Service {place}", f"install Stowplan first: {_INSTALL}")
    elif webhook.service["spec"].get("type") == "ExternalName":
        yield note("webhook", f"Service {place} points to {webhook.service['spec']['externalName']}")
    elif webhook.ready_pods is None:
        yield note(
            "webhook",
            f"you are not allowed to list EndpointSlices in {webhook.namespace}, so the pods behind the"
            f" Service {place} were not counted",
            "the first read through conversion will show whether one responds",
        )
    elif not webhook.ready_pods:
        yield problem("webhook", f"the Service {place} has no ready pod", why)
    else:
        yield ok("webhook", f"the Service {place} has {count_text(webhook.ready_pods, 'ready pod')}")
    if webhook.refusal:
        yield problem(
            "webhook",
            f"a dry run of a write did not pass our webhooks: {webhook.refusal}",
            f"{why}; the API server must be able to call them",
        )


def ready_pods(slices: Iterable[Json]) -> int:
    """Return the number of ready pods in the EndpointSlices of the conversion Service.

    The Service publishes all pods, so their condition `ready` says nothing. An absent condition counts as
    true, and a pod with two addresses once. Source: `EndpointConditions` of discovery.k8s.io/v1.
    """
    endpoints = [endpoint for item in slices for endpoint in item.get("endpoints") or []]
    ready = [endpoint for endpoint in endpoints if _is_serving(endpoint.get("conditions") or {})]
    names = ((endpoint.get("targetRef") or {}).get("name") or endpoint["addresses"][0] for endpoint in ready)
    return len(set(names))


def _is_serving(conditions: Json) -> bool:
    return conditions.get("serving") is not False and not conditions.get("terminating")


def check_certificates(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield whether the API server will trust the serving certificate by its caBundle."""
    found = _certificate_problem(snapshot.webhook, snapshot.now)
    if not snapshot.webhook.is_configured:
        yield problem(
            "certificates",
            f"there is no webhook configuration {CONFIGURATION!r}",
            f"install Stowplan first: {_INSTALL}",
        )
    elif found:
        yield problem(
            "certificates",
            found,
            "the controller issues certificates and injects the caBundle: check its log",
        )
    elif snapshot.webhook.is_certificate_hidden:
        yield note(
            "certificates",
            f"you are not allowed to read Secret {SERVING_SECRET}, so its certificate was not compared"
            " with the caBundle",
            "the first read through conversion will show whether they match",
        )
    else:
        yield ok("certificates", "the caBundle matches the serving certificate")


def _certificate_problem(webhook: Webhook, now: datetime) -> str:
    if not webhook.trusted:
        return f"the webhook configuration {CONFIGURATION!r} has no caBundle"
    if webhook.is_certificate_hidden:
        return ""
    if webhook.certificate is None:
        return f"there is no certificate in the Secret {webhook.namespace}/{SERVING_SECRET}"
    return _serving_problem(webhook.certificate, webhook, now)


def _serving_problem(certificate: bytes, webhook: Webhook, now: datetime) -> str:
    name = f"{CONVERSION_SERVICE['name']}.{webhook.namespace}.svc"
    if not covers(certificate, (name,)):
        return f"the certificate in {SERVING_SECRET} is not for {name}"
    if expiry_of(certificate) <= now:
        return f"the certificate in {SERVING_SECRET} has expired"
    if not _is_trusted(certificate, webhook.trusted):
        return f"the caBundle does not match the certificate in {SERVING_SECRET}"
    return ""


def _is_trusted(certificate: bytes, trusted: str) -> bool:
    try:
        authorities = x509.load_pem_x509_certificates(base64.b64decode(trusted))
    except ValueError:
        return False
    return any(is_issued_by(certificate, authority.public_bytes(Encoding.PEM)) for authority in authorities)
