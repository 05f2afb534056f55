"""Edits of the same objects by users of `v1alpha1` and by users of `v1alpha2`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.manifests import legacy_variant, profiled_variant, variant

from hack.controlplane.client import collection_of

if TYPE_CHECKING:
    import subprocess

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("_installed")]

VERSIONS = ("v1alpha1", "v1alpha2")
SHAPES = {
    "current": variant("shared", version="v1alpha1"),
    "legacy": legacy_variant("shared"),
    "modelProfile": profiled_variant("shared"),
}
EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
lines = path.read_text().splitlines(keepends=True)
at = next(number for number, line in enumerate(lines) if line.startswith("  modelID: "))
path.write_text("".join([*lines[:at], "  modelID: somebody/else\\n", *lines[at + 1:]]))
"""


@pytest.fixture
def _installed(installation: Installation) -> None:
    """Run the webhooks, which every test in this file needs."""


def applied(
    control_plane: ControlPlane, namespace: str, manifest: dict[str, Any], *flags: str
) -> subprocess.CompletedProcess[str]:
    """Apply a manifest on the server and return the result, also if it is rejected."""
    return control_plane.kubectl(
        "apply",
        "--server-side",
        f"--namespace={namespace}",
        "--filename=-",
        *flags,
        input=json.dumps(manifest),
        check=False,
    )


def spec_of(control_plane: ControlPlane, namespace: str, version: str) -> dict[str, Any]:
    """Return the spec in one version."""
    path = f"{collection_of(f'llmd.ai/{version}', 'VariantAutoscaling', namespace)}/shared"
    with control_plane.client() as client:
        spec: dict[str, Any] = client.value("GET", path)["spec"]
    return spec


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", SHAPES.values(), ids=SHAPES.keys())
def test_an_edit_in_either_version_changes_only_the_edited_field(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, manifest: dict[str, Any], version: str
) -> None:
    """`kubectl edit` sends a patch in the version that it read; the other version changes in that field only.

    An edit in v1alpha2, which does not show the legacy variant ID, changes the ID with the model.
    """
    script = tmp_path / "editor.py"
    script.write_text(EDITOR, encoding="utf-8")
    control_plane.apply(manifest, namespace=namespace)
    before = {name: spec_of(control_plane, namespace, name) for name in VERSIONS}

    edited = control_plane.kubectl(
        "edit",
        f"variantautoscalings.{version}.llmd.ai/shared",
        f"--namespace={namespace}",
        editor=f"{sys.executable} {script}",
    )

    assert "edited" in edited.stdout
    identifier = {"variantID": "somebody/else-A100-1"} if "variantID" in manifest["spec"] else {}
    if version == "v1alpha2":
        before["v1alpha1"] |= identifier
    for name in VERSIONS:
        assert spec_of(control_plane, namespace, name) == before[name] | {"modelID": "somebody/else"}


@pytest.mark.parametrize("manifest", SHAPES.values(), ids=SHAPES.keys())
def test_field_ownership_holds_in_both_versions(
    control_plane: ControlPlane, namespace: str, manifest: dict[str, Any]
) -> None:
    """Another manager's apply in the newer version conflicts; the owner can remove a field it applied."""
    priced = manifest | {"spec": manifest["spec"] | {"variantCost": "7"}}
    first = applied(control_plane, namespace, priced, "--field-manager=first")
    newer = {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "metadata": {"name": "shared"},
        "spec": spec_of(control_plane, namespace, "v1alpha2") | {"modelID": "somebody/else"},
    }
    second = applied(control_plane, namespace, newer, "--field-manager=second")
    again = applied(control_plane, namespace, manifest, "--field-manager=first")

    assert first.returncode == 0, first.stderr
    assert second.returncode == 1
    assert 'with "first"' in second.stderr
    assert ".spec.modelID" in second.stderr
    assert again.returncode == 0, again.stderr
    for version in VERSIONS:
        assert spec_of(control_plane, namespace, version).get("variantCost") != "7"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_accelerator_label_changes_the_spec_in_no_version(
    control_plane: ControlPlane, namespace: str, version: str
) -> None:
    """The spec would change without a new generation; a warning says that the label has no effect."""
    label = "inference.optimization/acceleratorName"
    manifest = profiled_variant("shared")
    (entry,) = manifest["spec"]["modelProfile"]["accelerators"]
    manifest["spec"]["modelProfile"]["accelerators"] = [entry, entry | {"acc": "H100"}]
    control_plane.apply(manifest, namespace=namespace)
    before = {name: spec_of(control_plane, namespace, name) for name in VERSIONS}
    where = (f"variantautoscalings.{version}.llmd.ai/shared", f"--namespace={namespace}")

    labelled = control_plane.kubectl("label", *where, f"{label}=H100")
    control_plane.kubectl("annotate", *where, "some/thing=else")

    assert "has no effect" in labelled.stderr
    assert before["v1alpha2"]["accelerator"] == "A100"
    for name in VERSIONS:
        assert spec_of(control_plane, namespace, name) == before[name]
