"""The base alone, and the kinds of other projects as kustomize components: installed, removed, and shared."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.kustomizing import kustomized

from hack.controlplane import ControlPlane
from hack.installation import Installation
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

MANIFESTS = ROOT / "manifests"
FAMILIES = ("kthena", "inference-extension")
WAYS = ("", "{}", "{}-without-crds")
COMBINATIONS = [
    [*(way.format(family) for way, family in zip(ways, FAMILIES, strict=True) if way), *closed]
    for ways in itertools.product(WAYS, repeat=len(FAMILIES))
    for closed in ([], ["fail-closed"])
]
FOREIGN = "models.registry.volcano.sh"
KTHENA = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: models.registry.volcano.sh
  labels: {app.kubernetes.io/part-of: kthena}
spec:
  group: registry.volcano.sh
  names: {kind: Model, plural: models, singular: model}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
WRONG_VARIANT = """
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: wrong, namespace: default}
spec: {modelID: m, variantCost: ten, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}
"""
WRONG = {
    "kthena": ("modelserver/refused/unknown-choices", 'spec.inferenceEngine: Unsupported value: "vllm"'),
    "inference-extension": ("inferenceobjective/refused/no-pool", "spec.poolRef"),
}
"""A sample that is rejected, and a part of the message, by family."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a separate cluster: the one that tests share has every kind."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as started:
        yield started


@pytest.fixture(scope="module")
def base(plane: ControlPlane) -> Iterator[Installation]:
    """Yield an installation of the base alone."""
    with Installation(plane, manifests="base") as started:
        yield started


@pytest.mark.parametrize("components", COMBINATIONS, ids=lambda names: "+".join(names) or "base")
def test_every_combination_renders(plane: ControlPlane, tmp_path: Path, components: list[str]) -> None:
    """CRDs, webhook configurations and RBAC rules are those of the selected families."""
    rendered = kustomized(
        plane, tmp_path, resources=["base"], components=[f"components/{it}" for it in components]
    )

    named = {(item["kind"], item["metadata"]["name"]) for item in rendered}
    for family in FAMILIES:
        is_in = any(name.startswith(family) for name in components)
        assert (("ValidatingWebhookConfiguration", f"stowplan-{family}") in named) == is_in
        assert (("ClusterRole", f"stowplan-webhooks-{family}") in named) == is_in
        definitions = {
            ("CustomResourceDefinition", path.stem) for path in (MANIFESTS / "crds" / family).glob("*.*.yaml")
        }
        assert bool(definitions & named) == (family in components)
    policies = _failure_policies(rendered)
    assert policies.pop("stowplan") == "Fail"
    assert set(policies.values()) <= {"Fail" if "fail-closed" in components else "Ignore"}


def test_the_component_for_releases_of_kthena_has_no_definitions(plane: ControlPlane, tmp_path: Path) -> None:
    """It can be used with the kinds of Kthena, and alone; the releases install their definitions."""
    for others in ([], ["kthena", "fail-closed"]):
        components = [f"components/{name}" for name in ("kthena-serving", *others)]
        rendered = kustomized(plane, tmp_path, resources=["base"], components=components)

        names = {item["metadata"]["name"] for item in rendered}
        assert not [name for name in names if name.endswith("networking.serving.volcano.sh")]
        assert {"stowplan-kthena-serving", "stowplan-webhooks-kthena-serving"} <= names
        closed = "Fail" if others else "Ignore"
        assert _failure_policies(rendered)["stowplan-kthena-serving"] == closed


def test_the_base_needs_no_kinds_of_other_projects(plane: ControlPlane, base: Installation) -> None:
    """The base becomes ready, validates VariantAutoscalings, and has no permission for the other kinds."""
    refused = plane.kubectl("apply", "--filename=-", input=WRONG_VARIANT, check=False)
    definitions = plane.kubectl("get", "crd", "--output=name").stdout.split()

    assert "spec.variantCost: Invalid value" in refused.stderr
    assert definitions == ["customresourcedefinition.apiextensions.k8s.io/variantautoscalings.llmd.ai"]
    for account in ("webhooks", "apiserver", "controller"):
        who = f"--as=system:serviceaccount:stowplan-system:stowplan-{account}"
        may = plane.kubectl(
            "auth", "can-i", "list", "autoscalingpolicybindings.registry.volcano.sh", who, check=False
        )
        assert may.stdout.strip() == "no"


def test_a_crd_of_another_field_manager_is_not_changed(plane: ControlPlane, base: Installation) -> None:
    """The apply reports a conflict and changes no field; without its CRDs the component can be installed."""
    plane.kubectl("apply", "--server-side", "--field-manager=kthena", "--filename=-", input=KTHENA)
    plane.wait_until_established(FOREIGN)
    before = _definition(plane)
    try:
        applied = plane.kubectl("apply", "--server-side", "--kustomize", _component("kthena"), check=False)
        after = _definition(plane)
        spared = plane.kubectl("apply", "--server-side", "--kustomize", _component("kthena-without-crds"))
        others = plane.kubectl("get", "crd", "--output=name").stdout.split()
        plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")
    finally:
        plane.kubectl("delete", "--ignore-not-found", "--kustomize", _component("kthena"))

    assert applied.returncode == 1
    assert 'conflicts with "kthena"' in applied.stderr
    assert after == before
    assert len(others) == 6  # VariantAutoscalings, and five of Kthena, of which one is foreign
    assert "validatingwebhookconfiguration.admissionregistration.k8s.io/stowplan-kthena" in spared.stdout


def test_components_can_be_installed_and_removed(plane: ControlPlane, base: Installation) -> None:
    """The kinds of each are validated until it is removed; afterwards nothing is left, and the base works."""
    before = _everything(plane)
    for family in FAMILIES:
        plane.kubectl("apply", "--server-side", "--kustomize", _component(family))
    plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")
    base.processes["controller"].stop(patience_seconds=20.0)
    base.start_component("controller")  # it injects its CA when it starts, and every minute
    bundle = "--for=jsonpath={.webhooks[0].clientConfig.caBundle}"
    for family, (name, message) in WRONG.items():
        plane.kubectl("wait", bundle, f"validatingwebhookconfiguration/stowplan-{family}", "--timeout=60s")
        sample = f"--filename={MANIFESTS}/samples/{name}.yaml"
        refused = plane.kubectl("apply", sample, check=False)
        plane.kubectl("delete", "--kustomize", _component(family))
        assert message in refused.stderr

    assert _everything(plane) == before
    assert "Invalid value" in plane.kubectl("apply", "--filename=-", input=WRONG_VARIANT, check=False).stderr
    for process in base.processes.values():
        process.check()


def _component(name: str) -> str:
    return str(MANIFESTS / "components" / name)


def _definition(plane: ControlPlane) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        plane.kubectl("get", "crd", FOREIGN, "--output=json", "--show-managed-fields").stdout
    )
    return {"metadata": found["metadata"], "spec": found["spec"]}


def _everything(plane: ControlPlane) -> set[str]:
    kinds = (
        "crd,validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles,clusterrolebindings,"
        "validatingadmissionpolicies,namespaces,apiservices"
    )
    listed = plane.kubectl("get", kinds, "--output=name").stdout.split()
    ours = plane.kubectl("get", "all,configmaps,roles", "--namespace=stowplan-system", "--output=name").stdout
    return {*listed, *ours.split()}


def _failure_policies(rendered: list[dict[str, Any]]) -> dict[str, str]:
    return {
        item["metadata"]["name"]: item["webhooks"][0]["failurePolicy"]
        for item in rendered
        if item["kind"] == "ValidatingWebhookConfiguration"
    }
