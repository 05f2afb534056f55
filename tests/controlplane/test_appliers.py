"""GitOps tools that apply the manifests repeatedly do not conflict with the controller's own writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.appliers import Applier, Objects, ServerSide, ThreeWay, managed
from support.manifests import deployment, listed, variant

from hack.controlplane import ControlPlane
from hack.installation import Installation
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

HERE = "--namespace=stowplan-system"
TRUSTING = (
    ("validatingwebhookconfiguration", "stowplan", "{.webhooks[0].clientConfig.caBundle}"),
    ("mutatingwebhookconfiguration", "stowplan-kthena", "{.webhooks[0].clientConfig.caBundle}"),
    ("crd", "variantautoscalings.llmd.ai", "{.spec.conversion.webhook.clientConfig.caBundle}"),
    ("apiservice", "v1beta1.external.metrics.k8s.io", "{.spec.caBundle}"),
)
"""Objects that the controller writes to after they were applied: kind, name and JSON path of the field."""
SECRETS = ("stowplan-authority", "stowplan-webhooks-certificate", "stowplan-apiserver-certificate")
"""Secrets that the controller fills in."""


class Stage:
    """An installation that is applied by one GitOps tool."""

    def __init__(self, plane: ControlPlane, applier: Applier) -> None:
        self.plane = plane
        self.applier = applier
        self.desired: Objects = []
        self.installation = Installation(plane, apply=self._begin)

    def _begin(self, manifests: Objects) -> None:
        """Apply what an installation of processes can use, and the Deployments, whose pods never run here."""
        rendered = self.plane.kubectl("kustomize", str(ROOT / "manifests/overlays/every-kind")).stdout
        whole = [
            item for item in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if item["kind"] == "Deployment"
        ]
        self.desired = [*manifests, *whole]
        self.applier.apply(self.desired)
        self.plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")

    def wait_until_trusted(self) -> None:
        """Wait until the controller has injected its CA everywhere, and the metrics API is available."""
        for kind, name, path in TRUSTING:
            self.plane.kubectl("wait", f"--for=jsonpath={path}", kind, name, "--timeout=60s")
        self.plane.kubectl("wait", "--for=condition=Available", "apiservice", TRUSTING[3][1], "--timeout=60s")

    def restart_controller(self) -> None:
        """Restart the controller, which then reconciles everything from the start."""
        self.installation.processes["controller"].stop(patience_seconds=20.0)
        self.installation.start_component("controller")
        self.wait_until_trusted()

    def versions(self, objects: Objects) -> dict[tuple[str, str], str]:
        """Return the resource version of each object."""
        read = self.plane.kubectl("get", "--filename=-", "--output=json", input=listed(*objects)).stdout
        items: Objects = json.loads(read)["items"]
        return {
            (item["kind"], item["metadata"]["name"]): item["metadata"]["resourceVersion"] for item in items
        }

    def foreign(self) -> list[dict[str, Any]]:
        """Return the fields of the applied objects that other field managers own."""
        objects = [(kind, name) for kind, name, _ in TRUSTING]
        fields = [managed(self.plane, kind, name) for kind, name in objects]
        fields += [managed(self.plane, "secret", name, HERE) for name in SECRETS]
        fields.append(managed(self.plane, "configmap", "accelerator-unit-costs", HERE))
        return [{who: what for who, what in found.items() if who != self.applier.manager} for found in fields]


@pytest.fixture(scope="module", params=[ServerSide, ThreeWay], ids=lambda applier: applier.manager)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Yield an installation on its own cluster, once for each applier."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as plane:
        stage = Stage(plane, request.param(plane))
        with stage.installation:
            stage.wait_until_trusted()
            yield stage


def test_a_repeated_apply_changes_nothing(stage: Stage) -> None:
    """There is no drift, no object is written, and the fields of other managers stay theirs."""
    prices = ("patch", "configmap", "accelerator-unit-costs", HERE, "--patch", '{"data":{"L40S":"1.5"}}')
    stage.plane.kubectl(*prices, "--field-manager=operator")
    stage.plane.kubectl(
        "apply", "--filename=-", input=listed(deployment("a", product="L40S", accelerators=1), variant("a"))
    )
    versions, foreign = stage.versions(stage.desired), stage.foreign()

    assert stage.applier.drift(stage.desired) == []
    stage.applier.apply(stage.desired)
    stage.restart_controller()
    assert stage.versions(stage.desired) == versions
    assert stage.foreign() == foreign
    assert stage.applier.drift(stage.desired) == []

    written = [json.dumps([*found.values()]) for found in foreign[:-1]]
    assert all("caBundle" in said or "f:tls.key" in said for said in written)
    assert "f:data" in foreign[-1]["operator"]
    assert stage.plane.kubectl("get", "va", "a", "--output=name").stdout  # conversion and webhooks answer


def test_a_manual_change_is_reverted_by_the_next_apply(stage: Stage) -> None:
    """The applier reports the drift and reverts it, and the CA bundle that the controller injected stays."""
    edit = '[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]'
    guard = ("validatingwebhookconfiguration", "stowplan")
    stage.plane.kubectl("patch", *guard, "--type=json", f"--patch={edit}", "--field-manager=somebody")

    assert stage.applier.drift(stage.desired) == ["stowplan"]
    stage.applier.apply(stage.desired)

    assert stage.applier.drift(stage.desired) == []
    (webhook,) = json.loads(stage.plane.kubectl("get", *guard, "--output=json").stdout)["webhooks"]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["clientConfig"]["caBundle"]


def test_objects_that_are_no_longer_desired_are_pruned(stage: Stage) -> None:
    """An API family that is left out is removed with its CRDs; nothing else changes. Must run last."""
    fewer = [item for item in stage.desired if not _is_of_kthena(item)]
    before = stage.versions(fewer)
    stage.applier.apply(fewer)

    assert len(fewer) < len(stage.desired)
    assert stage.versions(fewer) == before
    assert "volcano.sh" not in stage.plane.kubectl("get", "crd", "--output=name").stdout


def _is_of_kthena(item: dict[str, Any]) -> bool:
    name: str = item["metadata"]["name"]
    return name.endswith(("-kthena", "volcano.sh"))
