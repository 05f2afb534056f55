"""Removing it, last of all."""

from __future__ import annotations

import json
import time

import pytest
from support.installed import SYSTEM, Installed
from support.manifests import variant

pytestmark = pytest.mark.e2e

TERMINATION_SECONDS = 30


def test_everything_goes_and_nothing_hangs(installed: Installed) -> None:
    """By kubectl alone: the claim first, then the base, with an object of ours still there."""
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
