"""Pods of the virtual cluster: variant, node and times."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apiserver.schema.json import Json

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at the beginning of a run."""

_HASH = "0000000000"


def moment(seconds: float) -> datetime:
    """Return the date and time of a virtual time."""
    return START + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    """Return a virtual time in Kubernetes' format."""
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(kw_only=True, slots=True, eq=False)
class VirtualPod:
    """One pod; times are None until they are reached."""

    name: str
    variant: str
    created_seconds: float
    node: str | None = None
    bound_seconds: float | None = None
    starts_seconds: float | None = None
    """Time at which it becomes ready."""

    is_ready: bool = False
    deleted_seconds: float | None = None
    annotations: dict[str, str] = field(default_factory=dict)

    def manifest(self, deployment: Json) -> Json:
        """Return the pod as in the API server."""
        owner, template = deployment["metadata"], copy.deepcopy(deployment["spec"]["template"])
        metadata = template.get("metadata") or {}
        spec = template["spec"] | ({"nodeName": self.node} if self.node else {})
        deleted = {} if self.deleted_seconds is None else {"deletionTimestamp": stamp(self.deleted_seconds)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "name": self.name,
                "namespace": owner["namespace"],
                "uid": self.name,
                "creationTimestamp": stamp(self.created_seconds),
                "labels": (metadata.get("labels") or {}) | {"pod-template-hash": _HASH},
                "annotations": (metadata.get("annotations") or {}) | self.annotations,
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": f"{owner['name']}-{_HASH}",
                        "controller": True,
                    }
                ],
                **deleted,
            },
            "spec": spec,
            "status": self._status(),
        }

    def _status(self) -> Json:
        if self.bound_seconds is None:
            return {"phase": "Pending"}
        ready_since = self.starts_seconds if self.is_ready else self.bound_seconds
        condition = {
            "type": "Ready",
            "status": "True" if self.is_ready else "False",
            "lastTransitionTime": stamp(ready_since or 0.0),
        }
        return {"phase": "Running", "startTime": stamp(self.bound_seconds), "conditions": [condition]}
