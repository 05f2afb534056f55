"""Wait for objects by a watch: polling takes CPU time from the processes under test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.schema.json import Json
    from hack.controlplane import ControlPlane

PATIENCE_SECONDS: Final = 60.0

_COLLECTIONS: Final = {
    "aspb": ("apis/registry.volcano.sh/v1alpha1", "autoscalingpolicybindings"),
    "deployment": ("apis/apps/v1", "deployments"),
    "infobj": ("apis/inference.networking.x-k8s.io/v1alpha2", "inferenceobjectives"),
    "lease": ("apis/coordination.k8s.io/v1", "leases"),
    "model": ("apis/registry.volcano.sh/v1alpha1", "models"),
    "modelroute": ("apis/networking.volcano.sh/v1alpha1", "modelroutes"),
    "service": ("api/v1", "services"),
    "va": ("apis/llmd.ai/v1alpha2", "variantautoscalings"),
}
"""The API version and the plural of each kind, by the name that kubectl accepts."""


def watched(plane: ControlPlane, namespace: str, what: str, is_so: Callable[[Json], bool] = bool) -> Json:
    """Return `KIND/NAME` once a condition holds for it, by default that it exists; {} if it was deleted.

    Fails with the last state after a minute.
    """
    kind, _, name = what.partition("/")
    version, plural = _COLLECTIONS[kind]
    collection = f"/{version}/namespaces/{namespace}/{plural}"
    last: Json = {}
    with plane.client() as client:
        for last in client.watch(collection, name, seconds=PATIENCE_SECONDS):
            if is_so(last):
                return last
    pytest.fail(f"not within {PATIENCE_SECONDS:.0f} s: {what} is {json.dumps(last, indent=1)}")


def conditions_of(item: Json) -> dict[str, Json]:
    """Return the conditions of an object by their types."""
    return {one["type"]: one for one in item.get("status", {}).get("conditions", [])}
