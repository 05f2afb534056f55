"""Objects that one tenant may store, and that must not affect others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.manifests import Manifest, autoscaler, deployment, variant
from support.watching import Place, path_of, watched

from hack.controlplane.client import MERGE_PATCH, RefusedError, collection_of
from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

VERSIONS = ("v1alpha1", "v1alpha2")
LEVELS = 1500
DEEP = '{"f:a":' * LEVELS + "{}" + "}" * LEVELS
MANAGED: Manifest = {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": "HERE"}
FORGED: Manifest = {
    "decision": {"reason": "Demand", "message": "forged"},
    "actuation": {"applied": False},
    "desiredOptimizedAlloc": {"accelerator": "A100", "numReplicas": 1, "lastRunTime": "2036-01-01T00:00:00Z"},
}
"""A decision that no reader serves, with a time that no reader will ever receive."""

PRODUCT = "NVIDIA-HOSTILE"
MEBIBYTE = 1 << 20
PREFIX = ".".join(letter * 60 for letter in "abc")
"""The prefix of long finalizers: no other field of an object is as large."""


@pytest.fixture
def victim(control_plane: ControlPlane, installation: Installation, namespace: str) -> Iterator[Place]:
    """Yield a namespace with a variant whose decision is served, and whose status nobody forged."""
    create_nodes(control_plane, [KwokNode(name="hostile", accelerator=PRODUCT, accelerator_count=4)])
    made = Place(control_plane, namespace)
    made.apply(deployment("chat", product=PRODUCT, accelerators=1), variant("chat"), autoscaler("chat"))
    made.wait("va/chat", "jsonpath={.status.desiredOptimizedAlloc.lastRunTime}")
    yield made
    control_plane.kubectl("delete", "node", "hostile")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deeply_nested_object_hides_no_object_in_either_version(
    control_plane: ControlPlane, victim: Place, empty_namespace: str, version: str
) -> None:
    """Its own managed fields are complete: the API server restores them after a conversion."""
    deep = variant("deep", version=version)
    deep["metadata"]["managedFields"] = [MANAGED | {"apiVersion": deep["apiVersion"]}]
    body = json.dumps(deep).replace('"HERE"', DEEP)
    with control_plane.client() as client:
        collection = collection_of(deep["apiVersion"], deep["kind"], empty_namespace)
        client.call("POST", collection, body.encode())
        lists = [f"/apis/llmd.ai/{name}/variantautoscalings" for name in VERSIONS]

        texts = [client.call("GET", path).decode() for path in lists]

        client.call("DELETE", f"{collection}/deep")
    for text in texts:
        assert f'"namespace":"{victim.namespace}"' in text
        assert '{"f:a":' * LEVELS in text


def test_a_forged_status_that_cannot_be_written_keeps_the_metrics_of_others(
    control_plane: ControlPlane, victim: Place, empty_namespace: str
) -> None:
    """The object is as large as etcd stores, so the controller's status does not fit."""
    metric = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{victim.namespace}/wva_desired_replicas"
    collection = path_of(empty_namespace, "va")
    with control_plane.client() as client:
        large = variant("forged")
        large["metadata"]["finalizers"] = [f"{PREFIX}/{number:060}" for number in range(4500)]
        client.call("POST", collection, large)
        fits, too_large = 0, MEBIBYTE
        while too_large - fits > 8:
            size = (fits + too_large) // 2
            try:
                client.call("PATCH", f"{collection}/forged/status", forged(size), media_type=MERGE_PATCH)
                fits = size
            except RefusedError as error:
                assert "too large" in str(error)  # noqa: PT017 (the other half of the tries succeed)
                too_large = size

        def is_seen(lease: Manifest) -> bool:
            unconfirmed = lease["metadata"]["annotations"].get("stowplan.dev/unconfirmed", "")
            return f"{empty_namespace}/forged" in unconfirmed.split(",")

        lease = watched(control_plane, "stowplan-system", "lease/stowplan-controller", is_seen)

        newest = lease["metadata"]["annotations"]["stowplan.dev/newest-decision"]
        assert newest < "2036"
        assert client.value("GET", metric)["items"]
        client.call(
            "PATCH", f"{collection}/forged", {"metadata": {"finalizers": None}}, media_type=MERGE_PATCH
        )
        client.call("DELETE", f"{collection}/forged")


def forged(size_bytes: int) -> Manifest:
    """Return a patch of a status with a forged decision, and of about a given size."""
    texts = [32_000] * (size_bytes // 32_000) + [size_bytes % 32_000]
    conditions = [
        {
            "type": f"Filler{place}",
            "status": "True",
            "reason": "Filler",
            "message": "x" * text,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for place, text in enumerate(texts)
    ]
    return {"status": FORGED | {"conditions": conditions}}
