"""State after a downgrade on a real control plane: repeated runs and an uninstallation."""

from __future__ import annotations

import asyncio
import json

import pytest
import yaml
from support.upgrade_rig import (
    CRD,
    NAMESPACE,
    OLD,
    annotations_of,
    apply_definition,
    enter,
    fill,
    read,
    samples,
    stowplan,
)

from hack.controlplane import ControlPlane
from hack.installation.manifests import ROOT

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("old_installation")]

DEFINITION = ROOT / "manifests" / "crds" / "llmd" / f"{CRD}.yaml"


async def test_a_downgrade_from_the_helm_chart_can_be_repeated(old_plane: ControlPlane) -> None:
    """The downgraded CRD has neither annotations of Helm nor fields that Helm owns."""
    await asyncio.to_thread(enter, old_plane, "v0.4.2")
    await fill(old_plane, samples("v0.4.2"))
    assert (await stowplan(old_plane, "upgrade", "--apply")).returncode == 0
    charted = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))
    charted["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    charted["metadata"]["annotations"] = {
        "meta.helm.sh/release-name": "stowplan",
        "helm.sh/resource-policy": "keep",
    }
    by_helm = ("apply", "--server-side", "--force-conflicts", "--field-manager=helm", "--filename=-")
    old_plane.kubectl(*by_helm, input=json.dumps(charted))
    back = await stowplan(old_plane, "downgrade", "--to-release", "v0.4.2", "--apply")
    again = await stowplan(old_plane, "downgrade", "--to-release", "v0.4.2", "--apply")
    shown = old_plane.kubectl("get", "crd", CRD, "--show-managed-fields", "--output=json")
    metadata = json.loads(shown.stdout)["metadata"]

    assert "is of Stowplan's own chart" in back.stdout
    assert (back.returncode, again.returncode) == (0, 0), back.stdout + again.stdout
    assert "nothing to do" in again.stdout
    assert metadata["annotations"].keys().isdisjoint(charted["metadata"]["annotations"])
    assert not metadata.get("labels")
    assert "helm" not in {entry["manager"] for entry in metadata["managedFields"]}


async def test_an_uninstallation_after_a_downgrade_keeps_the_crd_and_the_objects(
    old_plane: ControlPlane,
) -> None:
    """The uninstallation removes recorded writers, and the label by which users could delete the CRD."""
    await asyncio.to_thread(enter, old_plane, "v0.4.2")
    before = await fill(old_plane, samples("v0.4.2"))
    for verb in (("upgrade",), ("downgrade", "--to-release", "v0.4.2")):
        assert (await stowplan(old_plane, *verb, "--apply")).returncode == 0
    old_plane.kubectl(
        "label", "crd", CRD, "app.kubernetes.io/part-of=stowplan"
    )  # as earlier downgrades left it
    await asyncio.to_thread(apply_definition, old_plane, "v0.4.2")
    record = ("variantautoscalings.v1alpha1.llmd.ai", "--all", "stowplan.dev/written-by=me")
    old_plane.kubectl("annotate", f"--namespace={NAMESPACE}", *record)
    assert all("stowplan.dev/written-by" in item for item in await annotations_of(old_plane))
    # No controller here completes the deletion of a namespace.
    old_plane.kubectl("label", "namespace", "stowplan-system", "app.kubernetes.io/part-of-")
    removed = await stowplan(old_plane, "uninstall", "--apply", "--delete-objects")
    again = await stowplan(old_plane, "uninstall", "--delete-objects")

    assert removed.returncode == 0, removed.stdout
    assert "nothing to do" in again.stdout
    assert await read(old_plane, OLD) == before
    assert not any("stowplan.dev/written-by" in item for item in await annotations_of(old_plane))
    left = ("get", "crd", CRD, "--show-managed-fields", "--output=json")
    metadata = json.loads(old_plane.kubectl(*left).stdout)["metadata"]
    assert "app.kubernetes.io/part-of" not in metadata.get("labels", {})
    managers = {entry["manager"] for entry in metadata["managedFields"] if "subresource" not in entry}
    assert managers == {"kubectl"}
