"""Issuance of serving certificates, and injection of their CA into the objects of the API server.

The order is: the CA, its bundle in every object that refers to our services, and then the leaf certificates.
The manifests contain the Secrets, empty. If another replica writes concurrently, one write fails with a
conflict, and that replica reads the Secret again shortly after.

Definitions and the APIService may belong to another project, and then stay as they are. Webhook
configurations have a name of our own.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NoReturn

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, NotFound
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.lease import annotate
from apiserver.cluster.resource import (
    API_SERVICES,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.registry import FAMILIES
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from apiserver.schema.structural import CONVERSION_SERVICE
from apiserver.serving.authority import service_names
from controller.certificates.authority import (
    Authority,
    authority_of,
    current_authority,
    current_leaf,
    leaf_data,
    leaf_of,
    why_unfit,
    why_unusable,
)
from controller.observe.decision_following import API_SERVICE, TARGET, is_ours

FORMER_CLAIM: Final = f"{PREFIX}former-api-service"
"""Labels and spec of the APIService before our claim, as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FormerClaim:
    """The content of the APIService while it referred to another Service."""

    labels: Json
    spec: Json

    @property
    def service(self) -> tuple[str, str]:
        """Namespace and name of that Service."""
        return self.spec["service"]["namespace"], self.spec["service"]["name"]


def former_claim(lease: Json) -> FormerClaim | None:
    """Return the previous owner recorded on a Lease, or None if there is no valid record."""
    text = (lease["metadata"].get("annotations") or {}).get(FORMER_CLAIM, "")
    try:
        content = json.loads(text)
        claim = FormerClaim(labels=dict(content["labels"]), spec=dict(content["spec"]))
        return claim if all(isinstance(name, str) for name in claim.service) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class ClaimRecord:
    """Records the most recent claim of another owner."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str) -> None:
        """Create the record on the Lease `namespace`/`name`."""
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._written = ""

    async def see(self, api_service: Json) -> None:
        """Record an APIService of another owner. Raises ClusterError if the write is rejected."""
        labels, spec = api_service["metadata"].get("labels") or {}, api_service["spec"]
        text = json.dumps({"labels": labels, "spec": spec}, sort_keys=True)
        if spec.get("service") and text != self._written:
            await annotate(self._cluster, self._namespace, self._name, FORMER_CLAIM, text)
            self._written = text


CONVERSION: Final = str(CONVERSION_SERVICE["name"])
"""The Service of the conversion webhook."""


def webhook_patch(configuration: Json, trusted: str) -> list[Json]:
    """Return the patch of a webhook configuration of ours."""
    operations: list[Json] = []
    for position, webhook in enumerate(configuration.get("webhooks") or []):
        if webhook["clientConfig"].get("caBundle") != trusted:
            here = f"/webhooks/{position}"
            operations += [
                {"op": "test", "path": f"{here}/name", "value": webhook["name"]},
                {"op": "add", "path": f"{here}/clientConfig/caBundle", "value": trusted},
            ]
    return operations


def conversion_patch(definition: Json, trusted: str, *, namespace: str) -> list[Json]:
    """Return the patch of a definition, if our Service in a namespace converts its objects."""
    conversion = definition["spec"].get("conversion") or {}
    client = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service = client.get("service") or {}
    is_converted_here = (service.get("name"), service.get("namespace")) == (CONVERSION, namespace)
    if not is_converted_here or client.get("caBundle") == trusted:
        return []  # converted by another project, by nothing, or up to date
    here = "/spec/conversion/webhook/clientConfig"
    return [
        {"op": "test", "path": f"{here}/service", "value": service},
        {"op": "add", "path": f"{here}/caBundle", "value": trusted},
    ]


def api_service_patch(service: Json, trusted: str) -> list[Json]:
    """Return the patch of the APIService, if it is ours."""
    if not is_ours(service) or service["spec"].get("caBundle") == trusted:
        return []  # owned by another project, or up to date
    return [
        {"op": "test", "path": "/spec/service/name", "value": TARGET},
        # An earlier owner may have set this to true, and applying our APIService over it keeps the field.
        {"op": "add", "path": "/spec/insecureSkipTLSVerify", "value": False},
        {"op": "add", "path": "/spec/caBundle", "value": trusted},
    ]


AUTHORITY_SECRET: Final = "stowplan-authority"  # noqa: S105 (a name, not a secret)
LEAVES: Final[Mapping[str, tuple[str, ...]]] = {
    "stowplan-webhooks-certificate": ("stowplan-webhooks", CONVERSION),
    "stowplan-apiserver-certificate": ("stowplan-apiserver",),
}
"""Secrets that pods mount, with the Services of these pods."""

_SECONDS: Final = 15.0
"""Time between two calls: a webhook or APIService that was installed since cannot work without our CA. And
one long timer would stop while the machine is suspended.
"""

_RETRY_SECONDS: Final = 2.0

_log = EventLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class CertificateSettings:
    """Namespace of the Secrets, and lifetimes of certificates."""

    namespace: str
    leaf_lifetime: timedelta
    authority_lifetime: timedelta


class CertificateReconciler:
    """Brings certificates and CA bundles up to date, once per call."""

    def __init__(
        self, cluster: Cluster, settings: CertificateSettings, *, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._now = now
        self._claims = ClaimRecord(cluster, namespace=settings.namespace, name=LEASE_NAME)

    async def keep(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> NoReturn:
        """Reconcile until cancelled; a failure is logged once until it changes."""
        why_not = ""
        while True:
            try:
                await self.reconcile()
            except ClusterError as error:
                if error.message != why_not:
                    _log.warning("certificates not renewed", error=error.message)
                why_not = error.message
                await sleep(_RETRY_SECONDS)
            else:
                why_not = ""
                await sleep(_SECONDS)

    async def reconcile(self) -> None:
        """Issue and inject what is due. Raises ClusterError if a call is rejected or a Secret is missing.

        Calls are idempotent.
        """
        authority = await self._authority()
        trusted = base64.b64encode(authority.trusted).decode()
        is_fresh = await self._inject_everywhere(trusted)
        for secret, services in LEAVES.items():
            await self._leaf(secret, services, authority, is_trust_fresh=is_fresh)

    async def _inject_everywhere(self, trusted: str) -> bool:
        """Write the CA bundle into all objects that need it; tell whether one of them had another."""
        injected = [
            await self._inject(resource, family.configuration_name, lambda item: webhook_patch(item, trusted))
            for family in FAMILIES
            for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
        ]
        injected += [
            await self._inject(
                CUSTOM_RESOURCE_DEFINITIONS,
                kind.crd_name,
                lambda item: conversion_patch(item, trusted, namespace=self._settings.namespace),
            )
            for family in FAMILIES
            for kind in family.kinds
            if kind.has_conversion
        ]
        injected.append(
            await self._inject(API_SERVICES, API_SERVICE, lambda item: api_service_patch(item, trusted))
        )
        return any(injected)

    async def _authority(self) -> Authority:
        secret = await self._fetch_secret(AUTHORITY_SECRET)
        known, now = authority_of(_data(secret)), self._now()
        renewed = current_authority(known, lifetime=self._settings.authority_lifetime, now=now)
        if renewed != known:
            await self._fill(secret, renewed.as_data())
            why = why_unusable(known, now) or "it was not among the trusted ones"
            _log.info("authority written", secret=AUTHORITY_SECRET, why=why)
        return renewed

    async def _leaf(
        self, name: str, services: tuple[str, ...], authority: Authority, *, is_trust_fresh: bool
    ) -> None:
        secret = await self._fetch_secret(name)
        known = leaf_of(_data(secret))
        if known is not None and is_trust_fresh:
            return  # not yet: an API server may take a moment to trust a new CA
        namespace = self._settings.namespace
        names = tuple(dns for service in services for dns in service_names(service, namespace))
        now = self._now()
        renewed = current_leaf(known, authority, names, lifetime=self._settings.leaf_lifetime, now=now)
        if renewed != known:
            await self._fill(secret, leaf_data(renewed))
            why = why_unfit(known, authority, names, now)
            _log.info("certificate issued", secret=name, names=names, why=why)

    async def _fetch_secret(self, name: str) -> Json:
        try:
            return await self._cluster.get(SECRETS, name, namespace=self._settings.namespace)
        except NotFound as error:
            text = f"Secret {name!r} does not exist: apply the manifests again, which contain it without data"
            raise NotFound(text, code=error.code, status=error.status) from error

    async def _fill(self, secret: Json, data: Mapping[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        # The resource version prevents overwriting a concurrent change.
        await self._cluster.replace(SECRETS, secret | {"data": encoded})

    async def _inject(self, resource: Resource, name: str, patch: Callable[[Json], list[Json]]) -> bool:
        try:
            item = await self._cluster.get(resource, name)
        except NotFound:
            return False  # optional components: external metrics and the kinds of other projects
        if resource is API_SERVICES and not is_ours(item):
            await self._claims.see(item)
        operations = patch(item)
        if operations:
            await self._cluster.patch_json(resource, name, operations)
            _log.info("caBundle injected", kind=resource.kind, name=name)
        return bool(operations)


def _data(secret: Json) -> Mapping[str, bytes]:
    encoded = secret.get("data") or {}
    return {key: base64.b64decode(text) for key, text in encoded.items()}
