"""The Helm chart on a real control plane: install, upgrade and uninstall."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.command_line import stowplan
from support.helming import Helm, controller_serving
from support.polling import wait_for

from hack.controlplane import ControlPlane
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.controlplane

ELSEWHERE = "inference"
LAST_VALID = "configmap/stowplan-last-valid-settings"
WITHOUT_METRICS = {"externalMetrics": False}
DEFINITION = "customresourcedefinitions.apiextensions.k8s.io/variantautoscalings.llmd.ai"
RELEASED: dict[str, Any] = {
    "components": {"kthena": True, "inferenceExtension": True},
    "evictions": True,
    "commonLabels": {"cost-center": "4711"},
    "acceleratorUnitCosts": {"L40S": {"cost": "1.25"}},
    "controller": {
        "config": {"serving": {"logLevel": "warning", "port": 10250}},
        "extraArgs": ["--log-level=debug"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example"}],
    },
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a separate cluster whose objects nothing else changes."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as started:
        yield started


@pytest.fixture(scope="module")
def kinds(helm: Helm) -> str:
    """Return the kinds of the objects of a release, as an argument of kubectl."""
    return ",".join({kind for kind, _, _ in helm.rendered(RELEASED, namespace=ELSEWHERE)})


def test_helm_does_not_take_over_the_metrics_api_of_another_owner(
    plane: ControlPlane, helm: Helm, kinds: str
) -> None:
    """The error names the APIService, and nothing is installed."""
    service = {"namespace": "keda", "name": "keda-operator-metrics-apiserver"}
    spec: dict[str, Any] = {"group": "external.metrics.k8s.io", "version": "v1beta1", "service": service}
    spec |= {"groupPriorityMinimum": 100, "versionPriority": 100}
    name = "v1beta1.external.metrics.k8s.io"
    claim = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}}
    plane.apply(claim | {"spec": spec})
    done = helm.run("install", "stowplan", str(helm.chart), f"--kubeconfig={plane.kubeconfig}")
    plane.kubectl("delete", "apiservice", name)

    assert f'APIService "{name}" in namespace "" exists and cannot be imported' in done.stderr
    assert not _of_helm(plane, kinds)


def test_a_release_can_be_installed_upgraded_and_uninstalled(
    plane: ControlPlane, helm: Helm, kinds: str, tmp_path: Path
) -> None:
    """Values are in force, an upgrade without changes writes nothing, and the CRDs outlive the release."""
    plane.kubectl("create", "namespace", ELSEWHERE)
    where = (f"--kubeconfig={plane.kubeconfig}", f"--namespace={ELSEWHERE}")

    def release(verb: str, *arguments: str, values: Mapping[str, Any] | None = None) -> None:
        done = helm.run(verb, "stowplan", *arguments, *where, values=values)
        assert done.returncode == 0, done.stderr

    def install(_: object) -> None:
        release("install", str(helm.chart), values=RELEASED)
        plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")

    controller = Installation(plane, namespace=ELSEWHERE, apply=install)
    try:
        controller.start(without=frozenset({"webhooks", "apiserver"}))
        bundle = "--for=jsonpath={.webhooks[0].clientConfig.caBundle}"
        plane.kubectl("wait", bundle, "validatingwebhookconfiguration/stowplan-kthena", "--timeout=60s")
        conversion = "--for=jsonpath={.spec.conversion.webhook.clientConfig.caBundle}"
        plane.kubectl("wait", conversion, DEFINITION, "--timeout=60s")

        kept = ("get", LAST_VALID, f"--namespace={ELSEWHERE}", "--output=jsonpath={.data}")
        wait_for(lambda: "L40S" in plane.kubectl(*kept).stdout, lambda: "the prices are not in use")
        deployments = ("get", "deployment", f"--namespace={ELSEWHERE}", "--output=name")
        labelled = plane.kubectl(*deployments, "--selector=cost-center=4711")
        configured = _configured_controller(plane, tmp_path)
        installed = _of_helm(plane, kinds)
        checked = stowplan("upgrade", "--output=json", f"--kubeconfig={plane.kubeconfig}")
        release("upgrade", str(helm.chart), "--reuse-values")
        upgraded = _of_helm(plane, kinds)
        settings = {"controller": {"config": {"planning": {"intervalSeconds": 5}}}}
        release("upgrade", str(helm.chart), "--reuse-values", values=settings)
        changed = _of_helm(plane, kinds)
    finally:
        controller.stop()
    release("uninstall")
    left = _of_helm(plane, kinds)
    release("install", str(helm.chart), values=WITHOUT_METRICS)  # it adopts the CRDs that were kept
    release("uninstall")

    assert len(labelled.stdout.split()) == 3
    assert configured == ("debug", 10250)
    assert len(installed) > 60
    assert [item for item in json.loads(checked.out)["checks"] if item["check"] == "owners"] == [
        {
            "check": "owners",
            "verdict": "note",
            "message": "variantautoscalings.llmd.ai is of Stowplan's own chart, Helm release stowplan: helm"
            " upgrade updates it, and helm uninstall keeps it",
            "remedy": "",
        }
    ]
    assert upgraded == installed
    for before, after in ((installed, changed), (changed, installed)):
        assert sorted((kind, name[:26]) for kind, name, _ in after - before) == [
            ("ConfigMap", "stowplan-controller-config"),
            ("Deployment", "stowplan-controller"),
        ]
    assert {kind for kind, _, _ in left} == {"CustomResourceDefinition"}


def _configured_controller(plane: ControlPlane, folder: Path) -> tuple[str, int]:
    """Return log level and port of a controller that is started with the arguments of its Deployment."""
    where = (f"--namespace={ELSEWHERE}", "--output=json")
    read = plane.kubectl("get", "deployment/stowplan-controller", *where).stdout
    pod = json.loads(read)["spec"]["template"]["spec"]
    mounted = next(it["configMap"]["name"] for it in pod["volumes"] if it["name"] == "config")
    data = json.loads(plane.kubectl("get", f"configmap/{mounted}", *where).stdout)["data"]
    (folder / "config.yaml").write_text(data["config.yaml"], encoding="utf-8")
    (_, *arguments) = pod["containers"][0]["args"]
    local = [it.replace("/etc/stowplan/config", str(folder)) for it in arguments]
    return controller_serving(local)


def _of_helm(plane: ControlPlane, kinds: str) -> set[tuple[str, str, str]]:
    """Return every object of the release, with its resource version."""
    selector = "--selector=app.kubernetes.io/managed-by=Helm"
    listed = plane.kubectl("get", kinds, "--all-namespaces", selector, "--output=json").stdout
    return {
        (item["kind"], item["metadata"]["name"], item["metadata"]["resourceVersion"])
        for item in json.loads(listed)["items"]
    }
