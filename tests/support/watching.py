"""Wait for what others write by a watch: asking again and again takes the cores from those who work."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest

from hack.controlplane.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.schema.json import Json
    from hack.controlplane import ControlPlane

PATIENCE_SECONDS: Final = 60.0

_COLLECTIONS: Final = {
    "aspb": "apis/registry.volcano.sh/v1alpha1/{}/autoscalingpolicybindings",
    "deployment": "apis/apps/v1/{}/deployments",
    "httproute": "apis/gateway.networking.k8s.io/v1/{}/httproutes",
    "infobj": "apis/inference.networking.x-k8s.io/v1alpha2/{}/inferenceobjectives",
    "lease": "apis/coordination.k8s.io/v1/{}/leases",
    "model": "apis/registry.volcano.sh/v1alpha1/{}/models",
    "modelroute": "apis/networking.volcano.sh/v1alpha1/{}/modelroutes",
    "service": "api/v1/{}/services",
    "va": "apis/llmd.ai/v1alpha2/{}/variantautoscalings",
}
"""By what kubectl calls a kind; the braces stand for the namespace."""


def watched(plane: ControlPlane, namespace: str, what: str, is_so: Callable[[Json], bool] = bool) -> Json:
    """Return `KIND/NAME` as soon as something is so of it, else as soon as it is there.

    What is deleted is {}. Fails with the last state after a minute.
    """
    kind, _, name = what.partition("/")
    collection = f"/{_COLLECTIONS[kind].format(f'namespaces/{namespace}')}"
    last: Json = {}
    with closing(Client(plane.server, plane.directory / "pki")) as client:
        for last in client.watch(collection, name, seconds=PATIENCE_SECONDS):
            if is_so(last):
                return last
    pytest.fail(f"not within {PATIENCE_SECONDS:.0f} s: {what} is {json.dumps(last, indent=1)}")


def conditions_of(item: Json) -> dict[str, Json]:
    """Return the conditions of an object by their types."""
    return {one["type"]: one for one in item.get("status", {}).get("conditions", [])}
