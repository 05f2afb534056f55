"""Optional components of the manifests, together and in another namespace; settings that an apply keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kustomizing import MANIFESTS, kustomized

from hack.controlplane import ControlPlane
from hack.packaging.chart import OPTIONS, parts
from hack.packaging.rendering import OF_NAMESPACE

pytestmark = pytest.mark.controlplane

PARTS = (
    "metrics-service",
    "pod-monitor",
    "alerts",
    "dashboards",
    "network-policies",
    "flow-control",
    "advisory",
    "single-replica",
    "cert-manager",
    "tenants",
    "annotated",
)
UNKNOWN = {"PodMonitor", "PrometheusRule", "Issuer", "Certificate"}
ELSEWHERE = "inference"
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture
def rendered(control_plane: ControlPlane, tmp_path: Path) -> list[dict[str, Any]]:
    """Return the manifests with a changed image, namespace and settings, and with every component."""
    settings = {"name": "stowplan-controller-config", "behavior": "merge", "namespace": "stowplan-system"}
    return kustomized(
        control_plane,
        tmp_path,
        resources=["overlays/every-kind", "external-metrics"],
        components=[f"components/{name}" for name in PARTS],
        namespace=ELSEWHERE,
        transformers=[OF_NAMESPACE],
        images=[{"name": "stowplan", "newName": "registry.example/stowplan", "digest": DIGEST}],
        configMapGenerator=[settings | {"literals": ["config.yaml=planning: {intervalSeconds: 5}"]}],
    )


def test_all_components_can_be_combined(control_plane: ControlPlane, rendered: list[dict[str, Any]]) -> None:
    """Image, namespace and hashed names of settings are consistent; the API server accepts every object."""
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}})
    known = [item for item in rendered if item["kind"] not in UNKNOWN]
    text = yaml.dump_all(known, Dumper=yaml.CSafeDumper)
    apply = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-")
    control_plane.kubectl(*apply, input=text)
    control_plane.kubectl("delete", "namespace", ELSEWHERE, "--wait=false")

    assert "stowplan-system" not in yaml.dump_all(rendered, Dumper=yaml.CSafeDumper)
    deployments = [item["spec"] for item in rendered if item["kind"] == "Deployment"]
    containers = [spec["template"]["spec"]["containers"][0] for spec in deployments]
    assert {container["image"] for container in containers} == {f"registry.example/stowplan@{DIGEST}"}
    assert {spec["replicas"] for spec in deployments} == {1}
    (controller,) = (container for container in containers if container["name"] == "controller")
    flags = {"--planning-advisory=true", "--certificates-enabled=false", "--tenants=true", "--annotated=true"}
    assert flags <= set(controller["args"])
    names = {item["metadata"]["name"]: item for item in rendered if item["kind"] == "ConfigMap"}
    mounted = {
        volume["configMap"]["name"]
        for spec in deployments
        for volume in spec["template"]["spec"]["volumes"]
        if "configMap" in volume
    }
    assert mounted < set(names)
    assert "stowplan-controller-config" not in names
    accounts = {
        subject["serviceAccount"]["namespace"]
        for item in rendered
        if item["kind"] == "FlowSchema"
        for rule in item["spec"]["rules"]
        for subject in rule["subjects"]
    }
    assert accounts == {ELSEWHERE}


def test_every_certificate_of_cert_manager_has_the_names_of_its_services(
    rendered: list[dict[str, Any]],
) -> None:
    """The CA is injected wherever the API server calls Stowplan."""
    leaves = {
        item["spec"]["secretName"]: item["spec"].get("dnsNames")
        for item in rendered
        if item["kind"] == "Certificate"
    }
    services = ("stowplan-webhooks", "stowplan-conversion")
    assert leaves["stowplan-webhooks-certificate"] == [f"{name}.{ELSEWHERE}.svc" for name in services]
    assert leaves["stowplan-apiserver-certificate"] == [f"stowplan-apiserver.{ELSEWHERE}.svc"]
    injected = {
        (item["kind"], item["metadata"]["name"])
        for item in rendered
        if (item["metadata"].get("annotations") or {}).get("cert-manager.io/inject-ca-from")
        == f"{ELSEWHERE}/stowplan-authority"
    }
    called = {
        (item["kind"], item["metadata"]["name"])
        for item in rendered
        if "WebhookConfiguration" in item["kind"] or item["kind"] == "APIService"
    }
    assert injected == called | {("CustomResourceDefinition", "variantautoscalings.llmd.ai")}


def test_replicas_are_spread_over_nodes_and_have_disruption_budgets(control_plane: ControlPlane) -> None:
    """Replicas use different nodes where possible, and a drain leaves at least one of them."""
    base = list(
        yaml.load_all(
            control_plane.kubectl("kustomize", str(MANIFESTS / "base")).stdout, Loader=yaml.CSafeLoader
        )
    )
    deployments = {item["metadata"]["name"]: item for item in base if item["kind"] == "Deployment"}
    budgets = {
        item["metadata"]["name"]: item["spec"] for item in base if item["kind"] == "PodDisruptionBudget"
    }
    for name, item in deployments.items():
        (spread,) = item["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert (spread["whenUnsatisfiable"], spread["nodeTaintsPolicy"]) == ("DoNotSchedule", "Honor")
        assert "startupProbe" in item["spec"]["template"]["spec"]["containers"][0]
        assert budgets[name]["selector"] == item["spec"]["selector"]
        assert budgets[name]["minAvailable"] == 1


def test_another_field_manager_can_apply_the_same_manifests(tmp_path: Path) -> None:
    """The API server stores every field as it is in the manifests, so a second manager has no conflicts."""
    every = [part for part in parts() if not part.endswith("-without-crds")]
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as fresh:
        rendered = kustomized(
            fresh,
            tmp_path,
            resources=["base", *OPTIONS],
            components=[part for part in every if part not in OPTIONS],
        )
        known = yaml.dump_all(
            [item for item in rendered if item["kind"] not in UNKNOWN], Dumper=yaml.CSafeDumper
        )
        apply = ("apply", "--server-side", "--filename=-")
        fresh.kubectl(*apply, "--field-manager=first", input=known)
        again = fresh.kubectl(*apply, "--field-manager=second", check=False, input=known)

    assert again.stderr == ""


def test_a_repeated_apply_keeps_costs_and_service_classes(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The apply has no conflicts and resets nothing, whether the data was patched or applied."""
    data = [
        item
        for item in yaml.load_all(
            (MANIFESTS / "base/settings.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
        )
        if item["kind"] == "ConfigMap"
    ]
    control_plane.kubectl("create", "namespace", "settings-test")
    shipped = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                item | {"metadata": item["metadata"] | {"namespace": "settings-test"}} for item in data
            ],
        }
    )
    apply = ("apply", "--server-side", "--filename=-", "--field-manager=base")
    where = "--namespace=settings-test"
    control_plane.kubectl(*apply, input=shipped)
    control_plane.kubectl(
        "patch", "configmap", "accelerator-unit-costs", where, "--patch", '{"data":{"L40S":"1.5"}}'
    )
    other = data[1] | {"metadata": {"name": data[1]["metadata"]["name"]}, "data": {"premium": "priority: 1"}}
    control_plane.kubectl(*apply[:3], "--field-manager=operator", where, input=json.dumps(other))
    control_plane.kubectl(*apply, input=shipped)

    listed = control_plane.kubectl(
        "get", "configmaps", where, "--output=json", "--show-managed-fields"
    ).stdout
    found = {item["metadata"]["name"]: item for item in json.loads(listed)["items"]}
    assert found["accelerator-unit-costs"]["data"] == {"L40S": "1.5"}
    assert found["service-classes-config"]["data"] == {"premium": "priority: 1"}
    for name in ("accelerator-unit-costs", "service-classes-config"):
        owners = {
            it["manager"] for it in found[name]["metadata"]["managedFields"] if "f:data" in it["fieldsV1"]
        }
        assert "base" not in owners
    control_plane.kubectl("delete", "namespace", "settings-test", "--wait=false")
