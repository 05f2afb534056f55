"""Service classes and prices that are deleted or mistyped: what applies, and where it is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.manifests import deployment, listed, variant

from hack.controlplane import ControlPlane
from hack.controlplane.errors import KubectlFailedError
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

HERE = "--namespace=stowplan-system"
CLASSES, PRICES = "service-classes-config", "accelerator-unit-costs"
PREMIUM = "name: Premium\npriority: 1\ndata:\n- {model: chat, slo-tpot: 24}\n"
SETTINGS = {
    CLASSES: {"premium.yaml": PREMIUM},
    PRICES: {"L4": '{"device": "NVIDIA-L4", "cost": "40.00"}'},
}
VARIANT = variant("chat", modelID="chat", variantCost=None)
"""Its cost is the default that admission fills in."""

PATIENCE = "--timeout=60s"


def config_map(name: str, data: dict[str, str], **metadata: object) -> dict[str, Any]:
    """Return a ConfigMap of settings."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "stowplan-system"} | metadata,
        "data": data,
    }


class Settings:
    """An installation with a variant that depends on both ConfigMaps."""

    def __init__(self, plane: ControlPlane, installation: Installation) -> None:
        self.plane = plane
        self.installation = installation

    def apply(self, name: str, data: dict[str, str], **metadata: object) -> str:
        """Apply a ConfigMap; return the error, if it is refused."""
        text = json.dumps(config_map(name, data, **metadata))
        apply = ("apply", "--server-side", "--force-conflicts", "--filename=-")
        return self.plane.kubectl(*apply, input=text, check=False).stderr

    def restore(self) -> None:
        """Apply valid settings, and a variant without a status."""
        for name, data in SETTINGS.items():
            assert self.apply(name, data) == ""
        self.plane.kubectl("delete", "va/chat", "--ignore-not-found")
        self.plane.kubectl("apply", "--filename=-", input=listed(VARIANT))
        self.wait("ServiceClassResolved", "ClassFound")

    def wait(self, condition: str, reason: str) -> str:
        """Wait until a condition of the variant has a reason; return its message."""
        path = f'.status.conditions[?(@.type=="{condition}")]'
        self.plane.kubectl("wait", "va/chat", f"--for=jsonpath={{{path}.reason}}={reason}", PATIENCE)
        return self.plane.kubectl("get", "va/chat", f"--output=jsonpath={{{path}.message}}").stdout

    def decided(self) -> tuple[int, str, str]:
        """Return the priority, the cost of a replica and its source in the last decision."""
        text = self.plane.kubectl("get", "va/chat", "--output=json").stdout
        decision = json.loads(text)["status"]["decision"]
        return decision["priority"], decision["costPerReplica"], decision["costSource"]

    def events(self, name: str) -> str:
        """Return the Warning events about a ConfigMap of settings."""
        about = f"--field-selector=involvedObject.kind=ConfigMap,involvedObject.name={name},type=Warning"
        return self.plane.kubectl(
            "get", "events", HERE, about, "--output=jsonpath={.items[*].message}"
        ).stdout

    def change_leader(self) -> None:
        """Restart the controller; the variant gets its status from the new one."""
        self.installation.processes["controller"].stop(patience_seconds=20.0)
        self.plane.kubectl("delete", "va/chat")
        self.plane.kubectl("apply", "--filename=-", input=listed(VARIANT))
        self.installation.start_component("controller")


@pytest.fixture(scope="module")
def installed() -> Iterator[Settings]:
    """Yield an installation with the webhooks and the controller."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as plane:
        installation = Installation(plane)
        try:
            installation.start(without=frozenset({"apiserver"}))
            guard = "validatingwebhookconfiguration/stowplan"
            plane.kubectl("wait", "--for=jsonpath={.webhooks[1].clientConfig.caBundle}", guard, PATIENCE)
            target = deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=0)
            plane.kubectl("apply", "--filename=-", input=listed(target))
            yield Settings(plane, installation)
        finally:
            installation.stop()


@pytest.fixture
def settings(installed: Settings) -> Settings:
    """Return the installation with valid settings."""
    installed.restore()
    return installed


def test_a_deleted_config_map_changes_no_decision_and_is_reported(settings: Settings) -> None:
    """The next leader continues with its content, and knows since when it is missing."""
    settings.plane.kubectl("delete", "configmap", CLASSES, PRICES, HERE)

    told = settings.wait("ServiceClassResolved", "ClassInvalid")
    assert told.startswith(
        "service class 'Premium', priority 1; ConfigMap service-classes-config: is missing"
    )
    assert "is missing; its last valid content is used" in settings.wait("CostResolved", "PriceInvalid")
    assert settings.decided() == (1, "40.00", "UnitCost")

    settings.change_leader()
    assert settings.wait("ServiceClassResolved", "ClassInvalid") == told
    assert settings.decided() == (1, "40.00", "UnitCost")
    assert "is missing; its last valid content is used" in settings.events(CLASSES)
    assert "is missing; its last valid content is used" in settings.events(PRICES)


def test_invalid_settings_are_refused_on_apply(settings: Settings) -> None:
    """The error names the field in the text."""
    assert 'data[premium.yaml].priority: Invalid value: "one": must be an integer' in settings.apply(
        CLASSES, {"premium.yaml": PREMIUM.replace("1", "one", 1)}
    )
    assert 'data[L4].cost: Invalid value: "a lot": must be a number' in settings.apply(
        PRICES, {"L4": '{"cost": "a lot"}'}
    )
    elsewhere = config_map(CLASSES, {"a": "priority: one"}, namespace="default")
    settings.plane.kubectl("apply", "--filename=-", input=json.dumps(elsewhere))


def test_invalid_settings_that_passed_admission_change_no_decision(settings: Settings) -> None:
    """The webhook fails open, so they can be stored while it does not respond."""
    settings.installation.processes["webhooks"].stop(patience_seconds=20.0)
    try:
        settings.apply(CLASSES, {"premium.yaml": PREMIUM.replace("1", "one", 1)})
        settings.apply(PRICES, {"L4": '{"cost": "a lot"}'})
    finally:
        settings.installation.start_component("webhooks")

    assert 'priority: Invalid value: "one"' in settings.wait("ServiceClassResolved", "ClassInvalid")
    assert 'cost: Invalid value: "a lot"' in settings.wait("CostResolved", "PriceInvalid")
    settings.change_leader()
    settings.wait("ServiceClassResolved", "ClassInvalid")
    assert settings.decided() == (1, "40.00", "UnitCost")


def test_settings_can_be_removed_on_purpose(settings: Settings) -> None:
    """The annotation gives up the last valid content; without it, emptying causes a warning only."""
    patch = ("patch", "configmap", CLASSES, HERE, "--type=merge")
    emptied = settings.plane.kubectl(*patch, '--patch={"data": null}')
    assert 'set the annotation stowplan.dev/allow-empty to "true"' in emptied.stderr
    settings.wait("ServiceClassResolved", "ClassInvalid")

    settings.plane.kubectl("annotate", "configmap", CLASSES, HERE, "stowplan.dev/allow-empty=true")

    settings.wait("ServiceClassResolved", "NoClass")
    assert settings.decided()[0] == 100
    settings.plane.kubectl("delete", "configmap", CLASSES, HERE)


def test_the_controller_may_write_its_record_and_no_other_config_map(settings: Settings) -> None:
    """Its permission has a name."""
    account = "--as=system:serviceaccount:stowplan-system:stowplan-controller"
    allowed = ("auth", "can-i", "patch", "configmaps/stowplan-last-valid-settings", HERE, account)
    assert settings.plane.kubectl(*allowed).stdout == "yes\n"
    with pytest.raises(KubectlFailedError):
        settings.plane.kubectl("auth", "can-i", "patch", f"configmaps/{CLASSES}", HERE, account)
