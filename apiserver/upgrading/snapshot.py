"""What was found in the cluster, read once: all that the verbs decide on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from apiserver.schema.json import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook:
    """How the API server reaches conversion, as far as objects of the cluster tell."""

    namespace: str
    service: Json | None = None
    addresses: int = 0
    """Addresses behind the Service, ready or not: conversion answers before anything is ready."""
    trusted: str = ""
    """The caBundle of our admission webhooks, base64: trust goes everywhere from one source."""
    certificate: bytes | None = None
    """The serving certificate, PEM; None when its Secret is missing or may not be read."""
    is_certificate_hidden: bool = False
    """True when the Secret may not be read."""
    refusal: str = ""
    """Why a dry run of a write did not come through our admission webhooks; empty when it did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One look at the cluster."""

    now: datetime
    definitions: Mapping[str, Json] = field(default_factory=dict)
    """CustomResourceDefinitions of our kinds by name; those that are not installed are missing."""
    objects: tuple[Json, ...] = ()
    """All objects of the converting kind, in its oldest version."""
    webhook: Webhook
    deployments: tuple[Json, ...] = ()
    leases: tuple[Json, ...] = ()
    denied: tuple[str, ...] = ()
    """What the user may not do but would have to, as in `update customresourcedefinitions`."""
