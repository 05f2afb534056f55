"""The previous owner of external.metrics.k8s.io: recorded on our Lease, and restored on uninstallation.

An APIService is a single object, so our claim overwrites its previous content. The controller reads the
object anyway, for the certificates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.lease import annotate
from apiserver.kinds.annotations import PREFIX
from apiserver.schema.json import Json

ANNOTATION: Final = f"{PREFIX}former-api-service"
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
    text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION, "")
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
            await annotate(self._cluster, self._namespace, self._name, ANNOTATION, text)
            self._written = text
