"""Pure functions that read and build Lease objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.cluster.resource import LEASES
from apiserver.cluster.timestamps import rfc3339_micro

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from apiserver.schema.json import Json

RETRY_JITTER = 1.2


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseOptions:
    """The lease to acquire, the identity of this process, and durations as in client-go."""

    namespace: str
    name: str
    identity: str
    """An identity that is unique to this process for all time: the pod name and a random part."""
    duration_seconds: int = 15
    """How long others wait after the last renewal that they observed."""
    renew_deadline_seconds: float = 10.0
    """How long the holder continues without a successful renewal."""
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        """Raise ValueError for durations that would allow two holders at the same time."""
        if not self.duration_seconds > self.renew_deadline_seconds > RETRY_JITTER * self.retry_seconds > 0:
            raise ValueError(
                "lease durations must be ordered: duration_seconds > renew_deadline_seconds > "
                f"{RETRY_JITTER} * retry_seconds > 0"
            )


def holder_of(spec: Json | None) -> str:
    """Return the identity of the holder; empty if the lease is free."""
    return str((spec or {}).get("holderIdentity") or "")


def transitions_of(spec: Json | None) -> int:
    """Return the number of times the lease has changed hands."""
    return int((spec or {}).get("leaseTransitions") or 0)


def claimed(
    lease: Json | None, options: LeaseOptions, now: datetime, annotations: Mapping[str, str] | None = None
) -> Json:
    """Return the lease with this process as its holder, ready to be written.

    It is based on the lease that was read, whose resource version guards the write. `acquireTime` is kept
    while the holder stays the same; every change of holder counts as a transition. Given annotations are
    added.
    """
    metadata: Json = lease["metadata"] if lease else {"namespace": options.namespace, "name": options.name}
    if annotations:
        metadata = metadata | {"annotations": {**(metadata.get("annotations") or {}), **annotations}}
    old: Json = (lease or {}).get("spec") or {}
    kept = holder_of(old) == options.identity
    written = rfc3339_micro(now)
    claim = {
        "holderIdentity": options.identity,
        "leaseDurationSeconds": options.duration_seconds,
        "acquireTime": (kept and old.get("acquireTime")) or written,
        "renewTime": written,
        "leaseTransitions": transitions_of(old) + int(not kept and lease is not None),
    }
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": metadata,
        "spec": old | claim,
    }


def released(lease: Json, options: LeaseOptions, now: datetime) -> Json:
    """Return the lease without a holder, so that others need not wait for it to expire."""
    body = claimed(lease, options, now)
    body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
    return body
