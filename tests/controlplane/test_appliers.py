"""GitOps tools that apply the manifests repeatedly do not conflict with the controller's own writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.appliers import Applier, Objects, ServerSide, ThreeWay
from support.manifests import deployment, listed, variant
from support.polling import wait_for

from hack.controlplane import ControlPlane
from hack.installation import Installation
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

DEFINITION = "customresourcedefinition/variantautoscalings.llmd.ai"
METRICS = "apiservice/v1beta1.external.metrics.k8s.io"
TRUSTING = {
    "validatingwebhookconfiguration/stowplan": "{.webhooks[0].clientConfig.caBundle}",
    "mutatingwebhookconfiguration/stowplan-kthena": "{.webhooks[0].clientConfig.caBundle}",
    DEFINITION: "{.spec.conversion.webhook.clientConfig.caBundle}",
    METRICS: "{.spec.caBundle}",
}
"""Objects that the controller writes to after they were applied, with the JSON path of the field."""
SECRETS = (
    "secret/stowplan-authority",
    "secret/stowplan-webhooks-certificate",
    "secret/stowplan-apiserver-certificate",
)
"""Secrets that the controller fills in."""
PRICES = "configmap/accelerator-unit-costs"
LAST_VALID = "configmap/stowplan-last-valid-settings"
GUARD = "validatingwebhookconfiguration/stowplan"


class Stage:
    """An installation that is applied by one GitOps tool."""

    def __init__(self, plane: ControlPlane, applier: Applier) -> None:
        self.plane = plane
        self.applier = applier
        self.desired: Objects = []
        self.installation = Installation(plane, apply=self._begin)

    def _begin(self, manifests: Objects) -> None:
        """Apply what an installation of processes can use, and the Deployments, whose pods never run here."""
        deployments = (ROOT / "manifests/base/deployments.yaml").read_text(encoding="utf-8")
        self.desired = [*manifests, *yaml.load_all(deployments, Loader=yaml.CSafeLoader)]
        self.applier.apply(self.desired)
        self.plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")

    def wait_until_trusted(self) -> None:
        """Wait until the controller has injected its CA everywhere, and the metrics API is available."""
        for name, path in TRUSTING.items():
            self.plane.kubectl("wait", f"--for=jsonpath={path}", name, "--timeout=60s")
        self.plane.kubectl("wait", "--for=condition=Available", METRICS, "--timeout=60s")

    def wait_until_stored(self, text: str) -> None:
        """Wait until the controller has stored settings with a text, which it does in its next cycle."""
        get = ("get", LAST_VALID, "--namespace=stowplan-system", "--output=json")
        wait_for(lambda: text in self.plane.kubectl(*get).stdout, lambda: f"{text} is not stored")

    def restart_controller(self) -> None:
        """Restart the controller, which then reconciles everything from the start."""
        self.installation.processes["controller"].stop(patience_seconds=20.0)
        self.installation.start_component("controller")
        self.wait_until_trusted()

    def live(self, objects: Objects) -> dict[str, dict[str, Any]]:
        """Return the stored objects in the same order, by kind and name."""
        options = ("--filename=-", "--output=json", "--show-managed-fields")
        items = json.loads(self.plane.kubectl("get", *options, input=listed(*objects)).stdout)["items"]
        return {f"{item['kind'].lower()}/{item['metadata']['name']}": item for item in items}

    def foreign(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of an applied object by each other field manager that owns some."""
        fields: dict[str, Any] = {}
        for entry in item["metadata"]["managedFields"]:
            if entry["manager"] != self.applier.manager:
                fields.setdefault(entry["manager"], {}).update(entry["fieldsV1"])
        return fields


def versions(live: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the resource version of each object."""
    return {name: item["metadata"]["resourceVersion"] for name, item in live.items()}


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
    listed_price = json.dumps({"data": {"L40S": '{"cost": "1.5"}'}})
    prices = ("patch", PRICES, "--namespace=stowplan-system", "--patch", listed_price)
    stage.plane.kubectl(*prices, "--field-manager=operator")
    stage.plane.kubectl(
        "apply", "--filename=-", input=listed(deployment("a", product="L40S", accelerators=1), variant("a"))
    )
    stage.wait_until_stored("L40S")
    before = stage.live(stage.desired)
    foreign = {name: stage.foreign(item) for name, item in before.items()}

    assert stage.applier.drift(stage.desired, before) == []
    stage.applier.apply(stage.desired)
    stage.restart_controller()
    after = stage.live(stage.desired)
    assert versions(after) == versions(before)
    assert {name: stage.foreign(item) for name, item in after.items()} == foreign
    assert stage.applier.drift(stage.desired, after) == []

    written = [json.dumps([*foreign[name].values()]) for name in (*TRUSTING, *SECRETS)]
    assert all("caBundle" in said or "f:tls.key" in said for said in written)
    for name in (*TRUSTING, *SECRETS, LAST_VALID):
        assert {*foreign[name]} - {"kube-apiserver"} == {"stowplan"}, name
    assert "f:data" in foreign[PRICES]["operator"]
    assert stage.plane.kubectl("get", "va", "a", "--output=name").stdout  # conversion and webhooks answer


def test_a_manual_change_is_reverted_by_the_next_apply(stage: Stage) -> None:
    """The applier reports the drift and reverts it, and the CA bundle that the controller injected stays."""
    edit = '[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]'
    stage.plane.kubectl("patch", GUARD, "--type=json", f"--patch={edit}", "--field-manager=somebody")

    assert stage.applier.drift(stage.desired, stage.live(stage.desired)) == ["stowplan"]
    stage.applier.apply(stage.desired)

    live = stage.live(stage.desired)
    assert stage.applier.drift(stage.desired, live) == []
    webhook = live[GUARD]["webhooks"][0]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["clientConfig"]["caBundle"]


def test_objects_that_are_no_longer_desired_are_pruned(stage: Stage) -> None:
    """An API family that is left out is removed with its CRDs; nothing else changes. Must run last."""
    fewer = [item for item in stage.desired if not _is_of_kthena(item)]
    before = versions(stage.live(fewer))
    stage.applier.apply(fewer)

    assert len(fewer) < len(stage.desired)
    assert versions(stage.live(fewer)) == before
    assert "volcano.sh" not in stage.plane.kubectl("get", "crd", "--output=name").stdout


def _is_of_kthena(item: dict[str, Any]) -> bool:
    name: str = item["metadata"]["name"]
    return name.endswith(("-kthena", "volcano.sh"))
