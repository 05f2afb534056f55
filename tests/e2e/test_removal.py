"""Removal of the installation, which must be the last test."""

from __future__ import annotations

import json
import time

import pytest
from support.installed import SYSTEM, Installed
from support.manifests import variant

pytestmark = pytest.mark.e2e

TERMINATION_SECONDS = 30


def test_kubectl_delete_removes_the_installation_in_time(installed: Installed) -> None:
    """The APIService is deleted first, then the base, while a VariantAutoscaling still exists."""
    control_plane = installed.node.control_plane
    control_plane.apply(variant("left") | {"metadata": {"name": "left", "namespace": "default"}})
    began = time.monotonic()

    installed.kubectl("delete", "--kustomize", "manifests/external-metrics", "--timeout=20s")
    installed.kubectl("delete", "--kustomize", "manifests/base", "--timeout=90s")

    assert time.monotonic() - began < 2 * TERMINATION_SECONDS
    kinds = "namespaces,customresourcedefinitions,clusterroles,validatingwebhookconfigurations"
    left = json.loads(installed.kubectl("get", kinds, "--output=json").stdout)["items"]
    names = {item["metadata"]["name"] for item in left}
    assert SYSTEM not in names
    assert not [name for name in names if "stowplan" in name or "llmd.ai" in name]
