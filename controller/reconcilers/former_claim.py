"""Who had external.metrics.k8s.io before us: seen while it was so, kept on our Lease, given back at the end.

An APIService is one object, so a claim writes over what its former owner said. The controller looks at it
anyway, for the certificates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.schema.json import Json
from controller.observe.orders import PREFIX
from controller.reconcilers.lease_annotation import annotate

ANNOTATION: Final = f"{PREFIX}former-api-service"
"""Labels and spec of the APIService of the former owner, as JSON."""

API_SERVICE: Final = "v1beta1.external.metrics.k8s.io"
TARGET: Final = "stowplan-apiserver"
"""The Service that our claim leads to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FormerClaim:
    """What the APIService said when it led to somebody else."""

    labels: Json
    spec: Json

    @property
    def service(self) -> tuple[str, str]:
        """Namespace and name of the Service that it led to."""
        return self.spec["service"]["namespace"], self.spec["service"]["name"]


def is_ours(api_service: Json) -> bool:
    """Tell whether an APIService leads to our Service."""
    return (api_service["spec"].get("service") or {}).get("name") == TARGET


def former_claim(lease: Json) -> FormerClaim | None:
    """Return what a Lease says of the former owner; None where it says nothing that can be read."""
    text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    try:
        said = json.loads(text)
        claim = FormerClaim(labels=dict(said["labels"]), spec=dict(said["spec"]))
        return claim if all(isinstance(name, str) for name in claim.service) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class ClaimRecord:
    """Keeps the newest claim of somebody else."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str) -> None:
        """`namespace` and `name` are the Lease's."""
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._written = ""

    async def see(self, api_service: Json) -> None:
        """Record an APIService that leads to somebody else. Raises ClusterError when that is refused."""
        labels, spec = api_service["metadata"].get("labels") or {}, api_service["spec"]
        text = json.dumps({"labels": labels, "spec": spec}, sort_keys=True)
        if spec.get("service") and text != self._written:
            await annotate(self._cluster, self._namespace, self._name, ANNOTATION, text)
            self._written = text
