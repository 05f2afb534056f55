"""The snapshot: the state of the cluster, read once, on which all decisions are based."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from apiserver.schema.json import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook:
    """How the API server reaches the conversion webhook, as far as the cluster's objects show."""

    namespace: str
    service: Json | None = None
    ready_pods: int | None = 0
    """The number of ready pods behind the Service; None if the user may not read it."""
    is_configured: bool = False
    """Whether our admission webhooks have a configuration."""
    trusted: str = ""
    """The caBundle of our admission webhooks, base64. All other trust is copied from it."""
    certificate: bytes | None = None
    """The serving certificate, PEM; None if its Secret is missing or may not be read."""
    is_certificate_hidden: bool = False
    """Whether the Secret may not be read."""
    refusal: str = ""
    """Why a dry run of a write did not pass through our admission webhooks; empty if it did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The state of the cluster at one time."""

    now: datetime
    definitions: Mapping[str, Json] = field(default_factory=dict)
    """The CustomResourceDefinitions of our kinds by name; those that are not installed are absent."""
    objects: tuple[Json, ...] = ()
    """All objects of the convertible kind, in its oldest version."""
    webhook: Webhook
    deployments: tuple[Json, ...] = ()
    leases: tuple[Json, ...] = ()
    denied: tuple[str, ...] = ()
    """Needed permissions that the user lacks, such as `update customresourcedefinitions`."""
