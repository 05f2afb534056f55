"""Defaults, errors, warnings and columns that a user of plain kubectl gets for VariantAutoscalings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.manifests import legacy_variant, listed, profiled_variant, variant

from hack.controlplane.client import MERGE_PATCH, PathNotServedError, RefusedError, collection_of

if TYPE_CHECKING:
    import subprocess

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

HEAD = 'The VariantAutoscaling "x" is invalid: '


@pytest.fixture(autouse=True)
def _installed(installation: Installation) -> None:
    """Run the webhooks, which every test in this file needs."""


def apply(
    control_plane: ControlPlane, namespace: str, manifest: dict[str, Any], *flags: str
) -> subprocess.CompletedProcess[str]:
    """Apply one manifest and return the result, also if it is rejected."""
    return control_plane.kubectl(
        "apply", f"--namespace={namespace}", "--filename=-", *flags, input=json.dumps(manifest), check=False
    )


def read(control_plane: ControlPlane, namespace: str, name: str, version: str) -> dict[str, Any]:
    """Return one VariantAutoscaling in one version."""
    collection = collection_of(f"llmd.ai/{version}", "VariantAutoscaling", namespace)
    with control_plane.client() as client:
        return client.value("GET", f"{collection}/{name}")


REFUSED = {
    "several invalid fields": (
        variant("x", modelID="", variantCost="ten", acceleratorCount=0),
        [
            'spec.modelID: Invalid value: "": must be at least 1 character long',
            'spec.variantCost: Invalid value: "ten": must be a non-negative decimal number such as 10 or'
            " 10.5",
            "spec.acceleratorCount: Invalid value: 0: must be greater than or equal to 1",
        ],
    ),
    "a string in a field for a number": (
        variant("x", acceleratorCount="four"),
        ['spec.acceleratorCount: Invalid value: "four": must be an integer'],
    ),
    "a number in a field for a string": (
        variant("x", variantCost=40),
        ["spec.variantCost: Invalid value: 40: must be a string"],
    ),
    "no target": (variant("x", scaleTargetRef=None), ["spec.scaleTargetRef: Required value"]),
    "fields of two shapes together": (
        legacy_variant("x", modelProfile=profiled_variant("x")["spec"]["modelProfile"]),
        [
            f"spec.{name}: Forbidden: may not be set together with `modelProfile`"
            for name in ("variantID", "accelerator", "acceleratorCount", "variantProfile")
        ],
    ),
    "a string of one megabyte": (
        variant("x", modelID="x" * 1_000_000),
        [  # kubectl keeps the whole manifest in an annotation
            "metadata.annotations: Too long: may not be more than 262144 bytes",
            "spec.modelID: Too long: may not be more than 512 bytes",
        ],
    ),
}


@pytest.mark.parametrize(("manifest", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_an_invalid_manifest_is_rejected_like_one_of_a_built_in_kind(
    control_plane: ControlPlane, empty_namespace: str, manifest: dict[str, Any], want: list[str]
) -> None:
    """The output lists all errors at once, and contains no webhook name and no stack trace."""
    finished = apply(control_plane, empty_namespace, manifest)

    lines = [line for line in finished.stderr.splitlines() if line and not line.startswith("Warning:")]
    told = [f"{HEAD}{want[0]}"] if len(want) == 1 else [HEAD, *(f"* {text}" for text in want)]
    assert lines == told
    assert finished.returncode == 1


def test_an_unknown_field_is_rejected_by_name(control_plane: ControlPlane, empty_namespace: str) -> None:
    """The strict decoding of the API server reports the path of the field."""
    finished = apply(control_plane, empty_namespace, variant("x", modelName="typing error"))

    assert finished.returncode == 1
    assert 'unknown field "spec.modelName"' in finished.stderr


SHAPES = {
    "modelProfile": profiled_variant("x"),
    "legacy": legacy_variant("x"),
    "current in v1alpha1": variant("x", version="v1alpha1"),
    "current in v1alpha2": variant("x"),
}


@pytest.mark.parametrize("manifest", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_can_be_applied_twice_and_read_in_both_versions(
    control_plane: ControlPlane, namespace: str, manifest: dict[str, Any]
) -> None:
    """The second apply changes nothing, and the version that was applied returns the same spec."""
    first = apply(control_plane, namespace, manifest)
    second = apply(control_plane, namespace, manifest)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert second.stdout == "variantautoscaling.llmd.ai/x unchanged\n"
    own, other = manifest["apiVersion"].removeprefix("llmd.ai/"), {"v1alpha1", "v1alpha2"}
    assert read(control_plane, namespace, "x", own)["spec"] == manifest["spec"]
    (name,) = other - {own}
    assert read(control_plane, namespace, "x", name)["spec"]["modelID"] == manifest["spec"]["modelID"]


def test_a_missing_scale_target_causes_a_warning_only(control_plane: ControlPlane, namespace: str) -> None:
    """A VariantAutoscaling may be applied before its target."""
    finished = apply(control_plane, namespace, variant("x"))

    assert finished.returncode == 0
    assert (
        f'Warning: spec.scaleTargetRef: Deployment "x" does not exist yet in namespace "{namespace}"'
        in finished.stderr.splitlines()
    )


def test_a_default_cost_is_set_in_the_current_shape_only(control_plane: ControlPlane, namespace: str) -> None:
    """A variant of the legacy shape takes its cost from the accelerator."""
    manifests = [variant("current", variantCost=None), legacy_variant("legacy")]
    control_plane.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=listed(*manifests))

    assert read(control_plane, namespace, "current", "v1alpha2")["spec"]["variantCost"] == "10.0"
    assert "variantCost" not in read(control_plane, namespace, "legacy", "v1alpha2")["spec"]


def test_a_patch_in_the_new_version_is_visible_in_the_old_version(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Only the patched field changes, and the variant ID that contains its value."""
    apply(control_plane, namespace, legacy_variant("x"))
    edit = json.dumps({"spec": {"acceleratorCount": 2}})
    control_plane.kubectl(
        "patch",
        "variantautoscalings.v1alpha2.llmd.ai",
        "x",
        f"--namespace={namespace}",
        "--type=merge",
        f"--patch={edit}",
    )

    spec = read(control_plane, namespace, "x", "v1alpha1")["spec"]

    want = legacy_variant("x", acceleratorCount=2, variantID="meta/llama-3.1-8b-A100-2")["spec"]
    assert spec == want


def test_the_old_version_causes_a_deprecation_warning(control_plane: ControlPlane, namespace: str) -> None:
    """The warning names the version to use instead."""
    finished = apply(control_plane, namespace, legacy_variant("x"))

    assert (
        "Warning: llmd.ai/v1alpha1 VariantAutoscaling is deprecated; use llmd.ai/v1alpha2" in finished.stderr
    )


def test_kubectl_get_prints_the_declared_columns(control_plane: ControlPlane, namespace: str) -> None:
    """The short name `va` works, and the columns are in the declared order."""
    apply(control_plane, namespace, variant("x"))

    header = control_plane.kubectl("get", "va", f"--namespace={namespace}").stdout.splitlines()[0].split()

    assert header == [
        *("NAME", "MODEL", "ACCELERATOR", "PRIORITY", "SERVING", "GRANTED", "WANTED", "UNMET", "‰", "COST"),
        *("READY", "REASON", "AGE"),
    ]


def test_deletion_is_never_rejected(control_plane: ControlPlane, namespace: str) -> None:
    """An object with a finalizer is deleted as soon as the finalizer is removed."""
    apply(
        control_plane, namespace, variant("x") | {"metadata": {"name": "x", "finalizers": ["test.dev/hold"]}}
    )
    control_plane.kubectl("delete", "va", "x", f"--namespace={namespace}", "--wait=false")
    control_plane.kubectl(
        "patch",
        "va",
        "x",
        f"--namespace={namespace}",
        "--type=merge",
        '--patch={"metadata":{"finalizers":null}}',
    )

    control_plane.kubectl("wait", "--for=delete", "va/x", f"--namespace={namespace}", "--timeout=60s")


def test_naming_a_scale_target_needs_permission_to_scale_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Permission to write VariantAutoscalings does not include permission to scale other users' workloads."""
    bob = f"--as=bob-{namespace}"
    for verb in ("get", "create", "patch"):
        grant(control_plane, namespace, verb, "variantautoscalings.llmd.ai", verb)
    refused = apply(control_plane, namespace, variant("x"), bob)
    grant(control_plane, namespace, "scale", "deployments.apps/scale", "update")
    allowed = apply(control_plane, namespace, variant("y"), bob)

    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f'{HEAD}spec.scaleTargetRef: Forbidden: User "bob-{namespace}" cannot update "deployments/scale.apps"'
        f' of "x" in the namespace "{namespace}"'
    )
    assert allowed.returncode == 0, allowed.stderr


def grant(control_plane: ControlPlane, namespace: str, role: str, resource: str, verb: str) -> None:
    """Grant the namespace's user bob one more permission, and wait until the authorizer knows it."""
    bob, place = f"bob-{namespace}", f"--namespace={namespace}"
    kubectl = control_plane.kubectl
    kubectl("create", "role", role, f"--resource={resource}", f"--verb={verb}", place)
    kubectl("create", "rolebinding", role, f"--role={role}", f"--user={bob}", place)
    name, _, subresource = resource.partition("/")
    question = ("auth", "can-i", verb, name, f"--subresource={subresource}", f"--as={bob}", place)
    for _ in range(100):
        if kubectl(*question, check=False).returncode == 0:
            return
    raise AssertionError(f"{bob} still may not {verb} {resource}")


CHANGES: dict[str, dict[str, Any]] = {
    "a finalizer": {"metadata": {"finalizers": ["example.com/held"]}},
    "no finalizer": {"metadata": {"finalizers": None}},
    "a label": {"metadata": {"labels": {"team": "a"}}},
    "an annotation": {"metadata": {"annotations": {"example.com/note": "x"}}},
    "a status": {"status": {"actuation": {"applied": False}}},
}
JUDGED: dict[str, dict[str, Any]] = {
    "the spec": {"spec": {"variantCost": "7"}},
    "the accelerator's label": {"metadata": {"labels": {"inference.optimization/acceleratorName": "H100"}}},
    "the writer": {"metadata": {"annotations": {"stowplan.dev/written-by": "{}"}}},
    "an owner": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}
    },
}


def test_metadata_can_be_changed_and_objects_deleted_while_the_webhooks_are_down(
    control_plane: ControlPlane, installation: Installation, namespace: str
) -> None:
    """Otherwise, objects whose controller removes its finalizer stay, and so does their namespace."""
    control_plane.apply(variant("x"), namespace=namespace)
    path = f"{collection_of('llmd.ai/v1alpha2', 'VariantAutoscaling', namespace)}/x"
    installation.processes["webhooks"].stop()
    try:
        with control_plane.client() as client:
            for change in JUDGED.values():
                with pytest.raises(RefusedError, match="failed calling webhook"):
                    client.call("PATCH", path, change, media_type=MERGE_PATCH)
            for change in CHANGES.values():
                where = f"{path}/status" if "status" in change else path
                client.call("PATCH", where, change, media_type=MERGE_PATCH)
            client.call("PATCH", path, CHANGES["a finalizer"], media_type=MERGE_PATCH)
            client.call("DELETE", path)
            client.call("PATCH", path, CHANGES["no finalizer"], media_type=MERGE_PATCH)
            with pytest.raises(PathNotServedError):
                client.call("GET", path)
    finally:
        installation.start_component("webhooks")
